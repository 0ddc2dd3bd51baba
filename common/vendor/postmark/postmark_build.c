// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/postmark/postmark.h"
#include "common/vendor/vendor_build.h"

enum { BODY_TEXT_MAX = 5 * 1024 * 1024 }; // of HtmlBody and of TextBody

static const char *const optional[] = {"message_stream", NULL};

const VendorApi postmark_api = {
    .name = "postmark",
    .channel = CHANNEL_EMAIL,
    .base_url = "https://api.postmarkapp.com",
    .settings = optional,
    .message_max = 10 * 1024 * 1024,
    .recipients_max = 50,
    .build = postmark_build,
    .rehearse = postmark_rehearse,
    .read = postmark_read,
    .test = postmark_test,
    .ask = postmark_ask,
    .asked = postmark_asked,
};

// postmarkapp.com/support, "Which file types can I attach?": answered with ErrorCode 411.
static const char *const refused[] = {"vbs", "exe", "bin", "bat", "chm", "com", "cpl", "crt",
                                      "hlp", "hta", "inf", "ins", "isp", "jse", "lnk", "mdb",
                                      "pcd", "pif", "reg", "scr", "sct", "shs", "vbe", "vba",
                                      "wsf", "wsh", "wsl", "msc", "msi", "msp", "mst", NULL};

static void begin(
    const VendorAccount *account, const char *method, Str path, Arena *arena, VendorRequest *ret)
{
    *ret = (VendorRequest){
        .method = method,
        .url = vendor_url(account, str_from(postmark_api.base_url), path, arena),
        .body = STR_EMPTY};
    vendor_add_header(ret, STR("Accept"), STR("application/json"));
    vendor_add_header(ret, STR("X-Postmark-Server-Token"), arena_str(arena, account->secret));
}

static void put_mailboxes(
    json_t *root, const char *name, const VendorAddress *addresses, size_t count, Arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        Str mailbox = vendor_mailbox(&addresses[i], arena);
        text = arena_printf(arena, "%s%s" STR_FMT, text, i > 0 ? ", " : "", STR_ARG(mailbox));
    }
    vendor_json_put_some(root, name, str_from(text));
}

static void put_headers(json_t *root, const VendorMail *mail, Arena *arena)
{
    json_t *headers = json_array();
    for (size_t i = 0; i < mail->header_count; i++) {
        const VendorPair *header = &mail->headers[i];
        vendor_json_add(headers, vendor_json_pair("Name", header->name, "Value", header->value));
    }
    if (mail->message_id.len > 0) {
        Str id = str_from(arena_printf(arena, "<" STR_FMT ">", STR_ARG(mail->message_id)));
        vendor_json_add(headers, vendor_json_pair("Name", STR("Message-ID"), "Value", id));
        // Without it the vendor writes a Message-ID of its own.
        vendor_json_add(
            headers, vendor_json_pair("Name", STR("X-PM-KeepID"), "Value", STR("true")));
    }
    vendor_json_put_list(root, "Headers", headers);
}

static void put_attachments(json_t *root, const VendorMail *mail, Arena *arena)
{
    json_t *list = json_array();
    for (size_t i = 0; i < mail->attachment_count; i++) {
        const VendorAttachment *attachment = &mail->attachments[i];
        json_t *one = json_object();
        vendor_json_put_str(one, "Name", attachment->name);
        if (attachment->content_id.len > 0) {
            Str cid = attachment->content_id;
            vendor_json_put_str(
                one, "ContentID", str_from(arena_printf(arena, "cid:" STR_FMT, STR_ARG(cid))));
        }
        vendor_json_put_str(one, "Content", vendor_base64(attachment->bytes, arena));
        vendor_json_put_str(one, "ContentType", attachment->type);
        vendor_json_add(list, one);
    }
    vendor_json_put_list(root, "Attachments", list);
}

static void put_metadata(json_t *root, const VendorMail *mail, Arena *arena)
{
    vendor_json_put(
        root, "Metadata",
        vendor_json_pair("nid", mail->notification_id, "attempt", vendor_attempt(mail, arena)));
}

static bool check_bodies(const VendorMail *mail, Error *err)
{
    const char *field = mail->html.len > BODY_TEXT_MAX   ? "html"
                        : mail->text.len > BODY_TEXT_MAX ? "text"
                                                         : NULL;
    return field == NULL ||
           error_set(
               err, ERROR_PERMANENT, "the mail's '%s' is longer than the %d bytes that %s takes",
               field, BODY_TEXT_MAX, postmark_api.name);
}

bool postmark_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_mail(&postmark_api, mail, account, err) || !check_bodies(mail, err) ||
        !vendor_check_extensions(&postmark_api, mail, refused, err)) {
        return false;
    }
    json_t *root = json_object();
    put_mailboxes(root, "From", &mail->from, 1, arena);
    put_mailboxes(root, "To", &mail->to, 1, arena);
    put_mailboxes(root, "Cc", mail->cc, mail->cc_count, arena);
    put_mailboxes(root, "Bcc", mail->bcc, mail->bcc_count, arena);
    vendor_json_put_str(root, "Subject", mail->subject);
    vendor_json_put_some(root, "Tag", mail->category);
    vendor_json_put_some(root, "HtmlBody", mail->html);
    vendor_json_put_some(root, "TextBody", mail->text);
    vendor_json_put_some(root, "ReplyTo", mail->reply_to);
    put_headers(root, mail, arena);
    vendor_json_put(root, "TrackOpens", json_false());
    vendor_json_put(root, "TrackLinks", json_string("None"));
    put_attachments(root, mail, arena);
    put_metadata(root, mail, arena);
    vendor_json_put_some(root, "MessageStream", vendor_setting(account, STR("message_stream")));
    begin(account, "POST", STR("/email"), arena, ret);
    vendor_set_json(ret, root, arena);
    return true;
}

// Its token for tests takes the place of the account's: the mail is checked, and no server of the
// account has it.
bool postmark_rehearse(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    VendorAccount tests = *account;
    tests.secret = STR("POSTMARK_API_TEST");
    return postmark_build(mail, &tests, now_us, arena, ret, err);
}

bool postmark_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&postmark_api, account, err)) {
        return false;
    }
    begin(account, "GET", STR("/server"), arena, ret);
    return true;
}

bool postmark_ask(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&postmark_api, account, err)) {
        return false;
    }
    Str nid = vendor_encode(mail->notification_id, arena);
    Str path = str_from(arena_printf(
        arena, "/messages/outbound?count=50&offset=0&metadata_nid=" STR_FMT, STR_ARG(nid)));
    begin(account, "GET", path, arena, ret);
    return true;
}
