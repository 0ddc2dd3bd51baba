// SPDX-License-Identifier: Apache-2.0
// What the process that parses mail takes from itself before it reads a byte.
#pragma once

#include <stdbool.h>

enum {
    MAIL_PARSE_MEMORY = 256 * 1024 * 1024, // of address space; not under the address sanitizer
    MAIL_PARSE_CPU_S = 5,
};

// No descriptor beyond the three that it has (so no file, no socket, no pipe), no process, no byte
// into a file, no core, no privilege by a program, bounded memory and processor time. false: one of
// them could not be set.
bool mail_parse_limit(void);
