// SPDX-License-Identifier: Apache-2.0
#include "common/history/event_row.h"

#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/model/currency.h"
#include "common/model/status.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

typedef Stentor__V1__NotificationRequest Request;
typedef Stentor__V1__NotificationStatus StatusEvent;

static const int64_t time_max_us = INT64_C(253402300800000000); // 10000-01-01
static const int64_t day_us = INT64_C(86400000000);

// ---- fields ----

static bool check_text(Str *ret, const char *field, Str value, Error *err)
{
    if (value.len > FOLD_FIELD_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "%s has %zu bytes, at most %d are stored", field, value.len,
            FOLD_FIELD_MAX);
    }
    *ret = value;
    return true;
}

static bool check_time(int64_t *ret, const char *field, int64_t at_us, Error *err)
{
    if (at_us < 0 || at_us >= time_max_us) {
        return error_set(err, ERROR_PERMANENT, "%s is outside 1970..9999", field);
    }
    *ret = at_us;
    return true;
}

static bool set_text(HistoryRow *row, FoldText field, const char *text, Error *err)
{
    return check_text(&row->text[field], fold_text_column(field), str_from(text), err);
}

static bool set_bytes(HistoryRow *row, FoldText field, ProtobufCBinaryData bytes, Error *err)
{
    return check_text(&row->text[field], fold_text_column(field), pb_bytes(bytes), err);
}

static bool set_time(HistoryRow *row, FoldTime field, int64_t at_us, Error *err)
{
    return check_time(&row->at_us[field], fold_time_column(field), at_us, err);
}

// A time in an id decides the partition, so a wrong one would make tables: it has to be about when
// the event was stored.
static bool check_age(int64_t created_at_us, int64_t stored_at_us, Error *err)
{
    const int64_t age_max_us = FOLD_AGE_MAX_MONTHS * 30 * day_us;
    if (created_at_us > stored_at_us + day_us || created_at_us < stored_at_us - age_max_us) {
        return error_set(
            err, ERROR_PERMANENT,
            "the time in the notification id is far from when the event was stored");
    }
    return true;
}

static bool read_meta(
    const Stentor__V1__Meta *meta, int64_t stored_at_us, HistoryRow *row, Error *err)
{
    if (meta == NULL) {
        return error_set(err, ERROR_PERMANENT, "meta is missing");
    }
    row->tenant = str_from(meta->tenant);
    if (!id_is_tenant(row->tenant)) {
        return error_set(err, ERROR_PERMANENT, "meta.tenant is not a tenant id");
    }
    row->id = str_from(meta->notification_id);
    int64_t ms = 0;
    if (!id_parse(row->id, "ntf_", &ms)) {
        return error_set(err, ERROR_PERMANENT, "meta.notification_id is not a notification id");
    }
    row->created_at_us = ms * 1000;
    return check_age(row->created_at_us, stored_at_us, err) &&
           set_text(row, FOLD_CORRELATION, meta->correlation_id, err);
}

// Category and priority may be unspecified, and are NULL then; a value that we do not know would
// fail its CHECK.
static bool read_kind(
    HistoryRow *row, unsigned channel, unsigned category, unsigned priority, Error *err)
{
    if (channel == CHANNEL_NONE || channel >= CHANNEL_COUNT) {
        return error_set(err, ERROR_PERMANENT, "channel %u is unknown", channel);
    }
    if (category >= CATEGORY_COUNT) {
        return error_set(err, ERROR_PERMANENT, "category %u is unknown", category);
    }
    if (priority >= PRIORITY_COUNT) {
        return error_set(err, ERROR_PERMANENT, "priority %u is unknown", priority);
    }
    row->text[FOLD_CHANNEL] = str_from(channel_name((Channel)channel));
    row->text[FOLD_CATEGORY] = str_from(category_name((Category)category));
    row->text[FOLD_PRIORITY] = str_from(priority_name((Priority)priority));
    return true;
}

static bool read_address(
    HistoryRow *row, ProtobufCBinaryData hash, const Stentor__V1__Sealed *sealed, Arena *arena,
    Error *err)
{
    if (!set_bytes(row, FOLD_ADDRESS_HASH, hash, err)) {
        return false;
    }
    if (sealed == NULL) {
        return true;
    }
    Str packed = STR_EMPTY;
    return event_pack(&sealed->base, arena, &packed, err) &&
           check_text(&row->text[FOLD_ADDRESS], "address", packed, err);
}

// ---- events ----

static bool read_request(
    const Request *event, int64_t stored_at_us, HistoryRow *row, Arena *arena, Error *err)
{
    row->status = STATUS_QUEUED;
    row->rank = status_rank(STATUS_QUEUED);
    return read_meta(event->meta, stored_at_us, row, err) &&
           read_kind(
               row, (unsigned)event->channel, (unsigned)event->category, (unsigned)event->priority,
               err) &&
           set_text(row, FOLD_TEMPLATE, event->template_, err) &&
           set_text(row, FOLD_TEMPLATE_VERSION, event->template_version, err) &&
           set_text(row, FOLD_LOCALE, event->locale, err) &&
           set_text(row, FOLD_RECIPIENT, event->recipient_id, err) &&
           set_text(row, FOLD_SOURCE_EVENT, event->source_event_id, err) &&
           set_text(row, FOLD_SOURCE_TYPE, event->source_event_type, err) &&
           set_text(row, FOLD_BATCH, event->batch_id, err) &&
           set_text(row, FOLD_DIGEST, event->digest_window_id, err) &&
           set_text(row, FOLD_COPY_OF, event->copy_of, err) &&
           set_text(row, FOLD_GATE_TRACE, event->gate_trace, err) &&
           read_address(row, event->address_hash, event->address, arena, err) &&
           set_time(row, FOLD_QUEUED, event->accepted_at_us, err) &&
           set_time(row, FOLD_SCHEDULED_FOR, event->scheduled_for_us, err) &&
           set_time(row, FOLD_EXPIRES, event->expires_at_us, err);
}

// Which column says when a status was reached first; FOLD_TIME_COUNT: none does.
static FoldTime time_of_status(Status status)
{
    switch (status) {
    case STATUS_QUEUED:
        return FOLD_QUEUED;
    case STATUS_SCHEDULED:
        return FOLD_SCHEDULED;
    case STATUS_SENT:
        return FOLD_SENT;
    case STATUS_DELIVERED:
        return FOLD_DELIVERED;
    case STATUS_OPENED:
        return FOLD_OPENED;
    case STATUS_CLICKED:
        return FOLD_CLICKED;
    case STATUS_SUPPRESSED:
    case STATUS_SUPERSEDED:
    case STATUS_FAILED:
    case STATUS_BOUNCED:
    case STATUS_COMPLAINED:
        return FOLD_ENDED;
    case STATUS_NONE:
    case STATUS_RENDERING:
    case STATUS_SENDING:
    case STATUS_COUNT:
        break;
    }
    return FOLD_TIME_COUNT;
}

// A callback does not know the resend generation of its mail; `failed` is ours unless it came
// with an attempt of number 0.
static bool is_callback(const StatusEvent *event, Status status)
{
    bool failed_there =
        status == STATUS_FAILED && event->attempt != NULL && event->attempt->number == 0;
    return failed_there || status_is_from_vendor(status);
}

static bool read_rank(const StatusEvent *event, HistoryRow *row, Error *err)
{
    if (event->resends > FOLD_RESENDS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "resends %u is above %d", event->resends, FOLD_RESENDS_MAX);
    }
    int32_t resends =
        is_callback(event, row->status) ? FOLD_CALLBACK_RESENDS : (int32_t)event->resends;
    row->rank = status_rank(row->status) + FOLD_RESEND_RANKS * resends;
    return true;
}

static bool read_verdict(const StatusEvent *event, HistoryRow *row, Error *err)
{
    unsigned status = (unsigned)event->status;
    if (status == STATUS_NONE || status >= STATUS_COUNT) {
        return error_set(err, ERROR_PERMANENT, "status %u is unknown", status);
    }
    row->status = (Status)status;
    FoldTime reached = time_of_status(row->status);
    if (reached != FOLD_TIME_COUNT && !set_time(row, reached, event->meta->occurred_at_us, err)) {
        return false;
    }
    return read_rank(event, row, err) &&
           check_text(&row->reason_code, "reason_code", str_from(event->reason_code), err) &&
           check_text(&row->reason, "reason", str_from(event->reason), err);
}

static bool read_status(const StatusEvent *event, int64_t stored_at_us, HistoryRow *row, Error *err)
{
    return read_meta(event->meta, stored_at_us, row, err) && read_verdict(event, row, err) &&
           read_kind(
               row, (unsigned)event->channel, (unsigned)event->category, (unsigned)event->priority,
               err) &&
           set_text(row, FOLD_TEMPLATE, event->template_, err) &&
           set_text(row, FOLD_TEMPLATE_VERSION, event->template_version, err) &&
           set_text(row, FOLD_RECIPIENT, event->recipient_id, err) &&
           set_text(row, FOLD_SOURCE_TYPE, event->source_event_type, err) &&
           set_text(row, FOLD_BATCH, event->batch_id, err) &&
           set_text(row, FOLD_DIGEST, event->digest_window_id, err) &&
           set_text(row, FOLD_COPY_OF, event->copy_of, err) &&
           set_text(row, FOLD_FROM_DOMAIN, event->from_domain, err) &&
           set_text(row, FOLD_PROVIDER, event->provider, err) &&
           set_text(row, FOLD_GATE_TRACE, event->gate_trace, err) &&
           set_bytes(row, FOLD_ADDRESS_HASH, event->address_hash, err) &&
           set_bytes(row, FOLD_CHECKSUM, event->content_checksum, err) &&
           set_time(row, FOLD_RENDERED, event->rendered_at_us, err) &&
           set_time(row, FOLD_SCHEDULED_FOR, event->scheduled_for_us, err);
}

static bool read_cost(const Stentor__V1__Attempt *event, AttemptCost *cost, Error *err)
{
    bool priced = event->cost_micros > 0 && currency_is_code(str_from(event->currency));
    *cost = (AttemptCost){
        .segments = event->segments <= INT16_MAX ? event->segments : INT16_MAX,
        .micros = priced ? event->cost_micros : 0,
        .currency = priced ? str_from(event->currency) : STR_EMPTY};
    return check_text(
               &cost->calling_code, "attempt.calling_code", str_from(event->calling_code), err) &&
           check_text(
               &cost->price_category, "attempt.price_category", str_from(event->price_category),
               err);
}

static bool read_attempt(const Stentor__V1__Attempt *event, AttemptRow *row, Error *err)
{
    if (event->number > FOLD_ATTEMPT_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "attempt.number %u is above %d", event->number, FOLD_ATTEMPT_MAX);
    }
    unsigned outcome = (unsigned)event->outcome;
    if (outcome == OUTCOME_NONE || outcome >= OUTCOME_COUNT) {
        return error_set(err, ERROR_PERMANENT, "attempt.outcome %u is unknown", outcome);
    }
    row->number = (int32_t)event->number;
    row->outcome = (Outcome)outcome;
    row->was_unknown = event->was_unknown;
    row->retry_after_ms =
        event->retry_after_ms <= INT32_MAX ? (int32_t)event->retry_after_ms : INT32_MAX;
    return check_text(&row->id, "attempt.attempt_id", str_from(event->attempt_id), err) &&
           check_text(&row->vendor, "attempt.vendor", str_from(event->vendor), err) &&
           check_text(
               &row->vendor_message_id, "attempt.vendor_message_id",
               str_from(event->vendor_message_id), err) &&
           check_text(&row->code, "attempt.code", str_from(event->code), err) &&
           check_text(
               &row->enhanced_code, "attempt.enhanced_code", str_from(event->enhanced_code), err) &&
           check_text(&row->reply, "attempt.text", str_from(event->text), err) &&
           check_text(&row->credential, "attempt.credential", str_from(event->credential), err) &&
           check_text(&row->route, "attempt.route", str_from(event->route), err) &&
           check_time(&row->started_at_us, "attempt.started_at_us", event->started_at_us, err) &&
           check_time(&row->finished_at_us, "attempt.finished_at_us", event->finished_at_us, err) &&
           read_cost(event, &row->cost, err);
}

// A callback that says what an attempt costs. Its row loses against what the dispatcher says of the
// attempt, in all but its cost; alone it is true too: the vendor took the message.
static bool read_bill(
    const StatusEvent *event, const HistoryRow *of, Arena *arena, AttemptRow *row, Error *err)
{
    const Stentor__V1__Attempt *said = event->attempt;
    char *id = arena_alloc(arena, ID_SIZE);
    if (!read_cost(said, &row->cost, err)) {
        return false;
    }
    bool says = row->cost.segments > 0 || row->cost.micros > 0 || row->cost.price_category.len > 0;
    if (!says || said->of_attempt == 0 || said->of_attempt > FOLD_ATTEMPT_MAX) {
        return true;
    }
    attempt_id_derive(of->id, (int32_t)said->of_attempt, of->created_at_us, id);
    row->number = (int32_t)said->of_attempt;
    row->outcome = OUTCOME_ACCEPTED;
    row->id = str_from(id);
    return check_text(&row->vendor, "attempt.vendor", str_from(said->vendor), err) &&
           check_text(
               &row->vendor_message_id, "attempt.vendor_message_id",
               str_from(said->vendor_message_id), err);
}

static bool unpack_request(const BusMessage *message, Arena *arena, HistoryRow *row, Error *err)
{
    ProtobufCMessage *event =
        event_unpack(&stentor__v1__notification_request__descriptor, message->payload, arena, err);
    return event != NULL &&
           read_request((const Request *)event, message->stored_at_us, row, arena, err);
}

// Opened or clicked by a scanner or a proxy: no recipient has read the mail, so it raises no
// status.
static bool is_machine(const StatusEvent *event)
{
    bool seen = event->status == STENTOR__V1__STATUS__STATUS_OPENED ||
                event->status == STENTOR__V1__STATUS__STATUS_CLICKED;
    return seen && event->attempt != NULL && event->attempt->machine;
}

// A vendor's callback (number 0) moves the status and makes no attempt, but for what that costs.
static bool unpack_status(
    const BusMessage *message, Arena *arena, HistoryRow *row, AttemptRow *attempt, Error *err)
{
    ProtobufCMessage *unpacked =
        event_unpack(&stentor__v1__notification_status__descriptor, message->payload, arena, err);
    if (unpacked == NULL) {
        return false;
    }
    const StatusEvent *event = (const StatusEvent *)unpacked;
    bool attempted = event->attempt != NULL && event->attempt->number > 0;
    if (!read_status(event, message->stored_at_us, row, err) ||
        (attempted && !read_attempt(event->attempt, attempt, err)) ||
        (event->attempt != NULL && !attempted && !read_bill(event, row, arena, attempt, err))) {
        return false;
    }
    row->status = is_machine(event) ? STATUS_NONE : row->status;
    return true;
}

bool event_row_read(
    const BusMessage *message, Arena *arena, HistoryRow *ret_row, AttemptRow *ret_attempt,
    Error *err)
{
    HistoryRow row = {0};
    AttemptRow attempt = {0};
    bool status = str_eq(str_from(message->stream), STR("STATUS"));
    if (!(status ? unpack_status(message, arena, &row, &attempt, err)
                 : unpack_request(message, arena, &row, err))) {
        return false;
    }
    *ret_row = row;
    *ret_attempt = attempt;
    return true;
}
