// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/render_events.h"

#include "common/bus/status_event.h"
#include "common/bus/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/status.pb-c.h"

// The renderer makes first attempts; digest-flusher makes the later ones from what is rendered
// already.
enum { FIRST_ATTEMPT = 1 };

// ---- the request ----

static bool check_sealed(
    const Stentor__V1__Sealed *sealed, const char *field, bool required, Error *err)
{
    if (sealed == NULL) {
        return !required || error_set(err, ERROR_PERMANENT, "field '%s' is missing", field);
    }
    if (sealed->key_subject.len != KEY_SUBJECT_LEN || sealed->key_generation == 0) {
        return error_set(err, ERROR_PERMANENT, "field '%s' does not name its key", field);
    }
    return true;
}

static bool same_key(const Stentor__V1__Sealed *a, const Stentor__V1__Sealed *b)
{
    return a->key_generation == b->key_generation &&
           str_eq(pb_bytes(a->key_subject), pb_bytes(b->key_subject));
}

// "ntf.request.<lane>.<tenant>"
static Str last_token(Str subject)
{
    size_t from = subject.len;
    while (from > 0 && subject.ptr[from - 1] != '.') {
        from--;
    }
    return str_slice(subject, from, subject.len);
}

bool render_request_check(const Request *request, Str subject, Error *err)
{
    const Stentor__V1__Meta *meta = request->meta;
    if (meta == NULL || !id_is_tenant(str_from(meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "field 'meta.tenant' is not a tenant");
    }
    if (!str_eq(last_token(subject), str_from(meta->tenant))) {
        return error_set(
            err, ERROR_PERMANENT, "field 'meta.tenant' is '%s', which is not the subject's",
            meta->tenant);
    }
    if (!id_parse(str_from(meta->notification_id), "ntf_", NULL)) {
        return error_set(err, ERROR_PERMANENT, "field 'meta.notification_id' is not an id");
    }
    if (channel_name((Channel)request->channel)[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "field 'channel' is %d, which is unknown", (int)request->channel);
    }
    if (!check_sealed(request->address, "address", true, err) ||
        !check_sealed(request->variables, "variables", false, err)) {
        return false;
    }
    if (request->variables != NULL && !same_key(request->address, request->variables)) {
        return error_set(
            err, ERROR_PERMANENT, "fields 'address' and 'variables' are sealed under two keys");
    }
    return true;
}

bool job_variables(const Job *job, Str *ret_json, Error *err)
{
    const Stentor__V1__Meta *meta = job->request->meta;
    *ret_json = STR_EMPTY;
    if (job->request->variables == NULL) {
        return true;
    }
    return unseal(
        job->key, str_from(meta->tenant), str_from(meta->notification_id), "variables",
        job->request->variables, job->arena, ret_json, err);
}

// ---- what goes out ----

// The event's own id is in `id`, which must live as long as the meta.
static Stentor__V1__Meta follow(const Job *job, char *id)
{
    const Stentor__V1__Meta *cause = job->request->meta;
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.event_id = id;
    meta.tenant = cause->tenant;
    meta.notification_id = cause->notification_id;
    meta.correlation_id = cause->correlation_id;
    meta.causation_id = cause->event_id;
    meta.occurred_at_us = job->now_us;
    return meta;
}

static char *borrow(const char *text)
{
    return (
        char *)(uintptr_t)text; // protobuf-c's strings are not const; packing does not change them
}

static bool pack_content(
    const Job *job, EmailDraft *draft, const Sender *sender, Str *ret_bytes, Error *err)
{
    Stentor__V1__EmailContent content;
    stentor__v1__email_content__init(&content);
    content.subject = borrow(buf_c(&draft->subject));
    content.html = borrow(buf_c(&draft->html));
    content.text = borrow(buf_c(&draft->text));
    content.from = sender->address;
    content.from_name = sender->name;
    if (job->unsubscribe_url != NULL) {
        content.unsubscribe_url = borrow(job->unsubscribe_url);
    }
    return event_pack(&content.base, job->arena, ret_bytes, err);
}

static Stentor__V1__Rendered rendered_head(const Job *job, const char *locale)
{
    const Request *request = job->request;
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.channel = request->channel;
    rendered.category = request->category;
    rendered.priority = request->priority;
    rendered.template_ = request->template_;
    rendered.template_version = request->template_version;
    rendered.locale = borrow(locale);
    rendered.recipient_id = request->recipient_id;
    rendered.address_hash = request->address_hash;
    rendered.address = request->address;
    rendered.accepted_at_us = request->accepted_at_us;
    rendered.rendered_at_us = job->now_us;
    rendered.expires_at_us = request->expires_at_us;
    rendered.batch_id = request->batch_id;
    rendered.attempt = FIRST_ATTEMPT;
    return rendered;
}

bool rendered_event(
    const Job *job, const CompiledVersion *version, const CompiledLocale *locale, EmailDraft *draft,
    const Sender *sender, BusOut *ret_out, Error *err)
{
    const Stentor__V1__Meta *cause = job->request->meta;
    Str notification = str_from(cause->notification_id);
    Str plain;
    Str frame;
    Str payload;
    uint8_t checksum[SHA256_LEN];
    if (!pack_content(job, draft, sender, &plain, err) ||
        !body_pack(version->prefix, plain, job->arena, &frame, err)) {
        return false;
    }
    sha256(plain, checksum);
    char *id = arena_alloc(job->arena, EVENT_ID_SIZE);
    event_id_derive("rendered", notification, STR("1"), id);
    Stentor__V1__Meta meta = follow(job, id);
    Stentor__V1__Rendered rendered = rendered_head(job, locale->locale);
    rendered.meta = &meta;
    rendered.content =
        seal(job->key, str_from(cause->tenant), notification, "content", frame, job->arena);
    rendered.content_checksum = pb_data(str_of(checksum, sizeof checksum));
    rendered.content_prefix_id = body_prefix_id(version->prefix);
    if (!event_pack(&rendered.base, job->arena, &payload, err)) {
        return false;
    }
    char *subject = arena_alloc(job->arena, SUBJECT_SIZE);
    subject_rendered(subject, job->lane, str_from(cause->tenant));
    *ret_out = (BusOut){
        .subject = subject,
        .event_id = str_from(id),
        .payload = payload,
        .traceparent = job->traceparent,
    };
    return true;
}

bool failed_event(const Job *job, const RenderFailure *failure, BusOut *ret_out, Error *err)
{
    const Request *request = job->request;
    RenderFailure copy = *failure;
    Stentor__V1__NotificationStatus status;
    stentor__v1__notification_status__init(&status);
    char id[EVENT_ID_SIZE];
    event_id_derive("status", str_from(request->meta->notification_id), STR("failed/0"), id);
    Stentor__V1__Meta meta = follow(job, id);
    status.meta = &meta;
    status.channel = request->channel;
    status.category = request->category;
    status.priority = request->priority;
    status.status = STENTOR__V1__STATUS__STATUS_FAILED;
    status.reason_code = borrow(failure_code_name(failure->code));
    status.reason = copy.reason;
    status.template_ = request->template_;
    status.template_version = request->template_version;
    status.recipient_id = request->recipient_id;
    status.address_hash = request->address_hash;
    status.accepted_at_us = request->accepted_at_us;
    status.scheduled_for_us = request->scheduled_for_us;
    status.batch_id = request->batch_id;
    return status_event(&status, job->traceparent, job->arena, ret_out, err);
}
