// SPDX-License-Identifier: Apache-2.0
// The grammar of an options file, and nothing else: lines NAME=value, blank lines, lines that begin
// with '#'. A value may stand in double quotes, with \" and \\ inside; white space around names and
// unquoted values does not count. A '#' inside a value belongs to it (URLs have them).
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

typedef struct OptionsFile {
    Str rest;
    int line; // of the assignment given last, from 1
    Buf unquoted;
} OptionsFile;

void options_file_init(OptionsFile *file, Str text);
void options_file_done(OptionsFile *file);
// The next assignment; slices are valid until the next call. false: the end (err->kind is
// ERROR_NONE) or a line that is none (ERROR_CONFIG, with the line's number).
bool options_file_next(OptionsFile *file, Str *ret_name, Str *ret_value, Error *err);
// Appends NAME="value" and a line break, as options_file_next reads it. The value has no line
// break.
void options_file_write(Buf *out, Str name, const char *value);
