// SPDX-License-Identifier: Apache-2.0
#include "common/http/access_log.h"

#include "common/base/clock.h"
#include "common/base/log.h"

enum { REFUSED_FROM = 400 };

void access_log_write(HttpServer *server, const HttpRequest *request, int status)
{
    int64_t every = server->limits.access_every;
    if (every <= 0 || !log_wants(LOG_INFO)) {
        return;
    }
    bool good = status < REFUSED_FROM;
    if (good && server->answered++ % (uint64_t)every != 0) {
        return;
    }
    LOG(LOG_INFO, "request", log_text("request", request->id),
        log_text("actor", request->actor != NULL ? request->actor : "-"),
        log_str("method", request->method),
        log_text("route", request->route != NULL ? request->route : "-"), log_int("status", status),
        log_int("us", clock_now_us() - request->received_at_us), log_int("each", good ? every : 1));
}
