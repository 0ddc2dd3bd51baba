// SPDX-License-Identifier: Apache-2.0
// Dead letters of workers and projectors: one packed stentor.v1.DeadLetter on
// ntf.dead.<stage>.<tenant>, its id derived from stage, stream and place: an input has one dead
// letter however often it is written, and one from each stage that refuses it.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct DeadLetterSpec {
    const char *stage;
    const char *reason;
    Str reason_code;  // of the notification's end, when that was published; empty: it has none
    Str last_attempt; // a packed stentor.v1.Attempt, or empty; it stands behind those that a
                      // RENDERED_* payload carries
    int64_t produced_at_us; // of a command; 0: none
} DeadLetterSpec;

// The notification's id is the payload's own, as far as it can be read. Everything *ret points to
// lives in `arena`. The tenant is the subject's last token, where it can be one. A payload near the
// size limit loses its end so that the dead letter fits. Of an event of EVENTS the letter keeps
// what message->kept says, no id that could be an address, and of a sealed one no reason that quotes
// one. false: could not be packed.
bool dead_letter_pack(
    const BusMessage *message, const DeadLetterSpec *spec, Arena *arena, BusOut *ret);
// The same of an input that ends who reads it: the payload goes along and is not looked at, so the
// caller says whose notification it is, or "unknown"; a tenant that the subject does not have is.
bool dead_letter_pack_unread(
    const BusMessage *message, const DeadLetterSpec *spec, Str notification, Arena *arena,
    BusOut *ret);
// Which input of its stream it is. An event that is published again beyond the window of duplicates
// is stored twice and is one input: its own id tells. The sequence, where applications choose the
// ids (EVENTS), or where there is none.
const char *dead_letter_place(const BusMessage *message, Arena *arena);
