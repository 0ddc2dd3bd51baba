// SPDX-License-Identifier: Apache-2.0
// SparkPost's webhooks: a JSON array of {"msys": {"message_event" or another class: {...}}}; one
// without a class is a ping. Nothing is signed: Basic authentication or an OAuth token, and the
// capability in the URL. Source: developers.sparkpost.com, "Webhooks"; django-anymail.
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"

enum { BODY_MAX = 901120 };

// clang-format off
// By type; of bounces by their class as far as it says more than "it bounced".
static const CallbackKind KINDS[] = {
    {"delivery",             NULL, STATUS_DELIVERED,  OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    {"open",                 NULL, STATUS_OPENED,     OUTCOME_OPENED,    "",                  SUPPRESSION_NONE},
    {"initial_open",         NULL, STATUS_OPENED,     OUTCOME_OPENED,    "",                  SUPPRESSION_NONE},
    {"click",                NULL, STATUS_CLICKED,    OUTCOME_CLICKED,   "",                  SUPPRESSION_NONE},
    {"spam_complaint",       NULL, STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",         SUPPRESSION_COMPLAINT},
    {"list_unsubscribe",     NULL, STATUS_NONE,       OUTCOME_NONE,      "",                  SUPPRESSION_OPT_OUT},
    {"link_unsubscribe",     NULL, STATUS_NONE,       OUTCOME_NONE,      "",                  SUPPRESSION_OPT_OUT},
    {"generation_failure",   NULL, STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    {"generation_rejection", NULL, STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    {"policy_rejection",     NULL, STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"bounce",               "10", STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {"bounce",               "30", STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {"bounce",               "25", STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"bounce",               "50", STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"bounce",               "51", STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"bounce",               "52", STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"bounce",               "53", STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"bounce",               "54", STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"bounce",               "90", STATUS_NONE,       OUTCOME_NONE,      "",                  SUPPRESSION_OPT_OUT},
    {"bounce",               NULL, STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
};
// clang-format on

static Str find_class(const json_t *event, Arena *arena)
{
    const json_t *class = json_object_get(event, "bounce_class");
    return json_is_integer(class)
               ? str_from(arena_printf(arena, "%d", (int)json_integer_value(class)))
               : callback_text(event, "bounce_class");
}

static const CallbackKind *find_kind(const json_t *event, Str type, Arena *arena)
{
    bool later = str_eq(type, STR("out_of_band")); // a bounce after the server had taken it
    return callback_kind(
        KINDS, sizeof KINDS / sizeof *KINDS, later ? STR("bounce") : type,
        find_class(event, arena));
}

static CallbackEvent read_event(const json_t *said, const CallbackKind *kind, Arena *arena)
{
    static const char *const names[] = {"nid", "notification_id", NULL};
    const json_t *meta = json_object_get(said, "rcpt_meta");
    const json_t *at = json_object_get(said, "timestamp");
    Str raw = callback_text(said, "raw_rcpt_to");
    Str reason = callback_text(said, "raw_reason");
    CallbackEvent event = callback_event(kind);
    event.id = callback_id(said, "event_id");
    event.notification_id = callback_notification(meta, names);
    event.attempt = callback_attempt(meta, "attempt");
    event.message_id = callback_id(said, "transmission_id"); // as the call was answered
    if (event.message_id.len == 0) {
        event.message_id = callback_id(said, "message_id");
    }
    event.email = callback_email(raw.len > 0 ? raw : callback_text(said, "rcpt_to"));
    reason = reason.len > 0 ? reason : callback_text(said, "reason");
    event.enhanced_code = arena_str(arena, callback_enhanced(reason));
    event.text = callback_words(reason, arena);
    event.at_us = callback_unix(at);
    if (event.at_us == 0) {
        event.at_us = callback_time(callback_text(said, "timestamp"));
    }
    event.machine =
        kind->outcome == OUTCOME_OPENED && (json_is_true(json_object_get(said, "is_prefetched")) ||
                                            callback_is_machine(callback_text(said, "user_agent")));
    return event;
}

static void read_item(const json_t *item, Arena *arena, CallbackBatch *batch)
{
    const json_t *wrapped = json_object_get(item, "msys");
    const json_t *said = NULL;
    const char *class;
    json_object_foreach((json_t *)(uintptr_t)wrapped, class, said)
    {
        break; // the only one
    }
    Str type = callback_text(said, "type");
    const CallbackKind *kind = find_kind(said, type, arena);
    if (kind != NULL) {
        batch->events[batch->count++] = read_event(said, kind, arena);
    } else if (!json_is_object(wrapped) || (said != NULL && type.len == 0)) {
        batch->unreadable++;
    } else {
        batch->ignored++;
    }
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_list(body, arena, ret, err);
    for (size_t i = 0; i < json_array_size(root); i++) {
        read_item(json_array_get(root, i), arena, ret);
    }
    return root != NULL;
}

const VendorCallback sparkpost_callback = {
    .name = "sparkpost",
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
