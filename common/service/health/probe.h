// SPDX-License-Identifier: Apache-2.0
// Probe: a program asks another process of itself, on its admin port: whether it is ready, for the
// health check of a container that has neither shell nor curl, and which routes it has. Blocking.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

enum { PROBE_TIMEOUT_MS = 3000, PROBE_SAID_MAX = 128 * 1024 };

// Where a client on this machine reaches what is bound to `bind`: 127.0.0.1 for 0.0.0.0, ::1 for
// ::.
const char *probe_address(const char *bind);
// GET `path` ("/readyz"). true: it answered; *ret_ok: with 200. What it said is appended to `said`.
bool probe_ask(const char *bind, int port, const char *path, bool *ret_ok, Buf *said, Error *err);
