// SPDX-License-Identifier: Apache-2.0
// An answer that goes on: server-sent events (WHATWG HTML, 9.2) for as long as the client listens.
// What is written goes out once a client and 100 ms, or as soon as it is 16 KiB. Law: no client
// holds more than 64 KiB of memory, and none holds up another: one that does not read gets a
// `reset` and is closed. A comment every 15 s keeps what stands between from closing it. When the
// server stops, each stream ends after what was written.
#pragma once

#include "common/base/buf.h"
#include "common/http/server.h"

enum {
    HTTP_STREAM_QUEUE_MAX = 64 * 1024, // bytes that a client has not taken yet
    HTTP_EVENT_MAX = 32 * 1024,        // that one write may have
};

typedef struct HttpStream HttpStream;

// Answers the request with 200 and text/event-stream, and the headers that were set; the request is
// gone after it. NULL: it was answered otherwise (503 when there is no place, HEAD), or the client
// is gone; on_end does not come then. Else on_end comes once, from the loop and never inside a call
// of ours, and the stream is gone: the client has left or was too slow, the server stops, or the
// stream was closed.
HttpStream *http_stream_begin(HttpRequest *request, void (*on_end)(void *ctx), void *ctx);
// Whole events (http_event_write), copied. false: the stream is at its end, on_end comes.
bool http_stream_write(HttpStream *stream, Str events);
// Bytes that its client has not taken yet; for writers that can wait for it.
size_t http_stream_unsent(const HttpStream *stream);
// Ends it after what was written; on_end comes later.
void http_stream_close(HttpStream *stream);
int64_t http_server_streams(const HttpServer *server); // that are open

// Appends one event. id: the event's `id`, which the client sends as Last-Event-ID when it comes
// back; 0: none. name: its type. data: one line.
void http_event_write(Buf *out, uint64_t id, const char *name, Str data);
