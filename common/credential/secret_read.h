// SPDX-License-Identifier: Apache-2.0
// One reading of one reference: a file in a thread of the pool, so that a slow disk stops no loop;
// a program without a shell, ended after 10 s; a variable at once. Files and programs only below
// the folders that the installation names: a reference comes over the API, and must reach neither
// the master key nor a shell. Law: an error names the reference (a program without its arguments)
// and never what was read.
#pragma once

#include <sys/types.h>
#include <uv.h>

#include "common/credential/reference.h"

enum {
    SECRET_MAX = 65536,
    SECRET_EXEC_MS = 10000,
    SECRET_FOLDERS_MAX = 8,
    SECRET_SHOWN_MAX = 120, // of a reference in an error or a log line
};

// What a file was when it was read; all zero: never.
typedef struct SecretStamp {
    dev_t device;
    ino_t inode;
    off_t size;
    int64_t changed_ns;
} SecretStamp;

typedef struct SecretRules {
    Str folders[SECRET_FOLDERS_MAX];
    size_t folder_count;
    int64_t exec_ms; // how long a program may take
} SecretRules;

// "/etc/stentor/credentials:/run/secrets"; slices point into it. CONFIG: not absolute, too many.
bool secret_rules_parse(Str text, SecretRules *ret, Error *err);
// "file:/run/secrets/x", "exec:/usr/bin/x ..." for errors and logs.
void secret_shown(const Reference *reference, char out[SECRET_SHOWN_MAX]);

// Once, from the loop or (a variable) within secret_read. err: TRANSIENT when it may work later,
// else CONFIG. same: the file is the one of `known`, and there is no text. The text has no line
// break at its end, and is wiped when this returns.
typedef void (*SecretReadDone)(
    void *ctx, Str text, bool same, const SecretStamp *stamp, const Error *err);

typedef struct SecretRead SecretRead;

// All but `reference`'s text is copied; that text must live until `done`. NULL: done already.
SecretRead *secret_read(
    uv_loop_t *loop, const SecretRules *rules, const Reference *reference, const SecretStamp *known,
    SecretReadDone done, void *ctx);
// Ends a program that still runs; `done` comes as ever.
void secret_read_stop(SecretRead *read);
