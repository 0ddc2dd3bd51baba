// SPDX-License-Identifier: Apache-2.0
// links: stentor_bus
#include <stdlib.h>

#include "common/bus/jetstream/ack_subject.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AckSubject ack;
    Str subject = str_of(data, size);
    if (ack_subject_parse(subject, &ack) &&
        (ack.stream.ptr < subject.ptr ||
         ack.consumer.ptr + ack.consumer.len > subject.ptr + size)) {
        abort(); // a token outside the subject
    }
    return 0;
}
