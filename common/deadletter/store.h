// SPDX-License-Identifier: Apache-2.0
// One letter of DEAD by its sequence: read from JetStream, deleted from it.
#pragma once

#include "common/bus/jetstream/bus.h"

// Asks for the letter; on_reply hears JetStream's answer, for letter_reply().
void letter_ask(Bus *bus, uint64_t sequence, BusReply on_reply, void *ctx);
// A reply of $JS.API.STREAM.MSG.GET.DEAD as the message that it holds. *ret_found false: there is
// none. ERROR_PERMANENT: JetStream's refusal, or not such a reply.
bool letter_reply(Str reply, Arena *arena, BusMessage *ret, bool *ret_found, Error *err);

// Deletes the letter; on_reply hears the answer, for letter_deleted(). `erase` overwrites it on
// disk, which takes JetStream five times as long: for what a person drops. What was sent again is
// in another stream now.
void letter_delete(Bus *bus, uint64_t sequence, bool erase, BusReply on_reply, void *ctx);
// true: deleted. ERROR_CONFLICT: it was not there. ERROR_PERMANENT: JetStream's refusal, or not
// such a reply; the letter may still be there.
bool letter_deleted(Str reply, Error *err);
