// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/mail/mail_report.h"

#include <jansson.h>

#include "common/base/cleanup.h"
#include "common/base/json_scan.h"
#include "services/webhook-receiver/mail/mail_parse.h"

DEFINE_CLEANUP(free_json, json_t *, json_decref)

static Str text_of(const json_t *value, Arena *arena)
{
    if (!json_is_string(value)) {
        return STR_EMPTY;
    }
    Str text = str_of(json_string_value(value), json_string_length(value));
    return text.len > 4 * MAIL_VALUE_MAX ? STR_EMPTY : arena_str(arena, text);
}

static Str member(const json_t *object, const char *name, Arena *arena)
{
    return text_of(json_object_get(object, name), arena);
}

static size_t bounded(const json_t *array, size_t max)
{
    size_t count = json_array_size(array);
    return count < max ? count : max;
}

static void read_delivery(const json_t *delivery, Arena *arena, MailReport *report)
{
    report->is_delivery = true;
    report->envelope_id = member(delivery, "envelope_id", arena);
    const json_t *recipients = json_object_get(delivery, "recipients");
    size_t count = bounded(recipients, MAIL_RECIPIENTS_MAX);
    report->recipients = arena_array(arena, count, sizeof *report->recipients);
    report->recipient_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *at = json_array_get(recipients, i);
        report->recipients[i] = (ReportedRecipient){
            .original = member(at, "original", arena),
            .final = member(at, "final", arena),
            .action = member(at, "action", arena),
            .status = member(at, "status", arena),
            .diagnostic = member(at, "diagnostic", arena),
        };
    }
}

static void read_feedback(const json_t *feedback, Arena *arena, MailReport *report)
{
    report->is_feedback = true;
    report->feedback_type = member(feedback, "type", arena);
    report->feedback_from = member(feedback, "mail_from", arena);
    report->feedback_envelope_id = member(feedback, "envelope_id", arena);
    const json_t *addresses = json_object_get(feedback, "rcpt_to");
    size_t count = bounded(addresses, MAIL_ADDRESSES_MAX);
    report->feedback_recipients = arena_array(arena, count, sizeof *report->feedback_recipients);
    report->feedback_recipient_count = count;
    for (size_t i = 0; i < count; i++) {
        report->feedback_recipients[i] = text_of(json_array_get(addresses, i), arena);
    }
}

bool mail_report_read(Str json, Arena *arena, MailReport *ret, Error *err)
{
    JsonExcess excess;
    json_error_t where;
    CLEANUP(free_json)
    json_t *root = json_is_modest(json, &excess) ? json_loadb(json.ptr, json.len, 0, &where) : NULL;
    if (!json_is_object(root)) {
        return error_set(err, ERROR_PERMANENT, "the process that reads mail wrote no report");
    }
    MailReport report = {0};
    const json_t *delivery = json_object_get(root, "delivery");
    const json_t *feedback = json_object_get(root, "feedback");
    const json_t *returned = json_object_get(root, "returned");
    if (json_is_object(delivery)) {
        read_delivery(delivery, arena, &report);
    }
    if (json_is_object(feedback)) {
        read_feedback(feedback, arena, &report);
    }
    report.message_id = member(returned, "message_id", arena);
    report.return_path = member(returned, "return_path", arena);
    report.list_unsubscribe = member(returned, "list_unsubscribe", arena);
    report.to = member(returned, "to", arena);
    *ret = report;
    return true;
}
