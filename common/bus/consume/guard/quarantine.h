// SPDX-License-Identifier: Apache-2.0
// What a poison message (poison.h) leaves behind: a dead letter with its bytes, and the end of the
// notification that it is about. Pure but for the time, which is an argument.
//
// Law: what ends who reads it is not unpacked here. Of the payload only the frames of its outer
// fields are walked, forward, without allocation or recursion, for an id, a channel and a number;
// each is believed only when it is well-formed (tests/fuzz/quarantine_fuzz.c).
#pragma once

#include "common/base/id.h"
#include "common/bus/jetstream/bus.h"
#include "common/model/enums.h"

// Whose notification a message of REQUEST, RENDERED or DEFERRED brings on.
typedef struct PoisonWork {
    char notification_id[ID_SIZE];
    Channel channel;
    uint32_t resends;
} PoisonWork;

// false: it is about no notification of this tenant, or that cannot be seen.
bool poison_work(const char *stream, Str payload, Str tenant, PoisonWork *ret);

typedef struct Quarantine {
    BusOut letter;
    BusOut end; // the status `failed`, reason code "poison_message"
    bool has_end;
} Quarantine;

// Everything lives in `arena`; the same message has the same ids. false: cannot be packed.
bool quarantine_pack(
    const BusMessage *message, const char *stage, uint32_t deaths, int64_t now_us, Arena *arena,
    Quarantine *ret);
