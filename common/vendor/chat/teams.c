// SPDX-License-Identifier: Apache-2.0
// Microsoft Teams, by the URL of a workflow ("When a Teams webhook request is received"): a message
// with one adaptive card. That of the application (`data.card`), or one that shows the text line by
// line, as runs of text, in which no markup counts. 202 says that the workflow was started, and
// nothing of the card.
#include "common/vendor/chat/chat.h"
#include "common/vendor/vendor_read.h"

static bool takes(Str address)
{
    ChatUrl url;
    return chat_url(address, &url) && url.target.len > 1 && !str_starts(url.host, STR(".")) &&
           (str_ends(url.host, STR(".logic.azure.com")) ||
            str_ends(url.host, STR(".environment.api.powerplatform.com")));
}

static json_t *line_of(Str text)
{
    json_t *run = json_pack("{s:s}", "type", "TextRun");
    vendor_json_put_str(run, "text", text.len > 0 ? text : STR(" "));
    return json_pack(
        "{s:s, s:s, s:[o]}", "type", "RichTextBlock", "spacing", "None", "inlines", run);
}

static json_t *card_of(Str text, Error *err)
{
    json_t *body = json_array();
    Str line;
    size_t count = 0;
    while (str_split(&text, '\n', &line)) {
        if (++count > TEAMS_LINES_MAX) {
            json_decref(body);
            (void)error_set(
                err, ERROR_PERMANENT, "the message's 'text' has over %d lines", TEAMS_LINES_MAX);
            return NULL;
        }
        Str shown = str_ends(line, STR("\r")) ? str_slice(line, 0, line.len - 1) : line;
        vendor_json_add(body, line_of(shown));
    }
    return json_pack(
        "{s:s, s:s, s:s, s:o}", "type", "AdaptiveCard", "$schema",
        "http://adaptivecards.io/schemas/adaptive-card.json", "version", "1.4", "body", body);
}

static bool build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    json_t *card = NULL;
    if (!chat_check(&teams_api, mail, account, TEAMS_BODY_MAX, err) ||
        !chat_member(mail, "card", JSON_OBJECT, 0, &card, err)) {
        return false;
    }
    if (card == NULL && mail->text.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the message has neither 'text' nor 'data.card'");
    }
    card = card != NULL ? card : card_of(mail->text, err);
    if (card == NULL) {
        return false;
    }
    *ret = (VendorRequest){
        .method = "POST", .url = chat_target(mail, account, "", arena), .body = STR_EMPTY};
    json_t *root = json_pack(
        "{s:s, s:[{s:s, s:o}]}", "type", "message", "attachments", "contentType",
        "application/vnd.microsoft.card.adaptive", "content", card);
    return chat_set_json(&teams_api, ret, root, arena, err);
}

// {"error": {"code": "WorkflowTriggerIsNotEnabled", "message": "..."}}
static void read_answer(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    chat_read(answer, arena, ret);
    const json_t *error = json_object_get(vendor_answer_object(answer, arena), "error");
    if (ret->reply != REPLY_ACCEPTED && error != NULL) {
        ret->text = vendor_clean_text(
            vendor_member_text(error, "code"), vendor_member_text(error, "message"), arena);
    }
}

const VendorApi teams_api = {
    .name = "teams",
    .channel = CHANNEL_WEBHOOK,
    .base_url = "https://prod.westeurope.logic.azure.com",
    .message_max = TEAMS_BODY_MAX,
    .recipients_max = 1,
    .build = build,
    .read = read_answer,
    .endpoint = true,
    .endpoint_burst = 4,
    .endpoint_interval_ms = 250,
    .takes = takes,
    .addresses = "*.logic.azure.com, *.environment.api.powerplatform.com",
};
