// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/vendor_mail.h"

enum { HEADERS = 3 };

static void add_header(VendorMail *mail, VendorPair *headers, const char *name, Str value)
{
    headers[mail->header_count++] = (VendorPair){str_from(name), value};
}

VendorMail *vendor_mail_make(const Job *job, const MimeMail *mime)
{
    Arena *arena = job->delivery->arena;
    VendorMail *mail = arena_zalloc(arena, sizeof *mail);
    VendorPair *headers = arena_array(arena, HEADERS, sizeof *headers);
    *mail = (VendorMail){
        .tenant = job->key->tenant,
        .notification_id = job->key->notification_id,
        .category = str_from(category_name((Category)job->rendered->category)),
        .template_key = str_from(job->rendered->template_),
        // Those of the headers: the envelope's sender may be another.
        .from = {arena_str(arena, mime->from_name), arena_str(arena, mime->from)},
        .to = {arena_str(arena, mime->to_name), arena_str(arena, mime->to)},
        .reply_to = arena_str(arena, mime->reply_to),
        .subject = arena_str(arena, mime->subject),
        .html = arena_str(arena, mime->html),
        .text = arena_str(arena, mime->text),
        .headers = headers,
        .message_id = job->message_id,
        .message = job->mail.message,
    };
    add_header(mail, headers, "Auto-Submitted", STR("auto-generated"));
    Str url = mime->unsubscribe_url;
    if (url.len > 0) {
        const char *value = arena_printf(arena, "<" STR_FMT ">", STR_ARG(url));
        add_header(mail, headers, "List-Unsubscribe", str_from(value));
        if (mime_takes_one_click(url)) {
            add_header(mail, headers, "List-Unsubscribe-Post", STR("List-Unsubscribe=One-Click"));
        }
    }
    return mail;
}

Str vendor_mail_key(const Job *job)
{
    return str_from(arena_printf(
        job->delivery->arena, STR_FMT "-%d", STR_ARG(job->key->notification_id),
        job->key->attempt));
}

void vendor_mail_claim(Job *job)
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
}
