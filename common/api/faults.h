// SPDX-License-Identifier: Apache-2.0
// Names for what went wrong inside, so that an answer can point to the line in the log without
// quoting it. The same failure within ten seconds has one name and one line, however many requests
// meet it. Pure; time is an argument.
#pragma once

#include "common/base/error.h"
#include "common/base/id.h"

enum { FAULTS_KEPT = 8, FAULT_WINDOW_S = 10 };

typedef struct Fault {
    char id[ID_SIZE]; // "flt_" and a ULID
    char text[sizeof((Error *)0)->text];
    int64_t at_us;
} Fault;

// Zero at first.
typedef struct Faults {
    Fault kept[FAULTS_KEPT];
    size_t next;
} Faults;

// The fault's id, valid until the next call; *ret_new: it is to be logged.
const char *faults_note(Faults *faults, const Error *err, int64_t now_us, bool *ret_new);
