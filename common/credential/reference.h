// SPDX-License-Identifier: Apache-2.0
// Reference: where a secret is, as text: "file:/run/secrets/sendgrid", "env:SENDGRID_KEY" or
// "exec:/etc/stentor/credentials/read-key sendgrid main". Never the secret itself: a text that is
// none of these is refused and never shown, for it may be one. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

enum {
    REFERENCE_MAX = 1024,
    REFERENCE_ARGUMENTS_MAX = 15, // behind the program
};

typedef enum ReferenceKind { REFERENCE_FILE, REFERENCE_ENV, REFERENCE_EXEC } ReferenceKind;

typedef struct Reference {
    ReferenceKind kind;
    Str place;                              // an absolute path, or the variable's name
    Str arguments[REFERENCE_ARGUMENTS_MAX]; // EXEC: by spaces; no shell reads them
    size_t argument_count;
} Reference;

// Slices point into `text`. PERMANENT: what is wrong and what to write instead. "vault:PATH#FIELD"
// is refused with the program that reads it. An env: name that begins with STENTOR_ is refused: the
// programs' own options are no vendor's.
bool reference_parse(Str text, Reference *ret, Error *err);
