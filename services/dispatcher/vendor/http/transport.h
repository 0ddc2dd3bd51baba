// SPDX-License-Identifier: Apache-2.0
// Transport: how the requests of HttpVendor reach the network: HTTP/1.1 (transport_http1.c, by
// common/http/client) or HTTP/2 (transport_http2.c, by common/http2). Both say what became of a
// call in the same words (HttpAnswer, http_certainty), and neither knows the other.
#pragma once

#include "common/http/client/http_client.h"
#include "common/http2/http2_client.h"
#include "common/vendor/vendor_api.h"

typedef struct TransportCall TransportCall;

// The end, exactly once, from the loop. The headers are in the call's arena.
typedef void (*TransportDone)(
    TransportCall *call, const HttpAnswer *answer, const VendorPair *headers, size_t header_count);

// One call; it and what it points to is the caller's until on_done.
struct TransportCall {
    const VendorRequest *request;
    Arena *arena;
    int lane;           // below HTTP_CALL_LANES
    int64_t connect_ms; // at HTTP/2 a call may wait for another one's connection, too
    int64_t whole_ms;
    int64_t held_ms; // from now on, its body must not be written later than this; 0: never mind
    bool (*on_piece)(TransportCall *call, Str bytes); // of the answer's body; false: enough
    TransportDone on_done;
    void *ctx;
};

typedef struct Transport Transport;
struct Transport {
    void *client; // borrowed, with a guard: a credential never crosses a network in clear
    void (*call)(const Transport *transport, TransportCall *call);
    const char *pool; // what shares connections, where one carries many calls: a credential's calls
    // One connection carries many calls: that it ended says nothing about any of them.
    bool shares;
};

Transport transport_http1(HttpClient *client);
// pool: as Http2CallOptions; borrowed.
Transport transport_http2(Http2Client *client, const char *pool);

// For both: the request's headers for the client, and the answer's for the caller.
void transport_take_headers(const TransportCall *call, HttpCallHeader ret[HTTP_CALL_HEADERS_MAX]);
void transport_done(
    TransportCall *call, const HttpAnswer *answer, const HttpAnswerHeader *headers, size_t count);

enum { TRANSPORT_ANSWER_HEADERS_MAX = 64 };
