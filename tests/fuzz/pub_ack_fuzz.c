// SPDX-License-Identifier: Apache-2.0
// links: stentor_bus
#include <stdlib.h>

#include "common/bus/jetstream/pub_ack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PubAck ack;
    Error err = {0};
    bool stored = pub_ack_parse(str_of(data, size), &ack, &err);
    if (stored ? ack.sequence == 0 : err.kind == ERROR_NONE) {
        abort(); // success without a sequence, or failure without a reason
    }
    return 0;
}
