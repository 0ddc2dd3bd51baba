// SPDX-License-Identifier: Apache-2.0
// One loop and one connection to NATS for the length of a command: open, start something, run until
// finished, close.
#pragma once

#include "common/bus/jetstream/get_message.h"

typedef struct SessionOptions {
    const char *nats_url;
    const char *user; // "": none
    const char *password;
} SessionOptions;

typedef struct Session {
    uv_loop_t loop;
    Bus *bus;
    uv_timer_t timer;
    bool opening; // waits for the first connection
    bool finished;
    bool timed_out;
    Error err; // kind ERROR_NONE when all went well
} Session;

// Connects within 5 s, else ERROR_TRANSIENT with the address.
bool session_open(Session *session, const SessionOptions *options, Error *err);
// From a callback: what the command waited for is over; err NULL for success.
void session_finish(Session *session, const Error *err);
// Runs the loop until session_finish or the time-out (0: none). false: failed or timed out.
bool session_run(Session *session, int timeout_ms, Error *err);
void session_close(Session *session); // only after a session_open that did not fail

// The answer to one call. session_run also ends for others (another call's session_finish), so
// whatever writes into its caller's frame is waited for by its own answer. Only for what always
// answers: a call with a deadline, the end of what is being freed.
typedef struct SessionWait {
    Session *session;
    bool done;
    Error err; // of the answer
} SessionWait;

void session_wait_end(SessionWait *wait, const Error *err); // from the call's callback
bool session_wait(SessionWait *wait, Error *err);           // false: the answer was an error

// Publishes one event and waits until it is stored.
bool session_publish(Session *session, const BusOut *out, uint64_t *ret_sequence, Error *err);
// One request to JetStream's API. The reply is copied to the arena.
bool session_request(
    Session *session, const char *subject, Str payload, Arena *arena, Str *ret_reply, Error *err);
// One stored message, copied to the arena; *ret_found false: there is none, and *ret is empty.
bool session_get_message(
    Session *session, const MessageQuery *query, Arena *arena, BusMessage *ret, bool *ret_found,
    Error *err);
