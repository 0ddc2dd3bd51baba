// SPDX-License-Identifier: Apache-2.0
// Discord: "content" and "embeds"; no mention wakes a user or a role, whatever the text holds. With
// ?wait=true it answers with the message's id, and says what is wrong. It bans an IP address for
// answering it 401, 403 or 429 10,000 times in ten minutes: an endpoint that refuses is left at
// once.
#include "common/vendor/chat/chat.h"
#include "common/vendor/vendor_read.h"

enum { BODY_BYTES_MAX = 64 * 1024, RETRY_AFTER_MAX_MS = 86400000 };

static bool is_host(Str host)
{
    static const char *const hosts[] = {
        "discord.com", "discordapp.com", "ptb.discord.com", "canary.discord.com"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        if (str_eq(host, str_from(hosts[i]))) {
            return true;
        }
    }
    return false;
}

static bool takes(Str address)
{
    ChatUrl url;
    return chat_url(address, &url) && is_host(url.host) &&
           str_starts(url.target, STR("/api/webhooks/"));
}

static bool build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    json_t *embeds = NULL;
    if (!chat_check(&discord_api, mail, account, DISCORD_TEXT_MAX, err) ||
        !chat_member(mail, "embeds", JSON_ARRAY, DISCORD_EMBEDS_MAX, &embeds, err)) {
        return false;
    }
    if (mail->text.len == 0 && embeds == NULL) {
        return error_set(err, ERROR_PERMANENT, "the message has neither 'text' nor 'data.embeds'");
    }
    *ret = (VendorRequest){
        .method = "POST", .url = chat_target(mail, account, "wait=true", arena), .body = STR_EMPTY};
    json_t *root = json_object();
    vendor_json_put_some(root, "content", mail->text);
    if (embeds != NULL) {
        vendor_json_put(root, "embeds", embeds);
    }
    vendor_json_put(root, "allowed_mentions", json_pack("{s:[]}", "parse"));
    return chat_set_json(&discord_api, ret, root, arena, err);
}

// {"retry_after": 0.65}, in seconds.
static uint32_t retry_after_ms(const json_t *body)
{
    double seconds = json_number_value(json_object_get(body, "retry_after"));
    double ms = seconds > 0 ? seconds * 1000 + 1 : 0;
    return ms < RETRY_AFTER_MAX_MS ? (uint32_t)ms : (uint32_t)RETRY_AFTER_MAX_MS;
}

static void read_answer(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    chat_read(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->state == SEND_ANSWERED && ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "id"), arena);
        return;
    }
    uint32_t wait_ms = retry_after_ms(body);
    if (ret->reply == REPLY_THROTTLED && wait_ms > 0) {
        ret->retry_after_ms = wait_ms;
    }
    int64_t code = vendor_member_int(body, "code", 0);
    if (body != NULL) {
        Str number = code > 0 ? str_from(arena_printf(arena, "%lld", (long long)code)) : STR_EMPTY;
        ret->text = vendor_clean_text(number, vendor_member_text(body, "message"), arena);
    }
}

const VendorApi discord_api = {
    .name = "discord",
    .channel = CHANNEL_WEBHOOK,
    .base_url = "https://discord.com",
    .message_max = BODY_BYTES_MAX,
    .recipients_max = 1,
    .build = build,
    .read = read_answer,
    .endpoint = true,
    .endpoint_burst = 5,
    .endpoint_interval_ms = 2000, // 30 a minute and channel
    .takes = takes,
    .addresses = "discord.com/api/webhooks",
};
