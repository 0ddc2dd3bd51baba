// SPDX-License-Identifier: Apache-2.0
// What `init files --renew` leaves of a file that an operator changed since init wrote it. The file
// itself says how it was written: its second line is a comment with a sum of each setting, so that
// no copy of a secret is kept anywhere else. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"

typedef struct ConfMerge {
    Str text;          // the file as it is to be
    const char **kept; // names of the settings that are the operator's, in the order of the file
    size_t n_kept;
} ConfMerge;

// The head of a settings file whose assignments are `lines` (the text of a file).
void conf_head(Buf *out, Str lines);

// current: the file as it is; fresh: as init writes it now, with its head. A setting that stands as
// init wrote it gets its new value or goes; one that the operator changed, added or deleted stays
// so, and comments stay. In a file of a release without sums every other value counts as changed.
ConfMerge conf_merge(Str current, Str fresh, Arena *arena);

// The same for a file of another grammar, as a whole: `lines` with their head, and whether a file
// still is what init wrote. fresh: for files of a release without sums.
void conf_whole_head(Buf *out, Str lines);
bool conf_whole_is_ours(Str current, Str fresh);
