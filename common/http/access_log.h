// SPDX-License-Identifier: Apache-2.0
// The access log: one line of the log for a request that is answered. It has who asked, the method,
// the route's pattern, the status, how long it took, the request's id; never a path, a query, an
// address or a body, in which recipients stand.
#pragma once

#include "common/http/internal.h"

// limits.access_every 0: nothing; N: each N-th that is answered below 400 (then the line says so),
// and all others.
void access_log_write(HttpServer *server, const HttpRequest *request, int status);
