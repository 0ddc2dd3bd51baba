// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/vendor_mail.h"

#include "common/codec/inbound_capability.h"
#include "common/vendor/generic/definition.h"

enum { HEADERS = 7 };

static void add_header(VendorMail *mail, VendorPair *headers, const char *name, Str value)
{
    headers[mail->header_count++] = (VendorPair){str_from(name), value};
}

// With what the header has around its value; nothing for an empty one.
static void add_dressed(
    VendorMail *mail, VendorPair *headers, const char *name, const char *before, Str value,
    const char *behind, Arena *arena)
{
    if (value.len > 0) {
        add_header(
            mail, headers, name,
            str_from(arena_printf(arena, "%s" STR_FMT "%s", before, STR_ARG(value), behind)));
    }
}

// Those of Cc with their names, the others by address alone.
static void add_copies(VendorMail *mail, const Job *job, const MimeMail *mime, Arena *arena)
{
    mail->cc_count = mime->cc_count;
    mail->bcc_count = job->mail.copy_count - mime->cc_count;
    VendorAddress *cc = arena_array(arena, mail->cc_count, sizeof *cc);
    VendorAddress *bcc = arena_array(arena, mail->bcc_count, sizeof *bcc);
    for (size_t i = 0; i < mail->cc_count; i++) {
        cc[i] = (VendorAddress){mime->cc[i].name, mime->cc[i].address};
    }
    for (size_t i = 0; i < mail->bcc_count; i++) {
        bcc[i] = (VendorAddress){STR_EMPTY, job->mail.copies[mime->cc_count + i]};
    }
    mail->cc = cc;
    mail->bcc = bcc;
}

static void add_files(VendorMail *mail, const MimeMail *mime, Arena *arena)
{
    VendorAttachment *files = arena_array(arena, mime->file_count, sizeof *files);
    for (size_t i = 0; i < mime->file_count; i++) {
        const MimeFile *file = &mime->files[i];
        files[i] = (VendorAttachment){
            .name = arena_str(arena, file->name),
            .type = arena_str(arena, file->type),
            .content_id = arena_str(arena, file->content_id),
            .bytes = arena_str(arena, file->bytes),
        };
    }
    mail->attachments = files;
    mail->attachment_count = mime->file_count;
}

// What it has of any channel.
static VendorMail *new_mail(const Job *job)
{
    VendorMail *mail = arena_zalloc(job->delivery->arena, sizeof *mail);
    *mail = (VendorMail){
        .tenant = job->key->tenant,
        .notification_id = job->key->notification_id,
        .category = str_from(category_name((Category)job->rendered->category)),
        .template_key = str_from(job->rendered->template_),
        .urgent = (Priority)job->rendered->priority <= PRIORITY_HIGH,
        .expires_at_us = job->rendered->expires_at_us,
        .since_us = job->rendered->unknown_at_us,
    };
    return mail;
}

VendorMail *vendor_mail_make(const Job *job, const MimeMail *mime)
{
    Arena *arena = job->delivery->arena;
    VendorMail *mail = new_mail(job);
    VendorPair *headers = arena_array(arena, HEADERS, sizeof *headers);
    // Those of the headers: the envelope's sender may be another.
    mail->from = (VendorAddress){arena_str(arena, mime->from_name), arena_str(arena, mime->from)};
    mail->to = (VendorAddress){arena_str(arena, mime->to_name), arena_str(arena, mime->to)};
    mail->reply_to = arena_str(arena, mime->reply_to);
    mail->subject = arena_str(arena, mime->subject);
    mail->html = arena_str(arena, mime->html);
    mail->text = arena_str(arena, mime->text);
    mail->headers = headers;
    mail->message_id = job->message_id;
    mail->message = job->mail.message;
    mail->return_path = job->dress.return_path;
    add_copies(mail, job, mime, arena);
    add_files(mail, mime, arena);
    add_header(mail, headers, "Auto-Submitted", STR("auto-generated"));
    Str url = mime->unsubscribe_url;
    if (url.len > 0) {
        const char *value = arena_printf(arena, "<" STR_FMT ">", STR_ARG(url));
        add_header(mail, headers, "List-Unsubscribe", str_from(value));
        if (mime_takes_one_click(url)) {
            add_header(mail, headers, "List-Unsubscribe-Post", STR("List-Unsubscribe=One-Click"));
        }
    }
    add_dressed(mail, headers, "List-Id", "<", mime->list_id, ">", arena);
    add_dressed(mail, headers, "Feedback-ID", "", mime->feedback_id, "", arena);
    add_dressed(mail, headers, "CFBL-Address", "", mime->cfbl_address, "; report=arf", arena);
    add_dressed(mail, headers, "X-Stentor-Test", "", mime->test, "", arena);
    return mail;
}

static void add_card(
    VendorMail *mail, const char *title, const char *body, const char *data_json, Arena *arena)
{
    mail->subject = arena_str(arena, str_from(title));
    mail->text = arena_str(arena, str_from(body));
    mail->data = arena_str(arena, str_from(data_json));
}

static void add_whatsapp(
    VendorMail *mail, const Stentor__V1__WhatsappContent *content, Arena *arena)
{
    Str *parameters = arena_array(arena, content->n_parameters, sizeof *parameters);
    for (size_t i = 0; i < content->n_parameters; i++) {
        parameters[i] = arena_str(arena, str_from(content->parameters[i]));
    }
    mail->text = arena_str(arena, str_from(content->text));
    mail->locale = arena_str(arena, str_from(content->locale));
    mail->reference = arena_str(arena, str_from(content->reference));
    mail->parameters = parameters;
    mail->parameter_count = content->n_parameters;
}

static void add_content(
    VendorMail *mail, Channel channel, const ProtobufCMessage *content, Arena *arena)
{
    const Stentor__V1__SmsContent *sms = (const void *)content;
    const Stentor__V1__PushContent *push = (const void *)content;
    const Stentor__V1__InappContent *inapp = (const void *)content;
    const Stentor__V1__VoiceContent *voice = (const void *)content;
    const Stentor__V1__WebhookContent *webhook = (const void *)content;
    switch (channel) {
    case CHANNEL_SMS:
        mail->text = arena_str(arena, str_from(sms->text));
        mail->segments = sms->segments;
        break;
    case CHANNEL_WHATSAPP:
        add_whatsapp(mail, (const void *)content, arena);
        break;
    case CHANNEL_PUSH:
        add_card(mail, push->title, push->body, push->data_json, arena);
        break;
    case CHANNEL_INAPP:
        add_card(mail, inapp->title, inapp->body, inapp->data_json, arena);
        break;
    case CHANNEL_VOICE:
        mail->text = arena_str(arena, str_from(voice->script));
        mail->locale = arena_str(arena, str_from(voice->locale));
        break;
    case CHANNEL_WEBHOOK:
        mail->text = arena_str(arena, str_from(webhook->text));
        mail->data = arena_str(arena, str_from(webhook->data_json));
        break;
    case CHANNEL_EMAIL:
    case CHANNEL_NONE:
    case CHANNEL_COUNT:
        break;
    }
}

VendorMail *vendor_mail_message(const Job *job, const ProtobufCMessage *content)
{
    VendorMail *mail = new_mail(job);
    mail->to.address = job->mail.to;
    add_content(mail, (Channel)job->rendered->channel, content, job->delivery->arena);
    return mail;
}

Str vendor_mail_key(const Job *job)
{
    return str_from(arena_printf(
        job->delivery->arena, STR_FMT "-%d", STR_ARG(job->key->notification_id),
        job->key->attempt));
}

// The vendors of mails that we know are given one address for all of an account.
static bool has_one_address(const Job *job)
{
    return job->rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL &&
           definition_channel(job->place.vendor) == CHANNEL_NONE;
}

static Str report_url(const Job *job, int32_t attempt, const JobRules *rules)
{
    char capability[INBOUND_CAPABILITY_SIZE];
    char token[BOUNCE_TOKEN_LEN + 1];
    Str tenant = job->key->tenant;
    if (has_one_address(job) || rules->public_url.len == 0 ||
        !bounce_token_make(
            &rules->dress.bounce_key, tenant, job->key->notification_id, attempt, token, NULL)) {
        return STR_EMPTY;
    }
    inbound_capability(rules->master, tenant, job->place.vendor, capability);
    Str trace = job->delivery->message.traceparent;
    return str_from(arena_printf(
        job->delivery->arena,
        STR_FMT "/v1/inbound/" STR_FMT "/" STR_FMT "/%s?" INBOUND_ATTEMPT "=%s%s" STR_FMT,
        STR_ARG(rules->public_url), STR_ARG(tenant), STR_ARG(job->place.vendor), capability, token,
        trace.len > 0 ? "." : "", STR_ARG(trace)));
}

void vendor_mail_claim(Job *job, const JobRules *rules)
{
    VendorMail *mail = job->mail.content;
    if (mail == NULL) {
        return;
    }
    mail->key = job->place.key.len > 0 ? job->place.key : vendor_mail_key(job);
    int64_t attempt = 0;
    size_t id = job->key->notification_id.len + 1;
    bool known =
        mail->key.len > id && str_to_i64(str_slice(mail->key, id, mail->key.len), &attempt);
    mail->attempt =
        known && attempt > 0 && attempt <= JOB_ATTEMPTS_MAX ? (int32_t)attempt : job->key->attempt;
    mail->callback_url = report_url(job, mail->attempt, rules);
}
