// SPDX-License-Identifier: Apache-2.0
// What a process does before it holds keys: it leaves no core dump and lets no process of the same
// user read its memory. Once, before any thread. Developers switch that off
// (STENTOR_CORE_DUMPS=true).
#pragma once

#include <stdbool.h>

void process_forbid_dumps(void);
// Locks all memory, also what is to come: data keys in use and OpenSSL's ciphers too. Only where
// RLIMIT_MEMLOCK is unlimited: below any other limit a later allocation would fail. false: not
// locked.
bool process_lock_memory(void);
