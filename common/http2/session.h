// SPDX-License-Identifier: Apache-2.0
// HTTP/2 (RFC 9113) of one connection as bytes in, bytes out: nghttp2 with what a caller that must
// not send twice has to know. No socket, no TLS, no clock, and only the client's side. Law: an
// exchange ends once, and is REFUSED only when the server says that it did nothing with it
// (REFUSED_STREAM, or GOAWAY with a lower last stream). Until the server's SETTINGS came nothing is
// started, until its first answer one exchange at a time, later as many as both sides allow.
// Callbacks come from within feed and pull, and must not call these two.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

enum { HTTP2_FIELDS_MAX = 64, HTTP2_GOAWAY_TEXT_MAX = 80 };

typedef struct Http2Session Http2Session;
typedef struct Http2Exchange Http2Exchange;

typedef enum Http2End {
    HTTP2_END_ANSWERED, // head and body came whole
    HTTP2_END_STOPPED,  // on_piece wanted no more, or answer_max was reached
    HTTP2_END_REFUSED,  // the server did nothing with it
    HTTP2_END_RESET,    // the server ended it: error_code
    HTTP2_END_INVALID,  // what came is not HTTP
    HTTP2_END_LONG_HEAD,
} Http2End;

typedef struct Http2Pair {
    Str name, value; // of a request: the name in lower case, no control characters
} Http2Pair;

// A request and its answer. The first part is the caller's, whose memory it stays until the end.
struct Http2Exchange {
    Str method, authority, path;
    const Http2Pair *headers; // beyond those, and content-length
    size_t header_count;
    Str body;
    size_t head_max, answer_max; // bytes of the answer, 1xx and trailers too
    // A piece of the answer's body; false: enough.
    bool (*on_piece)(Http2Exchange *exchange, Str bytes);
    void (*on_end)(Http2Exchange *exchange, Http2End how, uint32_t error_code);

    // The answer.
    int status;  // 0: none began
    bool head;   // status and headers came whole
    bool handed; // the whole request was taken for sending, and the server did not refuse it
    Buf text;    // of the headers
    struct {
        size_t name, name_len, value, value_len; // in `text`
    } fields[HTTP2_FIELDS_MAX];
    size_t field_count;

    // The session's own.
    Http2Session *session; // NULL: not started, or at its end
    int32_t stream;
    size_t body_taken, head_bytes, answer_bytes;
    bool ended, stopped, invalid, head_too_long;
    Http2Exchange *newer, *older;
};

void http2_exchange_done(Http2Exchange *exchange); // frees what the answer took
// Of the answer; empty when it is not there; case-insensitive.
Str http2_exchange_field(const Http2Exchange *exchange, Str name);

// streams_max: at once, or fewer when the server says so.
Http2Session *http2_session_new(uint32_t streams_max, Error *err);
// Exchanges that are open do not end: take them out before (http2_session_first, _abandon).
void http2_session_free(Http2Session *session);

// What came. false: the connection is of no use any more.
bool http2_session_feed(Http2Session *session, Str bytes, Error *err);
// Appends what is to be sent, about 64 KiB; more may be waiting. Appends nothing: there is nothing.
bool http2_session_pull(Http2Session *session, Buf *wire, Error *err);

size_t http2_session_room(const Http2Session *session); // exchanges that may be started now
size_t http2_session_open(const Http2Session *session); // that are on the way
// Needs room. false: it was not started, and the session takes no more (nothing ends).
bool http2_session_start(Http2Session *session, Http2Exchange *exchange);
// Its stream is reset; on_end does not come.
void http2_session_abandon(Http2Exchange *exchange);
Http2Exchange *http2_session_first(const Http2Session *session); // any that is open; NULL: none

bool http2_session_is_ready(const Http2Session *session);    // the server's SETTINGS came
bool http2_session_is_proven(const Http2Session *session);   // and an answer
bool http2_session_is_draining(const Http2Session *session); // nothing more can be started
bool http2_session_is_over(const Http2Session *session);     // nothing is to be read or written
// Of the server's GOAWAY, printable; "" when none came, or without a text.
const char *http2_session_goaway_text(const Http2Session *session);
void http2_session_ping(Http2Session *session);
uint64_t http2_session_pongs(const Http2Session *session);
// Says goodbye: GOAWAY, once it is pulled. Nothing more can be started.
void http2_session_leave(Http2Session *session);
