// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/mailgun/mailgun.h"
#include "common/vendor/multipart.h"
#include "common/vendor/vendor_build.h"

static const char *const needs[] = {"domain", NULL};

const VendorApi mailgun_api = {
    .name = "mailgun",
    .channel = CHANNEL_EMAIL,
    .base_url = "https://api.mailgun.net",
    .needs = needs,
    .whole = true,
    .message_max = 25 * 1024 * 1024,
    .recipients_max = 1000,
    .build = mailgun_build,
    .rehearse = mailgun_rehearse,
    .read = mailgun_read,
    .test = mailgun_test,
    .ask = mailgun_ask,
    .asked = mailgun_asked,
};

enum { FIELDS_BESIDES_TO = 6 };

// "/v3/<domain>/<leaf>"; ERROR_CONFIG: the domain is none.
static bool begin(
    const VendorAccount *account, const char *method, const char *leaf, Arena *arena,
    VendorRequest *ret, Error *err)
{
    Str domain;
    if (!vendor_setting_host(account, STR("domain"), &domain, err)) {
        return false;
    }
    Str path = str_from(arena_printf(arena, "/v3/" STR_FMT "/%s", STR_ARG(domain), leaf));
    Str user = str_from(arena_printf(arena, "api:" STR_FMT, STR_ARG(account->secret)));
    *ret = (VendorRequest){
        .method = method,
        .url = vendor_url(account, str_from(mailgun_api.base_url), path, arena),
        .body = STR_EMPTY};
    vendor_add_authorization(ret, "Basic", vendor_base64(user, arena), arena);
    return true;
}

// The envelope: everyone who gets it, for whom the whole mail has its own To and Cc.
static size_t put_recipients(const VendorMail *mail, MultipartField *fields)
{
    size_t count = 0;
    fields[count++] = (MultipartField){.name = STR("to"), .value = mail->to.address};
    for (size_t i = 0; i < mail->cc_count; i++) {
        fields[count++] = (MultipartField){.name = STR("to"), .value = mail->cc[i].address};
    }
    for (size_t i = 0; i < mail->bcc_count; i++) {
        fields[count++] = (MultipartField){.name = STR("to"), .value = mail->bcc[i].address};
    }
    return count;
}

static bool build(
    const VendorMail *mail, const VendorAccount *account, bool rehearsal, Arena *arena,
    VendorRequest *ret, Error *err)
{
    if (!vendor_check_mail(&mailgun_api, mail, account, err) ||
        !begin(account, "POST", "messages.mime", arena, ret, err)) {
        return false;
    }
    size_t room = 1 + mail->cc_count + mail->bcc_count + FIELDS_BESIDES_TO;
    MultipartField *fields = arena_array(arena, room, sizeof *fields);
    size_t count = put_recipients(mail, fields);
    fields[count++] = (MultipartField){.name = STR("o:tracking"), .value = STR("no")};
    if (rehearsal) {
        fields[count++] = (MultipartField){.name = STR("o:testmode"), .value = STR("yes")};
    }
    if (mail->category.len > 0) {
        fields[count++] = (MultipartField){.name = STR("o:tag"), .value = mail->category};
    }
    fields[count++] = (MultipartField){.name = STR("v:nid"), .value = mail->notification_id};
    fields[count++] =
        (MultipartField){.name = STR("v:attempt"), .value = vendor_attempt(mail, arena)};
    fields[count++] = (MultipartField){
        .name = STR("message"),
        .value = mail->message,
        .filename = STR("message.mime"),
        .type = STR("message/rfc822")};
    multipart_set(ret, fields, count, arena);
    return true;
}

bool mailgun_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    return build(mail, account, false, arena, ret, err);
}

bool mailgun_rehearse(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    return build(mail, account, true, arena, ret, err);
}

bool mailgun_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&mailgun_api, account, err) ||
        !begin(account, "POST", "messages", arena, ret, err)) {
        return false;
    }
    Str domain = vendor_setting(account, STR("domain"));
    Str address = str_from(arena_printf(arena, "postmaster@" STR_FMT, STR_ARG(domain)));
    const MultipartField fields[] = {
        {.name = STR("from"), .value = address},
        {.name = STR("to"), .value = address},
        {.name = STR("subject"), .value = STR("test of a credential")},
        {.name = STR("text"), .value = STR("not delivered")},
        {.name = STR("o:testmode"), .value = STR("yes")}};
    multipart_set(ret, fields, sizeof fields / sizeof *fields, arena);
    return true;
}

bool mailgun_ask(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&mailgun_api, account, err)) {
        return false;
    }
    if (mail->message_id.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the mail has no 'message_id' to ask mailgun for");
    }
    Str id = vendor_encode(mail->message_id, arena);
    const char *leaf = arena_printf(
        arena, "events?event=accepted&limit=%d&message-id=" STR_FMT, MAILGUN_ASK_MAX, STR_ARG(id));
    return begin(account, "GET", leaf, arena, ret, err);
}
