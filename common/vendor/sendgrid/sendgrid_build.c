// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/sendgrid/sendgrid.h"
#include "common/vendor/vendor_build.h"

static const char *const optional[] = {"test_from", NULL};

const VendorApi sendgrid_api = {
    .name = "sendgrid",
    .channel = CHANNEL_EMAIL,
    .base_url = "https://api.sendgrid.com",
    .settings = optional,
    .message_max = 30 * 1024 * 1024,
    .recipients_max = 1000,
    .build = sendgrid_build,
    .rehearse = sendgrid_rehearse,
    .read = sendgrid_read,
    .test = sendgrid_test,
};

// In a personalization it splits a name at ',' and ';' unless the name has quotes of its own
// (sendgrid/sendgrid-python, issue 291).
static Str recipient_name(Str name, Arena *arena)
{
    bool splits = str_find(name, ',') >= 0 || str_find(name, ';') >= 0;
    if (!splits || str_find(name, '"') >= 0) {
        return name;
    }
    return str_from(arena_printf(arena, "\"" STR_FMT "\"", STR_ARG(name)));
}

static json_t *address_of(Str address, Str name)
{
    json_t *object = json_object();
    vendor_json_put_str(object, "email", address);
    vendor_json_put_some(object, "name", name);
    return object;
}

static bool stands_before(const VendorMail *mail, const VendorAddress *address)
{
    if (str_eq_nocase(address->address, mail->to.address)) {
        return true;
    }
    for (size_t i = 0; i < mail->cc_count; i++) {
        if (&mail->cc[i] == address) {
            return false;
        }
        if (str_eq_nocase(mail->cc[i].address, address->address)) {
            return true;
        }
    }
    for (size_t i = 0; i < mail->bcc_count && &mail->bcc[i] != address; i++) {
        if (str_eq_nocase(mail->bcc[i].address, address->address)) {
            return true;
        }
    }
    return false;
}

// It refuses a mail that has an address twice in to, cc and bcc.
static void put_copies(
    json_t *object, const char *name, const VendorMail *mail, const VendorAddress *addresses,
    size_t count, Arena *arena)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (!stands_before(mail, &addresses[i])) {
            Str shown = recipient_name(addresses[i].name, arena);
            vendor_json_add(list, address_of(addresses[i].address, shown));
        }
    }
    vendor_json_put_list(object, name, list);
}

static json_t *personalization(const VendorMail *mail, Arena *arena)
{
    json_t *object = json_object();
    Str name = recipient_name(mail->to.name, arena);
    vendor_json_put(object, "to", vendor_json_list(address_of(mail->to.address, name)));
    put_copies(object, "cc", mail, mail->cc, mail->cc_count, arena);
    put_copies(object, "bcc", mail, mail->bcc, mail->bcc_count, arena);
    vendor_json_put(
        object, "custom_args",
        vendor_json_pair(
            "notification_id", mail->notification_id, "attempt", vendor_attempt(mail, arena)));
    return object;
}

// Plain text first: it demands that order.
static json_t *content_of(const VendorMail *mail)
{
    json_t *list = json_array();
    if (mail->text.len > 0) {
        vendor_json_add(list, vendor_json_pair("type", STR("text/plain"), "value", mail->text));
    }
    if (mail->html.len > 0) {
        vendor_json_add(list, vendor_json_pair("type", STR("text/html"), "value", mail->html));
    }
    return list;
}

static json_t *attachments_of(const VendorMail *mail, Arena *arena)
{
    json_t *list = json_array();
    for (size_t i = 0; i < mail->attachment_count; i++) {
        const VendorAttachment *attachment = &mail->attachments[i];
        bool is_inline = attachment->content_id.len > 0;
        json_t *one = json_object();
        vendor_json_put_str(one, "content", vendor_base64(attachment->bytes, arena));
        vendor_json_put_str(one, "type", attachment->type);
        vendor_json_put_str(one, "filename", attachment->name);
        vendor_json_put_str(one, "disposition", is_inline ? STR("inline") : STR("attachment"));
        vendor_json_put_some(one, "content_id", attachment->content_id);
        vendor_json_add(list, one);
    }
    return list;
}

static void put_headers(json_t *root, const VendorMail *mail, Arena *arena)
{
    json_t *headers = vendor_json_headers(mail, arena);
    if (mail->message_id.len > 0) {
        Str id = str_from(arena_printf(arena, "<" STR_FMT ">", STR_ARG(mail->message_id)));
        vendor_json_put_str(headers, "Message-ID", id);
    }
    vendor_json_put(root, "headers", headers);
}

static json_t *enabled(bool enable)
{
    json_t *object = json_object();
    vendor_json_put(object, "enable", json_boolean(enable));
    return object;
}

static json_t *no_tracking(void)
{
    json_t *clicks = enabled(false), *object = json_object();
    vendor_json_put(clicks, "enable_text", json_false());
    vendor_json_put(object, "click_tracking", clicks);
    vendor_json_put(object, "open_tracking", enabled(false));
    return object;
}

static void begin(const VendorAccount *account, json_t *root, Arena *arena, VendorRequest *ret)
{
    *ret = (VendorRequest){
        .method = "POST",
        .url = vendor_url(account, str_from(sendgrid_api.base_url), STR("/v3/mail/send"), arena)};
    vendor_add_authorization(ret, "Bearer", account->secret, arena);
    vendor_set_json(ret, root, arena);
}

static json_t *sandbox(void)
{
    json_t *settings = json_object();
    vendor_json_put(settings, "sandbox_mode", enabled(true));
    return settings;
}

static bool build(
    const VendorMail *mail, const VendorAccount *account, bool rehearsal, Arena *arena,
    VendorRequest *ret, Error *err)
{
    if (!vendor_check_mail(&sendgrid_api, mail, account, err)) {
        return false;
    }
    if (mail->subject.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the mail's 'subject' is empty, and sendgrid needs one");
    }
    json_t *root = json_object();
    vendor_json_put(root, "personalizations", vendor_json_list(personalization(mail, arena)));
    vendor_json_put(root, "from", address_of(mail->from.address, mail->from.name));
    if (mail->reply_to.len > 0) {
        vendor_json_put(root, "reply_to", address_of(mail->reply_to, STR_EMPTY));
    }
    vendor_json_put_str(root, "subject", mail->subject);
    vendor_json_put(root, "content", content_of(mail));
    vendor_json_put_list(root, "attachments", attachments_of(mail, arena));
    put_headers(root, mail, arena);
    if (mail->category.len > 0) {
        vendor_json_put(root, "categories", vendor_json_list(vendor_json_str(mail->category)));
    }
    vendor_json_put(root, "tracking_settings", no_tracking());
    if (rehearsal) {
        vendor_json_put(root, "mail_settings", sandbox());
    }
    begin(account, root, arena, ret);
    return true;
}

bool sendgrid_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    return build(mail, account, false, arena, ret, err);
}

bool sendgrid_rehearse(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    return build(mail, account, true, arena, ret, err);
}

bool sendgrid_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&sendgrid_api, account, err)) {
        return false;
    }
    Str from = vendor_setting(account, STR("test_from"));
    from = from.len > 0 ? from : STR("test@example.com");
    json_t *root = json_object(), *to = json_object();
    vendor_json_put(to, "to", vendor_json_list(address_of(STR("test@example.com"), STR_EMPTY)));
    vendor_json_put(root, "personalizations", vendor_json_list(to));
    vendor_json_put(root, "from", address_of(from, STR_EMPTY));
    vendor_json_put_str(root, "subject", STR("test of a credential"));
    vendor_json_put(
        root, "content",
        vendor_json_list(vendor_json_pair("type", STR("text/plain"), "value", STR("not sent"))));
    vendor_json_put(root, "mail_settings", sandbox());
    begin(account, root, arena, ret);
    return true;
}
