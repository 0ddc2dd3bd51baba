// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/http/transport.h"

void transport_take_headers(const TransportCall *call, HttpCallHeader ret[HTTP_CALL_HEADERS_MAX])
{
    const VendorRequest *request = call->request;
    for (size_t i = 0; i < request->header_count && i < VENDOR_HEADERS_MAX; i++) {
        ret[i] = (HttpCallHeader){
            arena_cstr(call->arena, request->headers[i].name),
            arena_cstr(call->arena, request->headers[i].value)};
    }
}

void transport_done(
    TransportCall *call, const HttpAnswer *answer, const HttpAnswerHeader *headers, size_t count)
{
    VendorPair *pairs = arena_array(call->arena, count + 1, sizeof *pairs);
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (VendorPair){headers[i].name, headers[i].value};
    }
    call->on_done(call, answer, pairs, count);
}
