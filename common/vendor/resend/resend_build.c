// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/resend/resend.h"

#include <string.h>

#include "common/vendor/vendor_build.h"

const VendorApi resend_api = {
    .name = "resend",
    .channel = CHANNEL_EMAIL,
    .base_url = "https://api.resend.com",
    .message_max = 40 * 1024 * 1024,
    .recipients_max = 50,
    .key_known_s = 24 * 60 * 60,
    .build = resend_build,
    .read = resend_read,
    .test = resend_test,
};

// resend.com/docs/knowledge-base/what-attachment-types-are-not-supported
// clang-format off
static const char *const refused[] = {
    "adp", "app", "asp", "bas", "bat", "cer", "chm", "cmd", "com", "cpl", "crt", "csh", "der", "exe", "fxp",
    "gadget", "hlp", "hta", "inf", "ins", "isp", "its", "js", "jse", "ksh", "lib", "lnk", "mad", "maf", "mag",
    "mam", "maq", "mar", "mas", "mat", "mau", "mav", "maw", "mda", "mdb", "mde", "mdt", "mdw", "mdz", "msc",
    "msh", "msh1", "msh2", "mshxml", "msh1xml", "msh2xml", "msi", "msp", "mst", "ops", "pcd", "pif", "plg",
    "prf", "prg", "reg", "scf", "scr", "sct", "shb", "shs", "sys", "ps1", "ps1xml", "ps2", "ps2xml", "psc1",
    "psc2", "tmp", "url", "vb", "vbe", "vbs", "vps", "vsmacros", "vss", "vst", "vsw", "vxd", "ws", "wsc",
    "wsf", "wsh", "xnk", NULL};
// clang-format on

static bool is_special(char c)
{
    return c != '\0' && strchr("()<>[]:;@\\,.\"", c) != NULL;
}

static bool has_special(Str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (is_special(name.ptr[i])) {
            return true;
        }
    }
    return false;
}

// It refuses a name in quotes, though RFC 5322 wants them: such a name is an encoded word
// (RFC 2047), at most 75 bytes of which 63 are base64.
static Str recipient_text(const VendorAddress *address, Arena *arena)
{
    if (!has_special(address->name)) {
        return vendor_mailbox(address, arena);
    }
    enum { WORD_BYTES = 45 };
    const char *words = "";
    for (size_t at = 0; at < address->name.len;) {
        size_t end = at;
        while (end < address->name.len) {
            size_t step = str_utf8_step(str_slice(address->name, end, address->name.len));
            if (end + step - at > WORD_BYTES) {
                break;
            }
            end += step;
        }
        Str part = vendor_base64(str_slice(address->name, at, end), arena);
        words = arena_printf(
            arena, "%s%s=?UTF-8?B?" STR_FMT "?=", words, at > 0 ? " " : "", STR_ARG(part));
        at = end;
    }
    return str_from(arena_printf(arena, "%s <" STR_FMT ">", words, STR_ARG(address->address)));
}

// Of From it takes neither quotes nor encoded words: what would need them becomes a blank.
static Str from_text(const VendorAddress *address, Arena *arena)
{
    char *name = arena_cstr(arena, address->name);
    for (size_t i = 0; i < address->name.len; i++) {
        name[i] = is_special(name[i]) ? ' ' : name[i];
    }
    Str shown = str_trim(str_of(name, address->name.len));
    if (shown.len == 0) {
        return address->address;
    }
    return str_from(
        arena_printf(arena, STR_FMT " <" STR_FMT ">", STR_ARG(shown), STR_ARG(address->address)));
}

static json_t *list_addresses(const VendorAddress *addresses, size_t count, Arena *arena)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        vendor_json_add(list, vendor_json_str(recipient_text(&addresses[i], arena)));
    }
    return list;
}

static void put_headers(json_t *root, const VendorMail *mail, Arena *arena)
{
    json_t *headers = vendor_json_headers(mail, arena);
    if (json_object_size(headers) > 0) {
        vendor_json_put(root, "headers", headers);
    } else {
        json_decref(headers);
    }
}

static json_t *list_attachments(const VendorMail *mail, Arena *arena)
{
    json_t *list = json_array();
    for (size_t i = 0; i < mail->attachment_count; i++) {
        const VendorAttachment *attachment = &mail->attachments[i];
        json_t *one = json_object();
        vendor_json_put_str(one, "content", vendor_base64(attachment->bytes, arena));
        vendor_json_put_str(one, "filename", attachment->name);
        vendor_json_put_some(one, "content_type", attachment->type);
        vendor_json_put_some(one, "content_id", attachment->content_id);
        vendor_json_add(list, one);
    }
    return list;
}

static json_t *list_tags(const VendorMail *mail, Arena *arena)
{
    json_t *list =
        vendor_json_list(vendor_json_pair("name", STR("nid"), "value", mail->notification_id));
    vendor_json_add(
        list, vendor_json_pair("name", STR("attempt"), "value", vendor_attempt(mail, arena)));
    return list;
}

static void begin(const VendorAccount *account, Arena *arena, VendorRequest *ret)
{
    *ret = (VendorRequest){
        .method = "POST",
        .url = vendor_url(account, str_from(resend_api.base_url), STR("/emails"), arena)};
    vendor_add_authorization(ret, "Bearer", account->secret, arena);
}

bool resend_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_mail(&resend_api, mail, account, err) ||
        !vendor_check_key(&resend_api, mail, err) ||
        !vendor_check_extensions(&resend_api, mail, refused, err)) {
        return false;
    }
    if (mail->subject.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the mail's 'subject' is empty, and resend needs one");
    }
    json_t *root = json_object();
    vendor_json_put_str(root, "from", from_text(&mail->from, arena));
    vendor_json_put(root, "to", list_addresses(&mail->to, 1, arena));
    vendor_json_put_list(root, "cc", list_addresses(mail->cc, mail->cc_count, arena));
    vendor_json_put_list(root, "bcc", list_addresses(mail->bcc, mail->bcc_count, arena));
    vendor_json_put_some(root, "reply_to", mail->reply_to);
    vendor_json_put_str(root, "subject", mail->subject);
    vendor_json_put_some(root, "html", mail->html);
    vendor_json_put_some(root, "text", mail->text);
    put_headers(root, mail, arena);
    vendor_json_put_list(root, "attachments", list_attachments(mail, arena));
    vendor_json_put(root, "tags", list_tags(mail, arena));
    begin(account, arena, ret);
    vendor_add_header(ret, STR("Idempotency-Key"), arena_str(arena, mail->key));
    vendor_set_json(ret, root, arena);
    return true;
}

bool resend_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&resend_api, account, err)) {
        return false;
    }
    begin(account, arena, ret);
    vendor_set_json(ret, json_object(), arena);
    return true;
}
