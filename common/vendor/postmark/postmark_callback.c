// SPDX-License-Identifier: Apache-2.0
// Postmark's webhooks: one JSON object. Postmark signs nothing: what protects is the capability in
// the URL and Basic authentication. 403 would stop its repeats, so it is never the answer. Source:
// postmarkapp.com/developer/webhooks.
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"

enum { BODY_MAX = 901120 };

// clang-format off
// By RecordType; of Bounce by Type.
static const CallbackKind KINDS[] = {
    {"Delivery",      NULL,                      STATUS_DELIVERED,  OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    {"Open",          NULL,                      STATUS_OPENED,     OUTCOME_OPENED,    "",                  SUPPRESSION_NONE},
    {"Click",         NULL,                      STATUS_CLICKED,    OUTCOME_CLICKED,   "",                  SUPPRESSION_NONE},
    {"SpamComplaint", NULL,                      STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",         SUPPRESSION_COMPLAINT},
    {"Bounce",        "HardBounce",              STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {"Bounce",        "BadEmailAddress",         STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {"Bounce",        "SpamComplaint",           STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",         SUPPRESSION_COMPLAINT},
    {"Bounce",        "SoftBounce",              STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"Bounce",        "DnsError",                STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"Bounce",        "Unknown",                 STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"Bounce",        "SpamNotification",        STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"Bounce",        "VirusNotification",       STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"Bounce",        "Blocked",                 STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"Bounce",        "DMARCPolicy",             STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"Bounce",        "SMTPApiError",            STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    {"Bounce",        "TemplateRenderingFailed", STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    // Postmark's own list, which is not ours.
    {"Bounce",        "ManuallyDeactivated",     STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"Bounce",        "Unsubscribe",             STATUS_NONE,       OUTCOME_NONE,      "",                  SUPPRESSION_OPT_OUT},
    // The detail is who did it, when SuppressSending is true.
    {"SubscriptionChange", "Recipient",          STATUS_NONE,       OUTCOME_NONE,      "",                  SUPPRESSION_OPT_OUT},
};
// clang-format on

static Str find_detail(const json_t *root, Str type)
{
    if (!str_eq(type, STR("SubscriptionChange"))) {
        return callback_text(root, "Type");
    }
    bool by_hand = json_is_true(json_object_get(root, "SuppressSending")) &&
                   str_eq(callback_text(root, "SuppressionReason"), STR("ManualSuppression"));
    return by_hand ? callback_text(root, "Origin") : STR_EMPTY;
}

// The time of the event, under the name that its record has for it.
static int64_t find_time(const json_t *root)
{
    static const char *const names[] = {"DeliveredAt", "BouncedAt", "ReceivedAt", "ChangedAt"};
    int64_t at_us = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && at_us == 0; i++) {
        at_us = callback_time(callback_text(root, names[i]));
    }
    return at_us;
}

static CallbackEvent read_event(const json_t *root, const CallbackKind *kind, Arena *arena)
{
    static const char *const names[] = {"nid", "notification_id", NULL};
    const json_t *metadata = json_object_get(root, "Metadata");
    const json_t *id = json_object_get(root, "ID");
    Str recipient = callback_text(root, "Recipient");
    Str details = callback_text(root, "Details");
    CallbackEvent event = callback_event(kind);
    if (json_is_integer(id)) {
        event.id = str_from(arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(id)));
    }
    event.notification_id = callback_notification(metadata, names);
    event.attempt = callback_attempt(metadata, "attempt");
    event.message_id = callback_id(root, "MessageID");
    event.email = callback_email(recipient.len > 0 ? recipient : callback_text(root, "Email"));
    event.enhanced_code = arena_str(arena, callback_enhanced(details));
    event.text =
        callback_words(details.len > 0 ? details : callback_text(root, "Description"), arena);
    event.at_us = find_time(root);
    event.machine =
        kind->outcome == OUTCOME_OPENED && callback_is_machine(callback_text(root, "UserAgent"));
    return event;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_json(body, arena, err);
    if (root == NULL) {
        return false;
    }
    Str type = callback_text(root, "RecordType");
    if (type.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the callback has no 'RecordType'");
    }
    *ret = callback_batch(arena, 1);
    const CallbackKind *kind =
        callback_kind(KINDS, sizeof KINDS / sizeof *KINDS, type, find_detail(root, type));
    if (kind == NULL) {
        ret->ignored++;
        return true;
    }
    ret->events[ret->count++] = read_event(root, kind, arena);
    return true;
}

const VendorCallback postmark_callback = {
    .name = "postmark",
    .channel = CHANNEL_EMAIL,
    .body_max = BODY_MAX,
    .reads = callback_basic_reads,
    .needs_all = true,
    .needs_capability = true,
    .one_address = true,
    .bad_status = 401,
    .key_check = callback_basic_key_check,
    .key_none = callback_basic_none,
    .verify = callback_basic_verify,
    .events = read_events,
};
