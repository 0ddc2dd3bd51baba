// SPDX-License-Identifier: Apache-2.0
// One entry of CONFIG by its subject; many: config_walk.h.
#pragma once

#include "common/session/session.h"

// *ret_payload empty: there is no such entry. *ret_sequence: of its message, for a put that must
// replace exactly this one.
bool config_get(
    Session *session, Arena *arena, const char *subject, Str *ret_payload, uint64_t *ret_sequence,
    Error *err);

// Of its last message, which may be no entry at all; 0: there is none.
bool config_get_sequence(
    Session *session, Arena *arena, const char *subject, uint64_t *ret_sequence, Error *err);
