// SPDX-License-Identifier: Apache-2.0
// links: stentor_bus
// Any bytes as a mark of what is in hand: refused, or written again it reads as the same.
#include <stdlib.h>
#include <string.h>

#include "common/bus/consume/guard/poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const PoisonMark *mark)
{
    Buf text;
    PoisonMarks again = {0};
    buf_init(&text, 64 * 1024);
    if (!poison_mark_write(&text, mark->stream, mark->size, mark->inputs, mark->count) ||
        !poison_marks_put(&again, STR("again"), 1, buf_view(&text)) || again.count != 1 ||
        again.at[0].count != mark->count || again.at[0].size != mark->size ||
        strcmp(again.at[0].stream, mark->stream) != 0) {
        abort();
    }
    for (size_t i = 0; i < mark->count; i++) {
        if (poison_evidence(&again, STR("me"), mark->stream, &mark->inputs[i]).deaths != 1) {
            abort();
        }
    }
    poison_marks_done(&again);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PoisonMarks marks = {0};
    if (poison_marks_put(&marks, STR("a"), 1, str_of(data, size)) && marks.count == 1) {
        check_again(&marks.at[0]);
    }
    poison_marks_done(&marks);
    return 0;
}
