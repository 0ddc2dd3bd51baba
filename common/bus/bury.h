// SPDX-License-Identifier: Apache-2.0
// Dead letters of workers and projectors: one packed stentor.v1.DeadLetter on
// ntf.dead.<stage>.<tenant>, its id derived from stream and sequence so that burying twice is
// burying once.
#pragma once

#include "common/bus/bus.h"

// Everything *ret points to lives in `arena`. The tenant is the subject's last token, where it can
// be one. A payload near the size limit loses its end so that the letter fits. false: could not be
// packed.
bool bury_pack(
    const BusMessage *message, const char *stage, const char *reason, Arena *arena, BusOut *ret);
