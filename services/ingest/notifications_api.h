// SPDX-License-Identifier: Apache-2.0
// The HTTP surface: POST /v1/notifications. Checks in the order route, method, readiness, key,
// tenant, body, template; hands what is right to accept and answers when it is committed. Law:
// every refusal is a problem document (RFC 9457); one that concerns a field names it.
#pragma once

#include "common/http/server.h"
#include "services/ingest/accept.h"
#include "services/ingest/auth.h"
#include "services/ingest/catalog.h"

typedef struct HttpApi {
    Accept *accept;
    const Auth *auth;
    const Catalog *catalog;
    IngestMetrics *metrics;
    // NULL: requests are taken; else why not ("configuration is being read").
    const char *(*unready)(void *ctx);
    void *unready_ctx;
} HttpApi;

void http_api_handle(void *ctx, HttpRequest *request); // an HttpHandler; ctx is an HttpApi
