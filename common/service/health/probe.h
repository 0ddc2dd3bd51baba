// SPDX-License-Identifier: Apache-2.0
// Probe: a program asks another process of itself whether it is ready, on its admin port. For the
// health check of a container that has neither shell nor curl. Blocking.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

enum { PROBE_TIMEOUT_MS = 3000 };

// Where a client on this machine reaches what is bound to `bind`: 127.0.0.1 for 0.0.0.0, ::1 for
// ::.
const char *probe_address(const char *bind);
// GET /readyz. true: it answered; *ret_ready, and what it said is appended to `said`.
bool probe_ask(const char *bind, int port, bool *ret_ready, Buf *said, Error *err);
