// SPDX-License-Identifier: Apache-2.0
#include "common/render/render_events.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/bus/events/status_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/events/sealed.h"
#include "common/events/status.h"
#include "common/json/json_read.h"
#include "common/model/suppressions.h"
#include "stentor/v1/rendered.pb-c.h"

// The renderer makes first attempts; digest-flusher makes the later ones from what is rendered
// already.
enum { FIRST_ATTEMPT = 1 };

// ---- the request ----

bool render_request_check(const Request *request, Str subject, Error *err)
{
    const Stentor__V1__Meta *meta = request->meta;
    if (meta == NULL || !id_is_tenant(str_from(meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "field 'meta.tenant' is not a tenant id");
    }
    if (!str_eq(subject_last(subject), str_from(meta->tenant))) {
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
    if (!sealed_check(request->address, "address", err) ||
        (request->variables != NULL && !sealed_check(request->variables, "variables", err)) ||
        (request->mail != NULL && !sealed_check(request->mail, "mail", err))) {
        return false;
    }
    if (request->mail != NULL && !sealed_same_key(request->address, request->mail)) {
        return error_set(
            err, ERROR_PERMANENT, "fields 'address' and 'mail' are sealed under two keys");
    }
    if (request->variables != NULL && !sealed_same_key(request->address, request->variables)) {
        return error_set(
            err, ERROR_PERMANENT, "fields 'address' and 'variables' are sealed under two keys");
    }
    return true;
}

TemplateName template_name_of(const Request *request)
{
    return (TemplateName){
        .tenant = str_from(request->meta->tenant),
        .key = str_from(request->template_),
        .channel = (Channel)request->channel,
        .version = str_from(request->template_version),
        .asked_at_us = request->accepted_at_us,
    };
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

// ---- digests ----

static json_t *item_variables(Str text)
{
    json_t *json = text.len > 0 ? json_read(text, 0, NULL) : NULL;
    if (json_is_object(json)) {
        return json;
    }
    json_decref(json);
    return json_object();
}

// Each item was sealed for its own notification, under the key of the same recipient.
static json_t *open_item(const Job *job, const Stentor__V1__DigestItem *item, Error *err)
{
    Str text = STR_EMPTY;
    char at[CLOCK_RFC3339_SIZE];
    if (item->variables != NULL &&
        !unseal(
            job->key, str_from(job->request->meta->tenant), str_from(item->notification_id),
            "variables", item->variables, job->arena, &text, err)) {
        (void)error_wrap(err, "digest item '%.40s'", item->notification_id);
        return NULL;
    }
    json_t *json = item_variables(text);
    clock_format(item->accepted_at_us, at);
    (void)json_object_set_new(json, "notification_id", json_string(item->notification_id));
    (void)json_object_set_new(json, "template", json_string(item->template_));
    (void)json_object_set_new(json, "accepted_at", json_string(at));
    return json;
}

bool digest_variables(const Job *job, json_t *variables, Error *err)
{
    const Request *request = job->request;
    json_t *list = json_array();
    for (size_t i = 0; i < request->n_digest_items; i++) {
        json_t *item = open_item(job, request->digest_items[i], err);
        if (item == NULL) {
            json_decref(list);
            return false;
        }
        (void)json_array_append_new(list, item);
    }
    size_t shown = request->n_digest_items;
    size_t count = request->digest_total > shown ? request->digest_total : shown;
    (void)json_object_set_new(variables, "count", json_integer((json_int_t)count));
    (void)json_object_set_new(variables, "more", json_integer((json_int_t)(count - shown)));
    json_t *first = json_array_get(list, 0);
    (void)(first != NULL ? json_object_set(variables, "first", first) : json_object_set_new(variables, "first", json_null()));
    (void)json_object_set_new(variables, "list", list);
    return true;
}

// ---- what goes out ----

// What the caller asked for this one mail.
static bool add_extras(const Job *job, Stentor__V1__EmailContent *content, Error *err)
{
    const Stentor__V1__Meta *meta = job->request->meta;
    Str packed;
    if (job->request->mail == NULL) {
        return true;
    }
    if (!unseal(
            job->key, str_from(meta->tenant), str_from(meta->notification_id), "mail",
            job->request->mail, job->arena, &packed, err)) {
        return error_wrap(err, "'mail'");
    }
    const Stentor__V1__MailExtras *extras = (const Stentor__V1__MailExtras *)event_unpack(
        &stentor__v1__mail_extras__descriptor, packed, job->arena, err);
    if (extras == NULL) {
        return false;
    }
    content->cc = extras->cc;
    content->n_cc = extras->n_cc;
    content->bcc = extras->bcc;
    content->n_bcc = extras->n_bcc;
    content->attachments = extras->attachments;
    content->n_attachments = extras->n_attachments;
    content->list_id = extras->list_id;
    content->reply_to = extras->reply_to[0] != '\0' ? extras->reply_to : content->reply_to;
    return true;
}

static bool pack_email(
    const Job *job, Draft *draft, const Sender *sender, Str *ret_bytes, Error *err)
{
    Stentor__V1__EmailContent content;
    stentor__v1__email_content__init(&content);
    content.subject = pb_borrow(buf_c(&draft->subject));
    content.html = pb_borrow(buf_c(&draft->html));
    content.text = pb_borrow(buf_c(&draft->text));
    content.from = sender->address;
    content.from_name = sender->name;
    content.reply_to = sender->reply_to;
    if (job->unsubscribe_url != NULL) {
        content.unsubscribe_url = pb_borrow(job->unsubscribe_url);
    }
    return add_extras(job, &content, err) && event_pack(&content.base, job->arena, ret_bytes, err);
}

static bool pack_sms(const Job *job, Draft *draft, Str *ret_bytes, Error *err)
{
    Stentor__V1__SmsContent content;
    stentor__v1__sms_content__init(&content);
    content.text = pb_borrow(buf_c(&draft->text));
    content.segments = draft->sms.segments;
    content.ucs2 = draft->sms.ucs2;
    return event_pack(&content.base, job->arena, ret_bytes, err);
}

static bool pack_push(const Job *job, Draft *draft, Str *ret_bytes, Error *err)
{
    Stentor__V1__PushContent content;
    stentor__v1__push_content__init(&content);
    content.title = pb_borrow(buf_c(&draft->title));
    content.body = pb_borrow(buf_c(&draft->text));
    content.data_json = pb_borrow(buf_c(&draft->data));
    return event_pack(&content.base, job->arena, ret_bytes, err);
}

static bool pack_inapp(const Job *job, Draft *draft, Str *ret_bytes, Error *err)
{
    Stentor__V1__InappContent content;
    stentor__v1__inapp_content__init(&content);
    content.title = pb_borrow(buf_c(&draft->title));
    content.body = pb_borrow(buf_c(&draft->text));
    content.data_json = pb_borrow(buf_c(&draft->data));
    return event_pack(&content.base, job->arena, ret_bytes, err);
}

static bool pack_webhook(const Job *job, Draft *draft, Str *ret_bytes, Error *err)
{
    Stentor__V1__WebhookContent content;
    stentor__v1__webhook_content__init(&content);
    content.text = pb_borrow(buf_c(&draft->text));
    content.data_json = pb_borrow(buf_c(&draft->data));
    return event_pack(&content.base, job->arena, ret_bytes, err);
}

static bool pack_whatsapp(
    const Job *job, const char *locale, Draft *draft, Str *ret_bytes, Error *err)
{
    Stentor__V1__WhatsappContent content;
    stentor__v1__whatsapp_content__init(&content);
    char *at = draft->parameters.ptr;
    content.reference = pb_borrow(draft->reference);
    content.locale = pb_borrow(locale);
    content.text = pb_borrow(buf_c(&draft->text));
    content.parameters =
        arena_array(job->arena, draft->parameter_count, sizeof *content.parameters);
    content.n_parameters = draft->parameter_count;
    for (size_t i = 0; i < draft->parameter_count; i++) {
        content.parameters[i] = at;
        at += strlen(at) + 1;
    }
    return event_pack(&content.base, job->arena, ret_bytes, err);
}

static bool pack_voice(const Job *job, const char *locale, Draft *draft, Str *ret_bytes, Error *err)
{
    Stentor__V1__VoiceContent content;
    stentor__v1__voice_content__init(&content);
    content.script = pb_borrow(buf_c(&draft->text));
    content.locale = pb_borrow(locale);
    return event_pack(&content.base, job->arena, ret_bytes, err);
}

static bool pack_content(
    const Job *job, const char *locale, Draft *draft, const Sender *sender, Str *ret_bytes,
    Error *err)
{
    switch ((Channel)job->request->channel) {
    case CHANNEL_EMAIL:
        return pack_email(job, draft, sender, ret_bytes, err);
    case CHANNEL_SMS:
        return pack_sms(job, draft, ret_bytes, err);
    case CHANNEL_PUSH:
        return pack_push(job, draft, ret_bytes, err);
    case CHANNEL_INAPP:
        return pack_inapp(job, draft, ret_bytes, err);
    case CHANNEL_WHATSAPP:
        return pack_whatsapp(job, locale, draft, ret_bytes, err);
    case CHANNEL_VOICE:
        return pack_voice(job, locale, draft, ret_bytes, err);
    case CHANNEL_WEBHOOK:
        return pack_webhook(job, draft, ret_bytes, err);
    case CHANNEL_NONE:
    case CHANNEL_COUNT:
        break;
    }
    return error_set(err, ERROR_PERMANENT, "this channel has no content");
}

static Stentor__V1__Rendered rendered_head(const Job *job, const CompiledLocale *locale)
{
    const Request *request = job->request;
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.channel = request->channel;
    rendered.category = request->category;
    rendered.priority = request->priority;
    rendered.template_ = request->template_;
    rendered.template_version = request->template_version;
    rendered.locale = pb_borrow(locale->locale);
    rendered.direction = pb_borrow(locale->direction);
    rendered.batch_id = request->batch_id;
    rendered.recipient_id = request->recipient_id;
    rendered.address_hash = request->address_hash;
    rendered.address = request->address;
    rendered.accepted_at_us = request->accepted_at_us;
    rendered.due_at_us = request->due_at_us;
    rendered.rendered_at_us = job->now_us;
    rendered.expires_at_us = request->expires_at_us;
    rendered.resends = request->resends;
    rendered.batch_id = request->batch_id;
    rendered.attempt = FIRST_ATTEMPT;
    rendered.retries = request->retries;
    rendered.quiet_hours = request->quiet_hours;
    rendered.quiet_zone = request->quiet_zone;
    rendered.without_opt_out = request->channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL &&
                               !category_ignores_opt_out((Category)request->category) &&
                               (job->unsubscribe_url == NULL || job->unsubscribe_url[0] == '\0');
    return rendered;
}

bool rendered_event(
    const Job *job, const CompiledVersion *version, const CompiledLocale *locale, Draft *draft,
    const Sender *sender, BusOut *ret_out, Error *err)
{
    const Stentor__V1__Meta *cause = job->request->meta;
    Str notification = str_from(cause->notification_id);
    Str plain;
    Str frame;
    Str payload;
    uint8_t checksum[SHA256_LEN];
    if (!pack_content(job, locale->locale, draft, sender, &plain, err) ||
        !body_pack(version->prefix, plain, job->arena, &frame, err)) {
        return false;
    }
    sha256(plain, checksum);
    char *id = arena_alloc(job->arena, EVENT_ID_SIZE);
    event_id_derive("rendered", notification, STR("1"), id);
    Stentor__V1__Meta meta = meta_follow(job->request->meta, id, job->now_us);
    Stentor__V1__Rendered rendered = rendered_head(job, locale);
    rendered.meta = &meta;
    rendered.content =
        seal(job->key, str_from(cause->tenant), notification, "content", frame, job->arena);
    rendered.content_checksum = pb_data(str_of(checksum, sizeof checksum));
    rendered.content_prefix_id = body_prefix_id(version->prefix);
    if (!event_pack(&rendered.base, job->arena, &payload, err)) {
        return false;
    }
    if (payload.len > EVENT_BYTES_MAX - RENDERED_ROOM) {
        return error_set(
            err, ERROR_PERMANENT, "the content has %zu bytes when packed, at most %d are allowed",
            payload.len, EVENT_BYTES_MAX - RENDERED_ROOM);
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
    const Stentor__V1__Meta *cause = job->request->meta;
    char id[EVENT_ID_SIZE];
    const char *place = job->request->resends == 0
                            ? "failed/0"
                            : arena_printf(job->arena, "failed/0/%u", job->request->resends);
    event_id_derive("status", str_from(cause->notification_id), str_from(place), id);
    Stentor__V1__Meta meta = meta_follow(cause, id, job->now_us);
    StatusSpec spec = {&meta, STATUS_FAILED, failure_code_name(failure->code), failure->reason};
    Stentor__V1__NotificationStatus status = status_of_request(&spec, job->request);
    return status_event(&status, job->traceparent, job->arena, ret_out, err);
}
