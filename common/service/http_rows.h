// SPDX-License-Identifier: Apache-2.0
// The rows of options that every service with an HTTP server of its own has: HTTP_LIMIT_ROWS(
// "STENTOR_INGEST", IngestOptions) where IngestOptions has `HttpLimits limits`.
#pragma once

#include "common/http/server.h"
#include "common/service/options.h"

// clang-format off
#define ACCESS_LOG_ROW(prefix, type, each) \
    {prefix "_ACCESS_LOG", OPTION_INT, offsetof(type, limits.access_every), \
     each, 0, 1000000, false, \
     "a line in the log for each so-many-th request that is answered below 400, and for all that are refused; 0: none"}
#define HTTP_LIMIT_ROWS(prefix, type) \
    {prefix "_CONNECTIONS", OPTION_INT, offsetof(type, limits.connections), \
     "1024", 2, 65536, false, \
     "connections at once; beyond it the one that has waited longest without showing a key is closed for a new one"}, \
    {prefix "_CLIENT_CONNECTIONS", OPTION_INT, offsetof(type, limits.client_connections), \
     "256", 1, 65536, false, \
     "of these, connections of one address (IPv6: /64) that have shown no valid key or signature; beyond it 429"}, \
    {prefix "_TRUSTED_PROXIES", OPTION_TEXT, offsetof(type, limits.proxies), \
     "", 0, 0, false, \
     "addresses and ranges (10.0.0.0/8, ::1) whose X-Forwarded-For names the client; they have no limit themselves"}, \
    {prefix "_HEAD_MS", OPTION_INT, offsetof(type, limits.head_ms), \
     "10000", 100, 3600000, false, \
     "how long a request's headers may take from the accept on, in milliseconds; beyond it 408"}, \
    {prefix "_REQUEST_MS", OPTION_INT, offsetof(type, limits.request_ms), \
     "30000", 100, 3600000, false, \
     "how long its body may take, and reading the answer; each 64 KiB that moved earns a second; beyond it 408"}, \
    {prefix "_BODIES_BYTES", OPTION_INT, offsetof(type, limits.bodies_bytes), \
     "268435456", 1048576, 1099511627776, false, \
     "memory for all bodies; half of it for requests without a key, an eighth for one address; beyond it 503"}
// clang-format on
