// SPDX-License-Identifier: Apache-2.0
// What a command needs to read sealed content: NATS, the master key, Postgres for recipients' keys
// and for history, and the segments where a stream is past its age. Blocking.
#pragma once

#include "common/db/keyring.h"
#include "common/epochs/epoch_folder.h"
#include "common/eventlog/log_reader.h"
#include "common/session/session.h"

typedef struct ContentOptions {
    SessionOptions session;
    const char *database_url;
    const char *master_key_file;
    const char *epoch_keys_dir; // "": none
    LogPast *past;              // NULL: streams are all there is
    bool kept;                  // also what a legal duty keeps of an erased person
} ContentOptions;

typedef struct ContentSession {
    Session session;
    bool open;
    EpochFolder *epochs;
    MasterKey *master; // compared with the registered keys
    DbPool *pool;
    Keyring *keyring;
    LogPast *past;
    Arena *arena; // of the command
} ContentSession;

// Borrows past and arena. Closed also after a failure.
bool content_session_open(
    ContentSession *session, const ContentOptions *options, Arena *arena, Error *err);
void content_session_close(ContentSession *session);

// One message, valid during the call; false: enough.
typedef bool (*ContentEach)(void *ctx, const BusMessage *message);
// What a stream and its segments hold from one time to another (0: to the end), in order. What was
// lost in between is passed over.
typedef struct ContentWalk {
    const char *stream;
    const char *filter; // NULL: every subject
    int64_t from_us, to_us;
    ContentEach each;
    void *ctx;
} ContentWalk;
bool content_walk(ContentSession *session, const ContentWalk *walk, Error *err);

// The keys of these wants. A want without a key afterwards: destroyed or restricted.
bool content_keys(ContentSession *session, KeyWant *wants, size_t count, Error *err);
