// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_build.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "common/storage/sigv4.h"

enum { BODY_MAX = 128 * 1024 * 1024, URL_MAX = 8192 };

// ---- checks ----

static bool is_url(Str text)
{
    return (str_starts(text, STR("https://")) || str_starts(text, STR("http://"))) &&
           !str_has_control(text) && str_find(text, ' ') < 0;
}

static bool check_settings(const VendorApi *api, const VendorAccount *account, Error *err)
{
    for (size_t i = 0; i < account->setting_count; i++) {
        const VendorPair *setting = &account->settings[i];
        if (!str_is_utf8(setting->value) || str_has_control(setting->value)) {
            return error_set(
                err, ERROR_CONFIG,
                "the setting '" STR_FMT "' of the credential '" STR_FMT
                "' is not one line of UTF-8",
                STR_ARG(setting->name), STR_ARG(account->name));
        }
    }
    for (size_t i = 0; api->needs != NULL && api->needs[i] != NULL; i++) {
        if (vendor_setting(account, str_from(api->needs[i])).len == 0) {
            return error_set(
                err, ERROR_CONFIG, "the credential '" STR_FMT "' of %s needs the setting '%s'",
                STR_ARG(account->name), api->name, api->needs[i]);
        }
    }
    Str base = vendor_setting(account, STR("base_url"));
    return base.len == 0 || is_url(base) ||
           error_set(
               err, ERROR_CONFIG,
               "the setting 'base_url' of the credential '" STR_FMT "' is not an http(s) URL",
               STR_ARG(account->name));
}

bool vendor_check_account(const VendorApi *api, const VendorAccount *account, Error *err)
{
    bool broken = api->document ? !str_is_utf8(account->secret) : str_has_control(account->secret);
    if (!api->endpoint && (account->secret.len == 0 || broken)) {
        return error_set(
            err, ERROR_CONFIG, "the credential '" STR_FMT "' of %s has %s", STR_ARG(account->name),
            api->name,
            account->secret.len == 0 ? "no secret"
            : api->document          ? "a secret that is no text"
                                     : "a line break in its secret");
    }
    if (api->needs_id && (account->id.len == 0 || str_has_control(account->id))) {
        return error_set(
            err, ERROR_CONFIG, "the credential '" STR_FMT "' of %s needs an 'id'",
            STR_ARG(account->name), api->name);
    }
    return check_settings(api, account, err);
}

bool vendor_setting_host(const VendorAccount *account, Str name, Str *ret, Error *err)
{
    Str text = vendor_setting(account, name);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!ascii_is_alnum(c) && c != '.' && c != '-') {
            return error_set(
                err, ERROR_CONFIG,
                "the setting '" STR_FMT "' of the credential '" STR_FMT
                "' may have letters, digits, '.' and '-' only",
                STR_ARG(name), STR_ARG(account->name));
        }
    }
    *ret = text;
    return true;
}

static bool check_utf8(Str text, const char *field, Error *err)
{
    return str_is_utf8(text) ||
           error_set(err, ERROR_PERMANENT, "the mail's '%s' is not UTF-8", field);
}

static bool is_ascii(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

// None of them takes SMTPUTF8 (RFC 6531); domains are A-labels already.
static bool check_mailbox(const VendorApi *api, Str address, const char *field, Error *err)
{
    return is_ascii(address) ||
           error_set(
               err, ERROR_PERMANENT,
               "the mail's '%s' has an address with more than ASCII, which %s does not take", field,
               api->name);
}

static bool check_address(
    const VendorApi *api, const VendorAddress *address, const char *field, Error *err)
{
    if (address->address.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the mail's '%s' has no address", field);
    }
    return check_mailbox(api, address->address, field, err) &&
           check_utf8(address->name, field, err);
}

static bool check_addresses(const VendorApi *api, const VendorMail *mail, Error *err)
{
    size_t count = 1 + mail->cc_count + mail->bcc_count;
    if (count > api->recipients_max) {
        return error_set(
            err, ERROR_PERMANENT,
            "the mail has %zu recipients in 'to', 'cc' and 'bcc', and %s takes at most %zu", count,
            api->name, api->recipients_max);
    }
    bool good = check_address(api, &mail->from, "from", err) &&
                check_address(api, &mail->to, "to", err) &&
                check_mailbox(api, mail->reply_to, "reply_to", err);
    for (size_t i = 0; good && i < mail->cc_count; i++) {
        good = check_address(api, &mail->cc[i], "cc", err);
    }
    for (size_t i = 0; good && i < mail->bcc_count; i++) {
        good = check_address(api, &mail->bcc[i], "bcc", err);
    }
    return good;
}

// What a vendor writes itself out of the mail's fields.
static bool is_written_by_vendor(Str name)
{
    static const char *const names[] = {"From",         "To",           "Cc",
                                        "Bcc",          "Subject",      "Reply-To",
                                        "Received",     "Content-Type", "Content-Transfer-Encoding",
                                        "MIME-Version", "Return-Path",  "DKIM-Signature",
                                        "Message-ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq_nocase(name, str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

static bool check_headers(const VendorApi *api, const VendorMail *mail, Error *err)
{
    for (size_t i = 0; i < mail->header_count; i++) {
        const VendorPair *header = &mail->headers[i];
        if (header->name.len == 0 || is_written_by_vendor(header->name)) {
            return error_set(
                err, ERROR_PERMANENT, "the mail's header '" STR_FMT "' cannot be set at %s",
                STR_ARG(header->name), api->name);
        }
        if (!check_utf8(header->name, "headers", err) ||
            !check_utf8(header->value, "headers", err)) {
            return false;
        }
    }
    return true;
}

static size_t base64_length(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

static size_t parts_size(const VendorMail *mail)
{
    size_t size = mail->subject.len + mail->html.len + mail->text.len;
    for (size_t i = 0; i < mail->header_count; i++) {
        size += mail->headers[i].name.len + mail->headers[i].value.len;
    }
    for (size_t i = 0; i < mail->attachment_count; i++) {
        size += base64_length(mail->attachments[i].bytes.len) + mail->attachments[i].name.len;
    }
    return size;
}

static bool check_size(const VendorApi *api, size_t size, const char *fields, Error *err)
{
    return size <= api->message_max ||
           error_set(
               err, ERROR_PERMANENT, "the mail's %s have %zu bytes, and %s takes at most %zu",
               fields, size, api->name, api->message_max);
}

static bool check_parts(const VendorApi *api, const VendorMail *mail, Error *err)
{
    if (mail->html.len == 0 && mail->text.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the mail has neither 'html' nor 'text', and %s needs one",
            api->name);
    }
    bool good = check_size(api, parts_size(mail), "'html', 'text' and 'attachments'", err) &&
                check_utf8(mail->subject, "subject", err) && check_utf8(mail->html, "html", err) &&
                check_utf8(mail->text, "text", err) &&
                check_utf8(mail->message_id, "message_id", err) && check_headers(api, mail, err);
    for (size_t i = 0; good && i < mail->attachment_count; i++) {
        const VendorAttachment *attachment = &mail->attachments[i];
        good = check_utf8(attachment->name, "attachments", err) &&
               check_utf8(attachment->type, "attachments", err) &&
               check_utf8(attachment->content_id, "attachments", err);
    }
    return good;
}

bool vendor_check_mail(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, Error *err)
{
    if (!vendor_check_account(api, account, err) || !check_addresses(api, mail, err)) {
        return false;
    }
    if (!api->whole) {
        return check_parts(api, mail, err);
    }
    if (mail->message.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the mail has no 'message'");
    }
    return check_size(api, mail->message.len, "headers, body and attachments", err);
}

bool vendor_check_key(const VendorApi *api, const VendorMail *mail, Error *err)
{
    bool good = mail->key.len > 0 && mail->key.len <= VENDOR_KEY_MAX;
    for (size_t i = 0; good && i < mail->key.len; i++) {
        char c = mail->key.ptr[i];
        good = ascii_is_alnum(c) || c == '.' || c == '_' || c == '-';
    }
    return good || error_set(
                       err, ERROR_PERMANENT,
                       "the mail's 'key' is not 1 to %d of the characters that %s takes",
                       VENDOR_KEY_MAX, api->name);
}

bool vendor_check_extensions(
    const VendorApi *api, const VendorMail *mail, const char *const *refused, Error *err)
{
    for (size_t i = 0; i < mail->attachment_count; i++) {
        Str rest = mail->attachments[i].name, last = STR_EMPTY;
        bool has_dot = str_find(rest, '.') >= 0;
        while (has_dot && str_split(&rest, '.', &last)) {
        }
        for (size_t j = 0; has_dot && refused[j] != NULL; j++) {
            if (str_eq_nocase(last, str_from(refused[j]))) {
                return error_set(
                    err, ERROR_PERMANENT, "%s takes no attachment of the type '.%s': '" STR_FMT "'",
                    api->name, refused[j], STR_ARG(str_slice(mail->attachments[i].name, 0, 80)));
            }
        }
    }
    return true;
}

// ---- pieces of a request ----

Str vendor_url(const VendorAccount *account, Str fallback, Str path, Arena *arena)
{
    Str base = vendor_setting(account, STR("base_url"));
    base = base.len > 0 ? base : fallback;
    while (str_ends(base, STR("/"))) {
        base.len--;
    }
    return str_from(arena_printf(arena, STR_FMT STR_FMT, STR_ARG(base), STR_ARG(path)));
}

// "..", "." and their like, also as a server reads them that decodes a slash first: "..%2Fadmin".
static bool leads_away(Str segment)
{
    bool slash =
        str_contains_nocase(segment, STR("%2f")) || str_contains_nocase(segment, STR("%5c"));
    return str_eq(segment, STR("..")) || str_eq(segment, STR(".")) ||
           str_contains_nocase(segment, STR("%2e")) || str_find(segment, '\\') >= 0 ||
           (slash && str_contains_nocase(segment, STR("..")));
}

bool vendor_url_leaves_path(Str url)
{
    ptrdiff_t query = str_find(url, '?');
    Str path = query < 0 ? url : str_slice(url, 0, (size_t)query);
    Str segment;
    while (str_split(&path, '/', &segment)) {
        if (leads_away(segment)) {
            return true;
        }
    }
    return false;
}

Str vendor_encode(Str text, Arena *arena)
{
    Buf out;
    buf_init(&out, URL_MAX);
    sigv4_encode(text, false, &out);
    Str encoded = arena_str(arena, buf_view(&out));
    buf_done(&out);
    return encoded;
}

void vendor_add_header(VendorRequest *request, Str name, Str value)
{
    assert(request->header_count < VENDOR_HEADERS_MAX);
    request->headers[request->header_count++] = (VendorPair){name, value};
}

void vendor_add_authorization(VendorRequest *request, const char *scheme, Str value, Arena *arena)
{
    Str text = str_from(arena_printf(arena, "%s " STR_FMT, scheme, STR_ARG(value)));
    vendor_add_header(request, STR("Authorization"), text);
}

Str vendor_base64(Str bytes, Arena *arena)
{
    assert(bytes.len < BODY_MAX);
    size_t length = base64_length(bytes.len);
    unsigned char *out = arena_alloc(arena, length + 1);
    EVP_EncodeBlock(out, (const unsigned char *)bytes.ptr, (int)bytes.len);
    return str_of(out, length);
}

// Atoms and blanks, or more than ASCII: everything that may stand without quotes.
static bool is_plain_name(Str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!ascii_is_alnum(c) && (unsigned char)c < 0x80 &&
            (c == '\0' || strchr(" !#$%&'*+-/=?^_`{|}~", c) == NULL)) {
            return false;
        }
    }
    return true;
}

Str vendor_mailbox(const VendorAddress *address, Arena *arena)
{
    Str name = address->name;
    if (name.len == 0) {
        return address->address;
    }
    if (is_plain_name(name)) {
        return str_from(arena_printf(
            arena, STR_FMT " <" STR_FMT ">", STR_ARG(name), STR_ARG(address->address)));
    }
    char *quoted = arena_alloc(arena, 2 * name.len);
    size_t length = 0;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"' || name.ptr[i] == '\\') {
            quoted[length++] = '\\';
        }
        quoted[length++] = name.ptr[i];
    }
    Str inner = str_of(quoted, length);
    return str_from(arena_printf(
        arena, "\"" STR_FMT "\" <" STR_FMT ">", STR_ARG(inner), STR_ARG(address->address)));
}

Str vendor_return_path(const VendorMail *mail, const VendorAccount *account)
{
    Str domain = vendor_setting(account, STR("bounce_domain"));
    ptrdiff_t at = str_find(mail->return_path, '@');
    bool is_theirs =
        domain.len > 0 && at > 0 &&
        str_eq_nocase(str_slice(mail->return_path, (size_t)at + 1, mail->return_path.len), domain);
    return is_theirs ? mail->return_path : STR_EMPTY;
}

Str vendor_attempt(const VendorMail *mail, Arena *arena)
{
    return str_from(arena_printf(arena, "%d", mail->attempt));
}
