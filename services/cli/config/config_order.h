// SPDX-License-Identifier: Apache-2.0
// An entry that an earlier version stored in CONFIG does not name the message that it replaces
// (config_store.h),
// so a service that was taken over could have it stored again. `stentor migrate` ends that: such an
// entry is stored again in its own place with that header, and the earlier messages without it are
// deleted. Law: only what needs it is touched, and nothing that a running service stores
// meanwhile is replaced, so it may run at any time and be killed anywhere: the next run does the
// rest.
#pragma once

#include "common/session/session.h"

typedef struct ConfigOrdered {
    int64_t rewritten;
    int64_t forgotten; // earlier messages, deleted
    int64_t left;      // entries that a service of an earlier version stored meanwhile
} ConfigOrdered;

bool config_order(Session *session, Arena *arena, ConfigOrdered *ret, Error *err);
// Does the message name the one that it replaces?
bool config_is_ordered(const BusMessage *message);
