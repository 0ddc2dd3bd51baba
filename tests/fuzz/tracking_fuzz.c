// SPDX-License-Identifier: Apache-2.0
// links: stentor_render
// Any html: tracked, it is as long as before plus what was added, nothing else has changed, and
// tracking it once more changes no link again.
#include <stdlib.h>
#include <string.h>

#include "common/render/tracking.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const MailLinkKey key = {.bytes = {{7}}, .count = 1};
    static const Str untouched[] = {{"https://l.test/v1/click/", 24}};
    Tracking tracking = {
        .key = &key,
        .url = STR("https://l.test"),
        .tenant = STR("acme"),
        .notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"),
        .issued_at_us = INT64_C(1790000000000000),
        .clicks = true,
        .untouched = untouched,
        .untouched_count = 1,
    };
    Buf html;
    buf_init(&html, 64 * 1024 + 4000 * (size + 1));
    buf_append(&html, data, size);
    size_t links = tracking_apply(&tracking, &html);
    require(!html.full && html.len + (MAIL_LINK_URL_MAX + 1) * links >= size);
    require(links > 0 || str_eq(buf_view(&html), str_of(data, size)));
    require(links >= TRACKING_LINKS_MAX || tracking_apply(&tracking, &html) == 0);
    tracking.clicks = false;
    tracking.opens = true;
    require(tracking_apply(&tracking, &html) == (html.len > 0 ? 1 : 0) || size == 0);
    buf_done(&html);
    return 0;
}
