// SPDX-License-Identifier: Apache-2.0
// links: stentor_vendor
// Any bytes as an answer of each vendor: the first byte chooses the vendor, the second the status,
// then lines "Name: value" until an empty one, then the body. There is always a result, its texts
// are one line of UTF-8 within their bounds, and only a 2xx is an accepted mail.
#include <stdlib.h>
#include <string.h>

#include "common/vendor/vendor_read.h"

enum { HEADERS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t take_headers(Str *rest, VendorPair headers[HEADERS_MAX])
{
    size_t count = 0;
    Str line;
    while (str_split(rest, '\n', &line) && line.len > 0) {
        ptrdiff_t colon = str_find(line, ':');
        if (colon > 0 && count < HEADERS_MAX) {
            headers[count++] = (VendorPair){
                str_slice(line, 0, (size_t)colon),
                str_trim(str_slice(line, (size_t)colon + 1, line.len))};
        }
    }
    return count;
}

static void check(const VendorAnswer *answer, const SendResult *result)
{
    bool accepted = result->state == SEND_ANSWERED && result->reply == REPLY_ACCEPTED;
    require(result->state == SEND_ANSWERED || result->state == SEND_UNKNOWN);
    require(result->reply <= REPLY_ELSEWHERE && result->retry_after_ms <= 86400000);
    require(!accepted || (answer->status >= 200 && answer->status < 300));
    require(accepted || result->vendor_message_id.len == 0);
    require(result->text.len <= VENDOR_TEXT_MAX && str_is_utf8(result->text));
    require(!str_has_control(result->text));
    require(result->vendor_message_id.len <= VENDOR_MESSAGE_ID_MAX);
    require(!str_has_control(result->vendor_message_id));
}

static const VendorApi *vendor_of(uint8_t number)
{
    size_t count = 0;
    while (vendor_at(count) != NULL) {
        count++;
    }
    return vendor_at(number % count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 202, 400, 401, 403, 404, 408, 409, 420,
                                   422, 429, 500, 502, 503, 504, 301, 100, 599};
    if (size < 2) {
        return 0;
    }
    VendorPair headers[HEADERS_MAX];
    Str rest = str_of(data + 2, size - 2);
    VendorAnswer answer = {
        .status = statuses[data[1] % (sizeof statuses / sizeof *statuses)],
        .headers = headers,
        .read_us = INT64_C(1795723200000000)};
    answer.header_count = take_headers(&rest, headers);
    answer.body = rest;
    const VendorApi *api = vendor_of(data[0]);
    VendorMail mail = {
        .notification_id = STR("ntf_01M82XS89VEV77VD8AS0MCMH0B"),
        .attempt = 2,
        .text = STR("Hello"),
        .since_us = 1};
    Arena *arena = arena_new(0);
    SendResult result;
    memset(&result, 0xff, sizeof result); // read() sets every field
    api->read(&answer, arena, &result);
    check(&answer, &result);
    VendorQuota quota;
    if (api->quota != NULL && api->quota(&answer, arena, &quota) &&
        !(quota.per_s >= 0 && quota.per_day >= 0 && quota.used_of_day >= 0)) {
        abort();
    }
    if (api->asked != NULL) {
        SendResult settled = {0};
        int found = api->asked(&answer, &mail, arena, &settled);
        require(found >= -1 && found <= 1);
        require(found != 1 || (settled.reply == REPLY_ACCEPTED && answer.status == 200));
    }
    arena_free(arena);
    return 0;
}
