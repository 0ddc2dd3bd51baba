// SPDX-License-Identifier: Apache-2.0
// The work on keys, which one process of an installation does: it makes the next epoch key, has all
// data keys wrapped by it, and destroys the ones before when their time is over. Without a folder
// of epoch keys: all data keys are wrapped by the current master key, after a rotation of it. Each
// turn does what is due and ends; a turn that was killed anywhere is finished by the next one, of
// any process. It blocks (minutes, when millions of keys are wrapped again), so it runs in a thread
// of its own, with a connection, a master key and a folder of its own.
//
// Law: a key's file is durable before a program wraps by it, and Postgres hears of it last. A key
// is destroyed only after Postgres has said that it wraps nothing, `keep` later, and after the
// witness (AUDIT) has it.
#pragma once

#include "common/codec/epoch_keys.h"
#include "common/storage/storage.h"

typedef struct Keywork Keywork;

// An epoch key whose time is over.
typedef struct KeyworkEnding {
    uint32_t number;
    uint8_t id[KEY_ID_LEN];
    int64_t due_us; // the same at each try
} KeyworkEnding;

// Asked in the turn's thread before a key is destroyed, again after a turn that was killed. false:
// it stays, and the turn ends with *err.
typedef bool (*KeyworkWitness)(void *ctx, const KeyworkEnding *ending, Error *err);

typedef struct KeyworkOptions {
    const char *database_url; // strings are copied
    const char *application_name;
    const char *master_key_file;
    const char *epoch_folder; // "": no epoch keys
    const char *dump_folder;  // "": no dumps
    int64_t epoch_us;         // age at which the open epoch is followed by the next
    int64_t keep_us;          // how long an emptied epoch's key is kept
    int64_t dump_keep_us;     // how long a dump is kept
    StorageOptions storage;   // with a URL: dumps are stored there, too
    int64_t settle_us;        // between a key's making and its use: a shared folder's delay
    size_t bulk_min;          // so many keys to wrap go to a new table; fewer are updated
    KeyworkWitness witness;   // NULL: none
    void *witness_ctx;
} KeyworkOptions;

enum { KEYWORK_EVENTS_MAX = 16 };

typedef enum KeyworkDeed {
    KEYWORK_OPENED,    // the epoch wraps from now on
    KEYWORK_EMPTIED,   // it wraps nothing any more
    KEYWORK_DESTROYED, // its key is gone
} KeyworkDeed;

const char *keywork_deed_name(KeyworkDeed deed); // "opened", "emptied", "destroyed"

// What one turn found and did.
typedef struct KeyworkReport {
    bool held;         // this process does the work; else all below is 0
    bool again;        // there is more to do: soon, not at the next look
    int64_t opened_us; // of the open epoch; 0: there is none
    int64_t dumped_us; // the newest dump; 0: there is none
    double erasure_s;  // how long the oldest erasure waits that could go on; 0: none does
    uint64_t left;     // data keys that another than the current key wraps; counted to bulk_min
    uint64_t wrapped;  // wrapped again
    uint64_t failed;   // could not be: no key that is held opens them
    Error failure;     // why one of them could not be
    size_t event_count;
    struct {
        KeyworkDeed deed;
        uint32_t number;
        uint8_t id[KEY_ID_LEN];
    } events[KEYWORK_EVENTS_MAX];
} KeyworkReport;

Keywork *keywork_new(const KeyworkOptions *options);
void keywork_free(Keywork *work); // gives the work away; NULL-safe

// now_us: wall clock. *ret is filled in any case. ERROR_TRANSIENT: Postgres, the disk;
// ERROR_CONFIG: the file, the folder, a right; ERROR_CANCELLED: keywork_stop.
bool keywork_turn(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err);
// From another thread: the turn under way ends soon, and so does each later one.
void keywork_stop(Keywork *work);
