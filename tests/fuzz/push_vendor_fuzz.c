// SPDX-License-Identifier: Apache-2.0
// links: stentor_vendor
// Vendors of pushes, chosen by the first byte. With an even second byte the rest is an answer,
// whose status it chooses: there is always a result, in one line of UTF-8 within its bounds. With
// an odd one it is a line with the device's token, or a subscription, and the application's data: a
// request that comes of it goes to the vendor alone, and its headers are lines.
#include <stdlib.h>
#include <string.h>

#include "common/vendor/apns/apns.h"
#include "common/vendor/fcm/fcm.h"
#include "common/vendor/vendor_read.h"
#include "common/vendor/webpush/webpush.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_result(const VendorAnswer *answer, const SendResult *result)
{
    bool accepted = result->state == SEND_ANSWERED && result->reply == REPLY_ACCEPTED;
    require(result->state == SEND_ANSWERED || result->state == SEND_UNKNOWN);
    require(result->reply <= REPLY_ELSEWHERE && result->retry_after_ms <= 86400000);
    require(accepted == (answer->status >= 200 && answer->status < 300));
    require(result->text.len <= VENDOR_TEXT_MAX && str_is_utf8(result->text));
    require(!str_has_control(result->text) && !str_has_control(result->vendor_message_id));
    require(result->vendor_message_id.len <= VENDOR_MESSAGE_ID_MAX);
}

static void read_answer(const VendorApi *api, uint8_t choice, Str body, Arena *arena)
{
    static const int statuses[] = {200, 201, 400, 401, 403, 404, 410, 413, 429, 500, 502, 503};
    VendorAnswer answer = {
        .status = statuses[choice / 2 % (sizeof statuses / sizeof *statuses)],
        .headers = &(VendorPair){STR("apns-id"), body},
        .header_count = 1,
        .body = body,
    };
    SendResult result;
    api->read(&answer, arena, &result);
    check_result(&answer, &result);
    if (api->stale != NULL) {
        api->stale(&answer, arena);
    }
    VendorBearer bearer;
    Error err = {0};
    if (api->granted != NULL && api->granted(&answer, arena, &bearer, &err)) {
        require(bearer.text.len > 0 && !str_has_control(bearer.text));
        require(bearer.refresh_us < bearer.expires_us);
    }
}

static bool goes_to_push_service(Str url)
{
    static const char *const ends[] = {
        "//fcm.googleapis.com", "//updates.push.services.mozilla.com", ".push.apple.com",
        ".notify.windows.com", "//api.push.apple.com"};
    size_t at = strlen("https://");
    require(str_starts(url, STR("https://")));
    while (at < url.len && strchr("/?#:", url.ptr[at]) == NULL) {
        at++;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        Str end = str_from(ends[i]), host = str_slice(url, 0, at);
        if (host.len > end.len &&
            str_eq_nocase(str_slice(host, host.len - end.len, host.len), end)) {
            return true;
        }
    }
    return false;
}

static void build(const VendorApi *api, Str rest, Arena *arena)
{
    static const VendorPair settings[] = {
        {{"team_id", 7}, {"T", 1}},
        {{"topic", 5}, {"com.example", 11}},
        {{"subject", 7}, {"mailto:a", 8}}};
    const char *secret = "{\"project_id\":\"p\",\"client_email\":\"e\",\"private_key_id\":\"k\","
                         "\"private_key\":\"x\"}";
    VendorAccount account = {
        .name = STR("fuzz"),
        .id = STR("K"),
        .secret = str_from(secret),
        .bearer = STR("b"),
        .settings = settings,
        .setting_count = sizeof settings / sizeof *settings,
    };
    VendorMail push = {.notification_id = STR("ntf_01M82XS89VEV77VD8AS0MCMH0B"), .text = STR("t")};
    VendorRequest request;
    Error err = {0};
    str_split(&rest, '\n', &push.to.address);
    push.data = rest;
    if (api->audience != NULL) {
        require(!str_has_control(api->audience(&push, arena)));
    }
    if (!api->build(&push, &account, 1, arena, &request, &err)) {
        require(err.kind == ERROR_PERMANENT);
        return;
    }
    require(request.body.len > 0 && request.body.len < 65536 && goes_to_push_service(request.url));
    for (size_t i = 0; i < request.header_count; i++) {
        require(!str_has_control(request.headers[i].value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const VendorApi *const vendors[] = {&fcm_api, &apns_api, &webpush_api};
    if (size < 2) {
        return 0;
    }
    const VendorApi *api = vendors[data[0] % (sizeof vendors / sizeof *vendors)];
    Arena *arena = arena_new(0);
    Str rest = str_of(data + 2, size - 2);
    if (data[1] % 2 == 0) {
        read_answer(api, data[1], rest, arena);
    } else {
        build(api, rest, arena);
    }
    arena_free(arena);
    return 0;
}
