// SPDX-License-Identifier: Apache-2.0
// What only an e-mail has: its sender, copies, files, dress and envelope.
#include <ctype.h>

#include "common/model/rules/mail_provider.h"
#include "services/dispatcher/opening/opening.h"
#include "services/dispatcher/routing/vendor_mail.h"
#include "services/dispatcher/routing/vendors.h"
#include "stentor/v1/request.pb-c.h"

enum { FILES_DELIVERIES_MAX = 150 };

typedef struct From {
    Str name, address;
} From;

static From choose_sender(
    const Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content)
{
    From from = {str_from(content->from_name), str_from(content->from)};
    if (from.address.len == 0 &&
        !directory_sender(opening->directory, job->key->tenant, &from.name, &from.address)) {
        from = (From){opening->rules->from_name, opening->rules->from};
    }
    return from;
}

static Str lowered(Arena *arena, Str text)
{
    char *copy = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = (char)tolower((unsigned char)copy[i]);
    }
    return (Str){copy, text.len};
}

// The last check of a From, wherever it came from.
static bool is_verified(const Job *job, const JobOpening *opening, Str address)
{
    return str_eq(address, opening->rules->from) ||
           directory_may_send_as(opening->directory, job->key->tenant, address);
}

static const Copies *choose_copies(
    const Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content)
{
    const CopiesWant want = {
        .known = directory_suppressions(opening->directory),
        .hash_keys = &opening->rules->hash_keys,
        .rendered = job->rendered,
        .content = content,
        .now_us = opening->now_us,
        .arena = job->delivery->arena,
    };
    return copies_choose(&want);
}

// false: *ret_code and err say why; ERROR_CANCELLED: they are on their way.
static bool gather_files(
    Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content, MimeFile *files,
    const char **ret_code, Error *err)
{
    size_t bytes = 0;
    bool coming = false;
    for (size_t i = 0; i < content->n_attachments; i++) {
        const Stentor__V1__Attachment *file = content->attachments[i];
        Str plain = STR_EMPTY;
        switch (attachments_get(opening->attachments, file, opening->now_ms, &plain, err)) {
        case ATTACHMENT_HERE:
            break;
        case ATTACHMENT_COMING:
            coming = true; // the others are asked for, too
            break;
        case ATTACHMENT_AWAY:
            *ret_code = "attachment_unreachable";
            err->kind = ERROR_TRANSIENT;
            return false;
        case ATTACHMENT_LOST:
            *ret_code = "attachment_lost";
            err->kind = ERROR_PERMANENT;
            return false;
        }
        bytes += file->size_bytes;
        files[i] = (MimeFile){
            str_from(file->name), str_from(file->content_type), str_from(file->content_id), plain};
    }
    if (coming || !attachments_hold(opening->attachments, bytes)) {
        bool late = job->delivery->message.delivered > FILES_DELIVERIES_MAX;
        *ret_code = "attachment_unreachable";
        return error_set(
            err, late ? ERROR_TRANSIENT : ERROR_CANCELLED,
            "the mail's attachments did not come from object storage in time");
    }
    job->attached = bytes;
    return true;
}

// What the mail carries beside its content, into job->dress. false: *ret_code and err say why;
// ERROR_CANCELLED: a key is being read.
static bool make_dress(
    Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content, Str from,
    const char **ret_code, Error *err)
{
    const DressWant want = {
        .rules = &opening->rules->dress,
        .domains = directory_send_domains(opening->directory),
        .rendered = job->rendered,
        .from = from,
        .list_id = str_from(content->list_id),
        .arena = job->delivery->arena,
    };
    if (dress_make(&want, &job->dress, err)) {
        return true;
    }
    bool unreadable = err->kind == ERROR_TRANSIENT || err->kind == ERROR_CANCELLED;
    *ret_code = unreadable ? "dkim_key_unreadable" : *ret_code;
    if (err->kind == ERROR_CANCELLED && !opening->patient) {
        err->kind = ERROR_TRANSIENT; // its reading takes too long
    }
    return false;
}

static bool fill_envelope(Job *job, const MimeMail *mime, const Copies *copies, Error *err)
{
    Arena *arena = job->delivery->arena;
    bool from_utf8 = false;
    bool reply_utf8 = false;
    if (!mail_address_check("from", mime->from, &from_utf8, err) ||
        (mime->reply_to.len > 0 &&
         !mail_address_check("reply_to", mime->reply_to, &reply_utf8, err))) {
        return false;
    }
    job->mail.from =
        job->dress.return_path.len > 0 ? job->dress.return_path : arena_str(arena, mime->from);
    job->mail.envid = job->dress.token;
    job->mail.to = arena_str(arena, mime->to);
    job->mail.copies = copies->envelope;
    job->mail.copy_count = copies->count;
    job->mail.utf8 = job->mail.utf8 || from_utf8 || reply_utf8 || copies->utf8;
    return true;
}

static bool compose(
    Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content, const From *from,
    const Stentor__V1__Address *address, const char **ret_code, Error *err)
{
    Arena *arena = job->delivery->arena;
    const Copies *copies = choose_copies(job, opening, content);
    MimeFile *files = arena_array(opening->scratch, content->n_attachments + 1, sizeof *files);
    *ret_code = "invalid_content";
    if (content->n_attachments > 0 && !gather_files(job, opening, content, files, ret_code, err)) {
        return false;
    }
    MimeMail mime = {
        .cc = copies->cc,
        .cc_count = copies->cc_count,
        .files = files,
        .file_count = content->n_attachments,
        .from = from->address,
        .from_name = from->name,
        .to = str_from(address->address),
        .to_name = str_from(address->name),
        .reply_to = str_from(content->reply_to),
        .subject = str_from(content->subject),
        .html = str_from(content->html),
        .text = str_from(content->text),
        .unsubscribe_url = str_from(content->unsubscribe_url),
        .id = job->key->notification_id,
        .id_domain = opening->rules->mail_domain,
        .date_us =
            job->rendered->rendered_at_us, // of the event, so that a resend is equal byte by byte
    };
    if (!make_dress(job, opening, content, from->address, ret_code, err)) {
        return false;
    }
    dress_put_on(&job->dress, &mime);
    buf_clear(opening->buf);
    // Most vendors with HTTP APIs take the fields: writing the message was 15 us of a mail of 4 KB.
    bool whole = vendors_want_message(&job->route);
    if (!(whole ? mime_compose : mime_check)(&mime, opening->buf, err)) {
        return false;
    }
    if (!fill_envelope(job, &mime, copies, err)) {
        return false;
    }
    for (size_t i = 0; i < job->dress.signer_count; i++) {
        job->dress.signers[i].rewritten = vendors_rewrite_message(&job->route);
    }
    if (whole &&
        !dress_sign(
            &job->dress, buf_view(opening->buf), mime.date_us, arena, &job->mail.message, err)) {
        return false;
    }
    job->message_id = str_from(arena_printf(
        arena, STR_FMT "@" STR_FMT, STR_ARG(job->key->notification_id),
        STR_ARG(opening->rules->mail_domain)));
    if (job->route.routed) {
        job->mail.content = vendor_mail_make(job, &mime);
    }
    return true;
}

// What it needs cannot be had now: it takes a rung of the ladder, and nothing is sent. The attempt
// counts as one at the vendor that was to have it, so that it stands among the others.
static void put_off(Job *job, const JobOpening *opening, const char *code, const Error *why)
{
    const SendResult result = {
        .state = SEND_UNSENT,
        .code = str_from(code),
        .text = str_from(why->text),
    };
    job->decided = true;
    if (!job->route.routed) {
        job->place = (LedgerPlace){str_from(opening->rules->vendor), STR_EMPTY, STR_EMPTY};
    }
    job->row.claimed_at_us = opening->now_us;
    job_outcome(job, opening->rules, &result, opening->now_us);
}

bool opening_mail(Job *job, const JobOpening *opening, const BodyPrefix *prefix)
{
    Error err = {0};
    bool wait = false;
    const char *code = "";
    From from = {STR_EMPTY, STR_EMPTY};
    const Stentor__V1__EmailContent *content = (const void *)opening_content(
        job, opening, prefix, &stentor__v1__email_content__descriptor, &err);
    const Stentor__V1__Address *to = content != NULL ? opening_address(job, opening, &err) : NULL;
    if (to != NULL) {
        from = choose_sender(job, opening, content);
        job->from_domain = lowered(job->delivery->arena, mail_domain_of(from.address));
        job->provider = mail_provider(str_from(to->address));
    }
    if (to == NULL) {
        job_decide_unsent(job, "unreadable_content", str_from(err.text), true, opening->now_us);
    } else if (!mail_address_check("to", str_from(to->address), &job->mail.utf8, &err)) {
        job_decide_unsent(job, "invalid_address", str_from(err.text), false, opening->now_us);
    } else if (opening_is_barred(job, opening, to->address)) {
        return true;
    } else if (!is_verified(job, opening, from.address)) {
        if (opening->patient) {
            return false;
        }
        (void)error_set(
            &err, ERROR_PERMANENT,
            "the domain of sender '" STR_FMT "' is not verified for tenant '" STR_FMT
            "' (HINT: stentor tenant sender-domain add TENANT DOMAIN)",
            STR_ARG(str_slice(from.address, 0, 80)), STR_ARG(job->key->tenant));
        job_decide_unsent(job, "sender_unverified", str_from(err.text), true, opening->now_us);
    } else if (!opening_has_vendor(job, opening, to->address, &wait)) {
        return !wait;
    } else if (!compose(job, opening, content, &from, to, &code, &err)) {
        if (err.kind == ERROR_CANCELLED) {
            return false;
        }
        if (err.kind == ERROR_TRANSIENT) {
            put_off(job, opening, code, &err);
        } else {
            job_decide_unsent(job, code, str_from(err.text), true, opening->now_us);
        }
    }
    return true;
}
