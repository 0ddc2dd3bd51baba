// SPDX-License-Identifier: Apache-2.0
// One letter of DEAD deleted by its sequence. Reading one: get_message.h.
#pragma once

#include "common/bus/jetstream/bus.h"

// Deletes the letter; on_reply gets the answer, for letter_deleted(). `erase` overwrites it on
// disk, which takes JetStream five times as long: for what an operator drops. What was sent again
// is in another stream now.
void letter_delete(Bus *bus, uint64_t sequence, bool erase, BusReply on_reply, void *ctx);
// true: deleted. ERROR_CONFLICT: it was not there. ERROR_PERMANENT: JetStream's refusal, or not
// such a reply; the letter may still be there.
bool letter_deleted(Str reply, Error *err);
