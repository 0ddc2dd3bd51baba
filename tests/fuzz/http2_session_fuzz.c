// SPDX-License-Identifier: Apache-2.0
// links: stentor_http2
// Any bytes as those of an HTTP/2 server, while as many requests are on the way as the session
// allows: the first byte is the size of the pieces in which they come, the second abandons some of
// them. Each request ends at most once, an answer has a status, a refused one had none, and all
// that is kept is within its bounds.
#include <stdlib.h>
#include <string.h>

#include "common/http2/session.h"

enum { SENT_MAX = 32, BOUND = 512, WIRE_MAX = 1 << 20 };

typedef struct Sent {
    Http2Exchange exchange; // the first member
    size_t got;
    int ends;
} Sent;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool on_piece(Http2Exchange *exchange, Str bytes)
{
    Sent *sent = (Sent *)(void *)exchange;
    sent->got += bytes.len;
    require(sent->ends == 0 && bytes.len > 0 && sent->got <= BOUND);
    return sent->got % 7 != 6;
}

static void on_end(Http2Exchange *exchange, Http2End how, uint32_t code)
{
    Sent *sent = (Sent *)(void *)exchange;
    (void)code;
    require(++sent->ends == 1);
    require(exchange->session == NULL);
    require(how != HTTP2_END_ANSWERED || (exchange->head && exchange->status >= 200));
    require(how != HTTP2_END_REFUSED || (exchange->status == 0 && !exchange->handed));
    require(exchange->field_count <= HTTP2_FIELDS_MAX && exchange->text.len <= BOUND);
    require(http2_exchange_field(exchange, STR("content-type")).len <= BOUND);
}

static size_t start_all(Http2Session *session, Sent *sent, size_t count, unsigned abandons)
{
    while (count < SENT_MAX && http2_session_room(session) > 0) {
        Http2Exchange *exchange = &sent[count].exchange;
        *exchange = (Http2Exchange){
            .method = STR("POST"),
            .authority = STR("a"),
            .path = STR("/"),
            .body = count % 2 == 0 ? STR("body") : STR_EMPTY,
            .head_max = BOUND,
            .answer_max = BOUND,
            .on_piece = on_piece,
            .on_end = on_end,
        };
        if (!http2_session_start(session, exchange)) {
            break;
        }
        count++;
        if ((abandons >> (count % 8) & 1U) != 0) {
            http2_session_abandon(exchange);
            sent[count - 1].ends = 1;
        }
    }
    return count;
}

static bool turn(Http2Session *session, Str bytes, Buf *wire)
{
    Error err = {0};
    if (!http2_session_feed(session, bytes, &err)) {
        return false;
    }
    size_t before;
    do {
        before = wire->len;
        if (!http2_session_pull(session, wire, &err)) {
            return false;
        }
    } while (wire->len > before);
    buf_clear(wire);
    return !http2_session_is_over(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    static Sent sent[SENT_MAX];
    memset(sent, 0, sizeof sent);
    Error err = {0};
    Http2Session *session = http2_session_new(16, &err);
    Buf wire;
    buf_init(&wire, WIRE_MAX);
    size_t piece = (size_t)data[0] + 1;
    size_t count = 0;
    Str rest = str_of(data + 2, size - 2);
    bool goes_on = turn(session, STR_EMPTY, &wire);
    while (goes_on && rest.len > 0) {
        Str part = str_slice(rest, 0, piece);
        rest = str_slice(rest, part.len, rest.len);
        goes_on = turn(session, part, &wire);
        count = start_all(session, sent, count, data[1]);
        goes_on = goes_on && turn(session, STR_EMPTY, &wire);
    }
    for (Http2Exchange *open; (open = http2_session_first(session)) != NULL;) {
        require(((Sent *)(void *)open)->ends == 0);
        http2_session_abandon(open);
    }
    for (size_t i = 0; i < count; i++) {
        http2_exchange_done(&sent[i].exchange);
    }
    http2_session_free(session);
    buf_done(&wire);
    return 0;
}
