// SPDX-License-Identifier: Apache-2.0
#include "common/history/passed.h"

void history_passed_init(HistoryPassed *out, size_t max_bytes)
{
    *out = (HistoryPassed){.cut = false};
    buf_init(&out->ids, max_bytes);
}

void history_passed_done(HistoryPassed *passed)
{
    buf_done(&passed->ids);
}

void history_passed_note(HistoryPassed *passed, Str id, uint64_t sequence, uint64_t last)
{
    if (last != 0 && sequence > last) {
        return;
    }
    const char *comma = passed->ids.len > 0 ? "," : "";
    passed->cut = !buf_printf(&passed->ids, "%s" STR_FMT, comma, STR_ARG(id)) || passed->cut;
}
