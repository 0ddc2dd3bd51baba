// SPDX-License-Identifier: Apache-2.0
// SES' events through SNS, in both of its dialects: `eventType` (a configuration set's) and
// `notificationType` (an identity's). Source: docs.aws.amazon.com/ses, "Event publishing contents".
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/ses/sns_internal.h"

enum { BODY_MAX = 901120, RECIPIENTS_MAX = 50 };

// clang-format off
// By type; of a bounce by its type, or by its subtype where that is SES' own list.
static const CallbackKind KINDS[] = {
    {"Delivery",          NULL,                      STATUS_DELIVERED,  OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    {"Open",              NULL,                      STATUS_OPENED,     OUTCOME_OPENED,    "",                  SUPPRESSION_NONE},
    {"Click",             NULL,                      STATUS_CLICKED,    OUTCOME_CLICKED,   "",                  SUPPRESSION_NONE},
    {"Reject",            NULL,                      STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    {"Rendering Failure", NULL,                      STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    {"Complaint",         "OnAccountSuppressionList", STATUS_FAILED,    OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"Complaint",         NULL,                      STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",         SUPPRESSION_COMPLAINT},
    {"Bounce",            "Suppressed",              STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"Bounce",            "OnAccountSuppressionList", STATUS_FAILED,    OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"Bounce",            "MessageTooLarge",         STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"Bounce",            "ContentRejected",         STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"Bounce",            "AttachmentRejected",      STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"Bounce",            "Permanent",               STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {"Bounce",            NULL,                      STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
};
// clang-format on

// What an event's own object is called, and the list of its recipients.
typedef struct Part {
    const char *type, *object, *recipients;
} Part;

static const Part PARTS[] = {
    {"Delivery", "delivery", NULL},
    {"Open", "open", NULL},
    {"Click", "click", NULL},
    {"Reject", "reject", NULL},
    {"Rendering Failure", "failure", NULL},
    {"Complaint", "complaint", "complainedRecipients"},
    {"Bounce", "bounce", "bouncedRecipients"},
};

static const Part *find_part(Str type)
{
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        if (str_eq(type, str_from(PARTS[i].type))) {
            return &PARTS[i];
        }
    }
    return NULL;
}

static const CallbackKind *find_kind(Str type, const json_t *said)
{
    static const char *const details[] = {"bounceSubType", "complaintSubType", "bounceType"};
    const CallbackKind *kind = NULL;
    for (size_t i = 0; i < sizeof details / sizeof *details; i++) {
        Str detail = callback_text(said, details[i]);
        kind = callback_kind(KINDS, sizeof KINDS / sizeof *KINDS, type, detail);
        if (kind == NULL || kind->detail != NULL) {
            return kind;
        }
    }
    return kind;
}

// A tag's values are a list: {"nid": ["ntf_..."]}.
static Str find_tag(const json_t *mail, const char *name)
{
    const json_t *values = json_object_get(json_object_get(mail, "tags"), name);
    const json_t *value = json_array_get(values, 0);
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}

// Our Message-ID, where the mail's headers are included: SES' own stands beside it.
static Str find_message_id(const json_t *mail)
{
    size_t i;
    const json_t *header;
    json_array_foreach(json_object_get(mail, "headers"), i, header)
    {
        Str found = callback_notification_of(callback_text(header, "value"));
        if (found.len > 0 && str_eq_nocase(callback_text(header, "name"), STR("Message-ID"))) {
            return found;
        }
    }
    return STR_EMPTY;
}

static CallbackEvent read_event(
    const json_t *mail, const json_t *said, const CallbackKind *kind, Arena *arena)
{
    CallbackEvent event = callback_event(kind);
    int64_t attempt = 0;
    event.id = callback_id(said, "feedbackId");
    event.notification_id = callback_notification_of(find_tag(mail, "nid"));
    if (event.notification_id.len == 0) {
        event.notification_id = find_message_id(mail);
    }
    bool counted = str_to_i64(find_tag(mail, "attempt"), &attempt);
    event.attempt = counted && attempt > 0 && attempt <= INT16_MAX ? (int32_t)attempt : 0;
    event.message_id = callback_id(mail, "messageId");
    event.at_us = callback_time(callback_text(said, "timestamp"));
    if (event.at_us == 0) {
        event.at_us = callback_time(callback_text(mail, "timestamp"));
    }
    event.machine =
        kind->outcome == OUTCOME_OPENED && callback_is_machine(callback_text(said, "userAgent"));
    Str words = callback_text(said, "smtpResponse");
    words = words.len > 0 ? words : callback_text(said, "reason");
    event.text = callback_words(words, arena);
    return event;
}

static void add_recipient(
    CallbackBatch *batch, const CallbackEvent *event, const json_t *recipient, Arena *arena)
{
    CallbackEvent *one = &batch->events[batch->count++];
    *one = *event;
    one->email = callback_email(callback_text(recipient, "emailAddress"));
    one->enhanced_code = callback_id(recipient, "status");
    Str words = callback_text(recipient, "diagnosticCode");
    if (words.len > 0) {
        one->text = callback_words(words, arena);
    }
}

// One event for each recipient that is named: SES reports one mail to several together.
static void add_events(
    CallbackBatch *batch, const CallbackEvent *event, const json_t *recipients, Arena *arena)
{
    size_t count = json_array_size(recipients);
    for (size_t i = 0; i < count && i < RECIPIENTS_MAX; i++) {
        add_recipient(batch, event, json_array_get(recipients, i), arena);
    }
    if (count == 0) {
        batch->events[batch->count++] = *event;
    }
}

static bool read_message(Str message, Arena *arena, CallbackBatch *batch)
{
    // "Successfully validated SNS topic for Amazon SES event publishing." is such a message too.
    const json_t *root = callback_json(message, arena, NULL);
    Str type = callback_text(root, "eventType");
    type = type.len > 0 ? type : callback_text(root, "notificationType");
    const Part *part = find_part(type);
    const json_t *said = part != NULL ? json_object_get(root, part->object) : NULL;
    const CallbackKind *kind = said != NULL ? find_kind(type, said) : NULL;
    bool no_spam = str_eq(callback_text(said, "complaintFeedbackType"), STR("not-spam"));
    if (kind == NULL || no_spam) {
        return false;
    }
    CallbackEvent event = read_event(json_object_get(root, "mail"), said, kind, arena);
    const json_t *recipients =
        part->recipients != NULL ? json_object_get(said, part->recipients) : NULL;
    add_events(batch, &event, recipients, arena);
    return true;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    SnsMessage message;
    if (!sns_read(body, arena, &message, err)) {
        return false;
    }
    *ret = callback_batch(arena, RECIPIENTS_MAX);
    if (!str_eq(message.type, STR("Notification")) || !read_message(message.message, arena, ret)) {
        ret->ignored++;
    }
    return true;
}

static Str repeat_key(const CallbackRequest *request, Arena *arena)
{
    SnsMessage message;
    return sns_read(request->body, arena, &message, NULL) ? message.id : STR_EMPTY;
}

static Str make_none(Arena *arena)
{
    (void)arena;
    return STR("-----BEGIN CERTIFICATE-----");
}

const VendorCallback ses_callback = {
    .name = "ses",
    .channel = CHANNEL_EMAIL,
    .body_max = BODY_MAX,
    .needs_capability = true,
    .one_address = true,
    .bad_status = 401,
    .repeats_s = SNS_REPEATS_S,
    .key_check = sns_check_certificate,
    .key_none = make_none,
    .verify = sns_verify,
    .repeat_key = repeat_key,
    .events = read_events,
};
