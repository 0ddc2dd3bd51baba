// SPDX-License-Identifier: Apache-2.0
// Slack: "text" in its mrkdwn, where & < > begin a link or a mention, and "blocks". 200 "ok". One
// message a second and URL.
#include <string.h>

#include "common/base/buf.h"
#include "common/vendor/chat/chat.h"
#include "common/vendor/vendor_read.h"

enum { BODY_BYTES_MAX = 256 * 1024 };

static bool takes(Str address)
{
    ChatUrl url;
    return chat_url(address, &url) && str_eq(url.host, STR("hooks.slack.com")) &&
           str_starts(url.target, STR("/services/")) && str_find(url.target, '?') < 0;
}

// A value that is not Slack's markup.
static json_t *escaped(Str text)
{
    Buf out;
    buf_init(&out, BODY_BYTES_MAX);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '&' || c == '<' || c == '>') {
            buf_cstr(&out, c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;");
        } else {
            buf_char(&out, c);
        }
    }
    json_t *value = vendor_json_str(buf_view(&out));
    buf_done(&out);
    return value;
}

static bool is_broadcast(Str text)
{
    return str_starts(text, STR("<!")) && !str_starts(text, STR("<!date^"));
}

// "<!channel>" and its like, which a value of a template may bring along, wake everyone.
static json_t *without_broadcasts(Str text)
{
    Buf out;
    buf_init(&out, BODY_BYTES_MAX);
    for (size_t i = 0; i < text.len; i++) {
        if (is_broadcast(str_slice(text, i, text.len))) {
            buf_cstr(&out, "&lt;");
        } else {
            buf_char(&out, text.ptr[i]);
        }
    }
    json_t *value = vendor_json_str(buf_view(&out));
    buf_done(&out);
    return value;
}

// No deeper than json_is_modest() lets anything be.
static json_t *quiet(const json_t *value)
{
    json_t *copy = NULL;
    size_t i = 0;
    const char *name = NULL;
    json_t *inner = NULL;
    switch (json_typeof(value)) {
    case JSON_STRING:
        return without_broadcasts((Str){json_string_value(value), json_string_length(value)});
    case JSON_ARRAY:
        copy = json_array();
        json_array_foreach(value, i, inner)
        {
            (void)json_array_append_new(copy, quiet(inner));
        }
        return copy;
    case JSON_OBJECT:
        copy = json_object();
        json_object_foreach((json_t *)(uintptr_t)value, name, inner)
        {
            (void)json_object_set_new(copy, name, quiet(inner));
        }
        return copy;
    default:
        return json_copy((json_t *)(uintptr_t)value);
    }
}

static bool build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    json_t *blocks = NULL;
    if (!chat_check(&slack_api, mail, account, SLACK_TEXT_MAX, err) ||
        !chat_member(mail, "blocks", JSON_ARRAY, SLACK_BLOCKS_MAX, &blocks, err)) {
        return false;
    }
    if (mail->text.len == 0 && blocks == NULL) {
        return error_set(err, ERROR_PERMANENT, "the message has neither 'text' nor 'data.blocks'");
    }
    *ret = (VendorRequest){
        .method = "POST", .url = chat_target(mail, account, "", arena), .body = STR_EMPTY};
    json_t *root = json_object();
    if (mail->text.len > 0) {
        vendor_json_put(root, "text", escaped(mail->text));
    }
    if (blocks != NULL) {
        vendor_json_put(root, "blocks", quiet(blocks));
    }
    json_decref(blocks);
    return chat_set_json(&slack_api, ret, root, arena, err);
}

// The body is one word: "ok", "no_service", "invalid_payload".
static void read_answer(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    chat_read(answer, arena, ret);
    if (ret->reply != REPLY_ACCEPTED) {
        ret->text = vendor_clean_text(STR_EMPTY, str_trim(answer->body), arena);
    }
}

const VendorApi slack_api = {
    .name = "slack",
    .channel = CHANNEL_WEBHOOK,
    .base_url = "https://hooks.slack.com",
    .message_max = BODY_BYTES_MAX,
    .recipients_max = 1,
    .build = build,
    .read = read_answer,
    .endpoint = true,
    .endpoint_burst = 3,
    .endpoint_interval_ms = 1000,
    .takes = takes,
    .addresses = "hooks.slack.com/services",
};
