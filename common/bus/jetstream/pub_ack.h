// SPDX-License-Identifier: Apache-2.0
// JetStream's answer to a publish: {"stream":"S","seq":7} or
// {"error":{"code":..,"err_code":..,"description":".."}, ...}. Success is no error AND a sequence
// above 0 (a 2.10 cluster answers seq 0 for what it may never store). Hot: the positive answer is
// read without a JSON parser.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct PubAck {
    uint64_t sequence;
    bool duplicate;
    int error_code; // JetStream's err_code; 0 when it gave none
} PubAck;

// false: refused or not an answer. err is PERMANENT when the same message can never be stored,
// CONFLICT when another one stands where it was to replace one (`sequence` is then that other's; 0:
// nothing stands there, or the server does not say), else TRANSIENT.
bool pub_ack_parse(Str payload, PubAck *ret, Error *err);
