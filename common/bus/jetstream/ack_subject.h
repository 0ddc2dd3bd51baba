// SPDX-License-Identifier: Apache-2.0
// The reply subject of a JetStream delivery: it says where the message stands. Both forms (ADR-15):
//   $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<ns>.<pending>
//   $JS.ACK.<domain>.<account hash>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer
//   seq>.<ns>.<pending>[.<random>]
#pragma once

#include "common/base/str.h"

typedef struct AckSubject {
    Str stream;
    Str consumer; // both point into the subject
    uint32_t delivered;
    uint64_t stream_sequence;
    uint64_t consumer_sequence;
    int64_t stored_at_us;
    uint64_t pending; // messages of the consumer behind this one
    unsigned breaks;  // of the link when it arrived (link.h); not part of the subject
} AckSubject;

bool ack_subject_parse(Str subject, AckSubject *ret); // false: it is not one
