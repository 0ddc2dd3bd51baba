// SPDX-License-Identifier: Apache-2.0
#include "common/request/request_mail.h"

#include "common/model/channel_address.h"
#include "common/model/suppressions.h"

static bool check_one(
    MailAddress *one, const char *list, size_t index, Arena *arena, FieldError *err)
{
    char reason[ADDRESS_REASON_SIZE];
    const char *field = arena_printf(arena, "%s[%zu]", list, index);
    if (one->name.len > REQUEST_NAME_MAX) {
        return field_error(err, field, "the name is longer than %d bytes", (int)REQUEST_NAME_MAX);
    }
    return (people_address_check(CHANNEL_EMAIL, one->address, arena, &one->address, reason) &&
            address_name_check(one->name, reason)) ||
           field_error(err, field, "%s", reason);
}

static bool check_list(
    MailAddress *list, size_t count, const char *name, Arena *arena, FieldError *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_one(&list[i], name, i, arena, err)) {
            return false;
        }
    }
    return true;
}

// The n-th of `cc` and `bcc` together.
static Str address_at(const RequestMail *mail, size_t n)
{
    return n < mail->cc_count ? mail->cc[n].address : mail->bcc[n - mail->cc_count].address;
}

// A mailbox that gets the mail twice looks like a fault of ours.
static bool check_doubles(const RequestMail *mail, Str to, Arena *arena, FieldError *err)
{
    size_t count = mail->cc_count + mail->bcc_count;
    for (size_t i = 0; i < count; i++) {
        bool twice = str_eq_nocase(address_at(mail, i), to);
        for (size_t k = 0; k < i && !twice; k++) {
            twice = str_eq_nocase(address_at(mail, i), address_at(mail, k));
        }
        if (twice) {
            bool is_cc = i < mail->cc_count;
            return field_error(
                err,
                arena_printf(
                    arena, "%s[%zu]", is_cc ? "cc" : "bcc", is_cc ? i : i - mail->cc_count),
                "the address gets the mail already");
        }
    }
    return true;
}

// RFC 2919: a label, a dot and a domain.
static bool is_list_id(Str text)
{
    char before = '.';
    bool dotted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = ascii_is_alnum(c) || c == '-' || c == '_';
        if (!plain && (c != '.' || before == '.')) {
            return false;
        }
        dotted = dotted || c == '.';
        before = c;
    }
    return dotted && before != '.' && text.len <= MAIL_LIST_ID_MAX;
}

static bool check_places(RequestMail *mail, Arena *arena, FieldError *err)
{
    char reason[ADDRESS_REASON_SIZE];
    if (mail->reply_to.len > 0 &&
        !people_address_check(CHANNEL_EMAIL, mail->reply_to, arena, &mail->reply_to, reason)) {
        return field_error(err, "reply_to", "%s", reason);
    }
    return mail->list_id.len == 0 || is_list_id(mail->list_id) ||
           field_error(err, "list_id", "not an id such as 'news.example.com' (RFC 2919)");
}

// As mime_content_id_check().
static bool is_content_id(Str id)
{
    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];
        if (!ascii_is_alnum(c) && c != '.' && c != '_' && c != '-' && c != '@' && c != '+') {
            return false;
        }
    }
    return id.len > 0 && id.len <= MAIL_CONTENT_ID_MAX;
}

static bool check_attachments(const RequestMail *mail, Arena *arena, FieldError *err)
{
    for (size_t i = 0; i < mail->attachment_count; i++) {
        const MailAttachment *one = &mail->attachments[i];
        if (one->shown != (one->content_id.len > 0) ||
            (one->shown && !is_content_id(one->content_id))) {
            return field_error(
                err, arena_printf(arena, "attachments[%zu].content_id", i),
                "an inline image has one, such as 'logo', which the HTML shows by cid:logo");
        }
    }
    return true;
}

static const char *first_field(const RequestMail *mail)
{
    return mail->cc_count > 0           ? "cc"
           : mail->bcc_count > 0        ? "bcc"
           : mail->reply_to.len > 0     ? "reply_to"
           : mail->attachment_count > 0 ? "attachments"
                                        : "list_id";
}

bool request_mail_check(RequestMail *mail, Channel channel, Str to, Arena *arena, FieldError *err)
{
    if (channel != CHANNEL_EMAIL) {
        return field_error(err, first_field(mail), "only an e-mail has it");
    }
    if (1 + mail->cc_count + mail->bcc_count > MAIL_RECIPIENTS_MAX) {
        return field_error(
            err, mail->cc_count > 0 ? "cc" : "bcc",
            "%zu recipients with 'to', 'cc' and 'bcc'; at most %d",
            1 + mail->cc_count + mail->bcc_count, (int)MAIL_RECIPIENTS_MAX);
    }
    return check_list(mail->cc, mail->cc_count, "cc", arena, err) &&
           check_list(mail->bcc, mail->bcc_count, "bcc", arena, err) &&
           check_doubles(mail, to, arena, err) && check_places(mail, arena, err) &&
           check_attachments(mail, arena, err);
}

bool request_mail_may_copy(const RequestMail *mail, Category category, FieldError *err)
{
    if (mail == NULL || mail->cc_count + mail->bcc_count == 0 ||
        category_ignores_opt_out(category)) {
        return true;
    }
    return field_error(
        err, mail->cc_count > 0 ? "cc" : "bcc",
        "a mail of category '%s' may be opted out of, so it is not copied: send it to each",
        category_name(category));
}
