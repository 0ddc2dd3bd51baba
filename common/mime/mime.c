// SPDX-License-Identifier: Apache-2.0
#include "common/mime/mime.h"

#include <string.h>
#include <time.h>

#include "common/mime/mime_encode.h"

enum { DATE_SIZE = 48, BOUNDARY_SIZE = 64 };

// ---- addresses ----

static bool is_atom_char(uint8_t c)
{
    bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alnum || c >= 0x80 || (c != 0 && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

static bool is_dot_string(Str text)
{
    bool after_dot = true;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        if (c == '.' ? after_dot : !is_atom_char(c)) {
            return false;
        }
        after_dot = c == '.';
    }
    return !after_dot;
}

static bool is_domain(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && c < 0x80 && c != '-' && c != '.') {
            return false;
        }
    }
    return is_dot_string(text) && text.ptr[0] != '-';
}

bool mail_address_check(const char *field, Str address, bool *ret_utf8, Error *err)
{
    ptrdiff_t at = str_find(address, '@');
    const char *why = NULL;
    if (address.len > MAIL_ADDRESS_MAX || at > MAIL_LOCAL_MAX) {
        why = "it is too long";
    } else if (at <= 0 || !is_dot_string(str_slice(address, 0, (size_t)at))) {
        why = "its part before the '@' is malformed";
    } else if (!is_domain(str_slice(address, (size_t)at + 1, address.len))) {
        why = "its domain is malformed";
    } else if (!str_is_utf8(address)) {
        why = "it is not UTF-8";
    } else if (str_has_bidi(address)) {
        why = "it has a character that changes the direction of writing";
    }
    if (why != NULL) {
        return error_set(err, ERROR_PERMANENT, "'%s' is not an e-mail address: %s", field, why);
    }
    if (ret_utf8 != NULL) {
        *ret_utf8 = false;
        for (size_t i = 0; i < address.len; i++) {
            *ret_utf8 |= (uint8_t)address.ptr[i] >= 0x80;
        }
    }
    return true;
}

// ---- message ----

static void format_date(int64_t at_us, char out[DATE_SIZE])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(at_us / 1000000);
    struct tm t = {0};
    gmtime_r(&seconds, &t);
    size_t used = strftime(out, DATE_SIZE, "xxx, %d xxx %Y %H:%M:%S +0000", &t);
    memcpy(out, days[t.tm_wday % 7], 3); // not %a and %b: these depend on the locale
    memcpy(out + 8, months[t.tm_mon % 12], 3);
    out[used] = '\0';
}

// Printable ASCII without characters that could end the brackets or begin another URL: it cannot
// begin a header and needs no encoding. Its line holds nothing else and has a bounded length.
static bool check_url(Str url, Error *err)
{
    bool good = url.len <= MIME_URL_MAX &&
                (str_starts(url, STR("https://")) || str_starts(url, STR("http://")));
    for (size_t i = 0; good && i < url.len; i++) {
        char c = url.ptr[i];
        good = c > ' ' && c < 0x7f && strchr("<>,\"", c) == NULL;
    }
    return good ||
           error_set(err, ERROR_PERMANENT, "'unsubscribe_url' is not a URL fit for a header");
}

// RFC 8058, section 3.1: one click needs HTTPS. A link to this machine leaves it no more than the
// mail does: a developer sees the header that a recipient will.
bool mime_takes_one_click(Str url)
{
    static const char *const ways[] = {
        "https://", "http://127.0.0.1:", "http://localhost:", "http://[::1]:"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (str_starts(url, str_from(ways[i]))) {
            return true;
        }
    }
    return false;
}

static bool write_unsubscribe(Str url, Buf *out, Error *err)
{
    if (url.len == 0) {
        return true;
    }
    if (!check_url(url, err)) {
        return false;
    }
    buf_str(out, STR("List-Unsubscribe:\r\n <"));
    buf_str(out, url);
    buf_str(out, STR(">\r\n"));
    if (mime_takes_one_click(url)) {
        mime_header_plain("List-Unsubscribe-Post", "List-Unsubscribe=One-Click", out);
    }
    return true;
}

static bool write_cc(const MimeMail *mail, Buf *out, Error *err)
{
    for (size_t i = 0; i < mail->cc_count; i++) {
        buf_cstr(out, i == 0 ? "Cc: " : ",\r\n ");
        if (!mime_mailbox("Cc", mail->cc[i].name, mail->cc[i].address, out, err)) {
            return false;
        }
    }
    buf_cstr(out, mail->cc_count > 0 ? "\r\n" : "");
    return true;
}

// Each on a line of its own, which none of them can leave.
static bool write_extras(const MimeMail *mail, Buf *out, Error *err)
{
    const struct {
        const char *name, *before, *after;
        Str value;
    } extras[] = {
        {"List-Id", "<", ">", mail->list_id},
        {"Feedback-ID", "", "", mail->feedback_id},
        {"CFBL-Address", "", "; report=arf", mail->cfbl_address},
        {"X-Stentor-Test", "", "", mail->test},
    };
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        if (extras[i].value.len == 0) {
            continue;
        }
        if (extras[i].value.len > MIME_EXTRA_MAX || str_has_control(extras[i].value)) {
            return error_set(
                err, ERROR_PERMANENT, "header '%s' has a control character or is too long",
                extras[i].name);
        }
        buf_cstr(out, extras[i].name);
        buf_str(out, STR(": "));
        buf_cstr(out, extras[i].before);
        buf_str(out, extras[i].value);
        buf_cstr(out, extras[i].after);
        buf_str(out, STR("\r\n"));
    }
    return true;
}

static bool write_headers(const MimeMail *mail, Buf *out, Error *err)
{
    char date[DATE_SIZE];
    format_date(mail->date_us, date);
    mime_header_plain("Date", date, out);
    if (!mime_header_mailbox("From", mail->from_name, mail->from, out, err) ||
        !mime_header_mailbox("To", mail->to_name, mail->to, out, err)) {
        return false;
    }
    if (!write_cc(mail, out, err)) {
        return false;
    }
    if (mail->reply_to.len > 0 &&
        !mime_header_mailbox("Reply-To", STR_EMPTY, mail->reply_to, out, err)) {
        return false;
    }
    if (!mime_header_text("Subject", mail->subject, out, err) ||
        !write_unsubscribe(mail->unsubscribe_url, out, err)) {
        return false;
    }
    if (!write_extras(mail, out, err)) {
        return false;
    }
    buf_str(out, STR("Message-ID: <"));
    buf_str(out, mail->id);
    buf_char(out, '@');
    buf_str(out, mail->id_domain);
    buf_str(out, STR(">\r\n"));
    mime_header_plain("Auto-Submitted", "auto-generated", out); // RFC 3834: no vacation replies
    mime_header_plain("MIME-Version", "1.0", out);
    return true;
}

static void write_part(const char *type, Str body, Buf *out)
{
    MimeEncoding encoding = mime_choose(body);
    buf_str(out, STR("Content-Type: "));
    buf_cstr(out, type);
    buf_str(out, STR("; charset=utf-8\r\nContent-Transfer-Encoding: "));
    buf_cstr(out, mime_encoding_name(encoding));
    buf_str(out, STR("\r\n\r\n"));
    size_t before = out->len;
    mime_encode(encoding, body, out);
    bool ended = out->len >= before + 2 && str_ends(buf_view(out), STR("\r\n"));
    if (!ended) {
        buf_str(out, STR("\r\n"));
    }
}

static void write_boundary(const char *boundary, bool last, Buf *out)
{
    buf_str(out, STR("--"));
    buf_cstr(out, boundary);
    buf_str(out, last ? STR("--\r\n") : STR("\r\n"));
}

// "=_" cannot stand in quoted-printable or base64, and mime_choose() keeps it out of 7bit. None of
// the three is another's beginning.
typedef struct Boundary {
    char text[BOUNDARY_SIZE];
} Boundary;

static Boundary boundary_of(const MimeMail *mail, const char *prefix)
{
    Boundary boundary = {{0}};
    size_t len = strlen(prefix);
    Str id = str_slice(mail->id, 0, BOUNDARY_SIZE - len - 1);
    memcpy(boundary.text, prefix, len);
    memcpy(boundary.text + len, id.ptr, id.len);
    return boundary;
}

static void open_multipart(const char *type, const Boundary *boundary, Buf *out)
{
    buf_str(out, STR("Content-Type: multipart/"));
    buf_cstr(out, type);
    buf_str(out, STR(";\r\n boundary=\""));
    buf_cstr(out, boundary->text);
    buf_str(out, STR("\"\r\n\r\n"));
}

static void write_alternative(const MimeMail *mail, Buf *out)
{
    Boundary boundary = boundary_of(mail, "=_stentor_");
    open_multipart("alternative", &boundary, out);
    write_boundary(boundary.text, false, out);
    write_part("text/plain", mail->text, out);
    write_boundary(boundary.text, false, out);
    write_part("text/html", mail->html, out);
    write_boundary(boundary.text, true, out);
}

static void write_texts(const MimeMail *mail, Buf *out)
{
    if (mail->html.len == 0) {
        write_part("text/plain", mail->text, out);
    } else if (mail->text.len == 0) {
        write_part("text/html", mail->html, out);
    } else {
        write_alternative(mail, out);
    }
}

// ---- files ----

static bool is_inline(const MimeMail *mail, const MimeFile *file)
{
    return file->content_id.len > 0 && mail->html.len > 0;
}

static size_t count_files(const MimeMail *mail, bool inlined)
{
    size_t count = 0;
    for (size_t i = 0; i < mail->file_count; i++) {
        count += is_inline(mail, &mail->files[i]) == inlined ? 1 : 0;
    }
    return count;
}

// RFC 2183; a name beyond ASCII as RFC 2231 says.
static void write_file_name(Str name, Buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    bool plain = true;
    for (size_t i = 0; i < name.len; i++) {
        plain = plain && (uint8_t)name.ptr[i] < 0x80 && strchr("\"\\%", name.ptr[i]) == NULL;
    }
    buf_str(out, plain ? STR(";\r\n filename=\"") : STR(";\r\n filename*=UTF-8''"));
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = (uint8_t)name.ptr[i];
        if (plain || ascii_is_alnum((char)c) || c == '.' || c == '-' || c == '_') {
            buf_char(out, (char)c);
        } else {
            const char coded[] = {'%', hex[c >> 4], hex[c & 15]};
            buf_append(out, coded, sizeof coded);
        }
    }
    buf_str(out, plain ? STR("\"\r\n") : STR("\r\n"));
}

static void write_file(const MimeFile *file, bool inlined, Buf *out)
{
    buf_str(out, STR("Content-Type: "));
    buf_str(out, file->type);
    buf_str(out, STR("\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: "));
    buf_str(out, inlined ? STR("inline") : STR("attachment"));
    write_file_name(file->name, out);
    if (file->content_id.len > 0) {
        buf_str(out, STR("Content-ID: <"));
        buf_str(out, file->content_id);
        buf_str(out, STR(">\r\n"));
    }
    buf_str(out, STR("\r\n"));
    mime_base64_lines(file->bytes, out);
}

static void write_files(const MimeMail *mail, bool inlined, const Boundary *boundary, Buf *out)
{
    for (size_t i = 0; i < mail->file_count; i++) {
        if (is_inline(mail, &mail->files[i]) == inlined) {
            write_boundary(boundary->text, false, out);
            write_file(&mail->files[i], inlined, out);
        }
    }
    write_boundary(boundary->text, true, out);
}

// The texts, with the images that the HTML shows (RFC 2387).
static void write_related(const MimeMail *mail, Buf *out)
{
    if (count_files(mail, true) == 0) {
        write_texts(mail, out);
        return;
    }
    Boundary boundary = boundary_of(mail, "=_stentor_r_");
    open_multipart("related", &boundary, out);
    write_boundary(boundary.text, false, out);
    write_texts(mail, out);
    write_files(mail, true, &boundary, out);
}

static void write_body(const MimeMail *mail, Buf *out)
{
    if (count_files(mail, false) == 0) {
        write_related(mail, out);
        return;
    }
    Boundary boundary = boundary_of(mail, "=_stentor_m_");
    open_multipart("mixed", &boundary, out);
    write_boundary(boundary.text, false, out);
    write_related(mail, out);
    write_files(mail, false, &boundary, out);
}

static bool is_token(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!ascii_is_alnum(c) && (c == '\0' || strchr("!#$&^_.+-", c) == NULL)) {
            return false;
        }
    }
    return text.len > 0;
}

bool mime_type_check(Str type)
{
    ptrdiff_t slash = str_find(type, '/');
    Str main = slash > 0 ? str_slice(type, 0, (size_t)slash) : STR_EMPTY;
    return type.len <= MIME_TYPE_MAX && is_token(main) &&
           is_token(str_slice(type, (size_t)slash + 1, type.len)) &&
           !str_eq_nocase(main, STR("multipart")) && !str_eq_nocase(main, STR("message"));
}

bool mime_file_name_check(Str name)
{
    return name.len > 0 && name.len <= MIME_FILE_NAME_MAX && str_is_utf8(name) &&
           !str_has_control(name) && !str_has_bidi(name) && str_find(name, '/') < 0 &&
           str_find(name, '\\') < 0 && name.ptr[0] != '.';
}

bool mime_content_id_check(Str id)
{
    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];
        if (!ascii_is_alnum(c) && (c == '\0' || strchr("._-@+", c) == NULL)) {
            return false;
        }
    }
    return id.len > 0 && id.len <= MIME_CONTENT_ID_MAX;
}

static bool check_files(const MimeMail *mail, Error *err)
{
    for (size_t i = 0; i < mail->file_count; i++) {
        const MimeFile *file = &mail->files[i];
        if (!mime_type_check(file->type) || !mime_file_name_check(file->name) ||
            (file->content_id.len > 0 && !mime_content_id_check(file->content_id))) {
            return error_set(
                err, ERROR_PERMANENT,
                "file %zu has a name, a type or a content id that no header can hold", i + 1);
        }
    }
    return true;
}

static bool check(const MimeMail *mail, Error *err)
{
    if (!mail_address_check("from", mail->from, NULL, err) ||
        !mail_address_check("to", mail->to, NULL, err)) {
        return false;
    }
    if (mail->reply_to.len > 0 && !mail_address_check("reply_to", mail->reply_to, NULL, err)) {
        return false;
    }
    for (size_t i = 0; i < mail->cc_count; i++) {
        if (!mail_address_check("cc", mail->cc[i].address, NULL, err)) {
            return false;
        }
    }
    if (mail->html.len == 0 && mail->text.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the e-mail has neither 'html' nor 'text'");
    }
    return true;
}

static bool refuse_length(Error *err)
{
    return error_set(
        err, ERROR_PERMANENT, "the e-mail is longer than %d bytes", (int)MIME_BYTES_MAX);
}

bool mime_check(const MimeMail *mail, Buf *scratch, Error *err)
{
    if (!check(mail, err) || !check_files(mail, err)) {
        return false;
    }
    buf_clear(scratch);
    if (!write_headers(mail, scratch, err)) {
        return false;
    }
    size_t len = scratch->len + mail->html.len + mail->text.len;
    for (size_t i = 0; i < mail->file_count; i++) {
        len += mail->files[i].bytes.len / 3 * 4;
    }
    return len <= MIME_BYTES_MAX || refuse_length(err);
}

bool mime_compose(const MimeMail *mail, Buf *out, Error *err)
{
    if (!check(mail, err) || !check_files(mail, err) || !write_headers(mail, out, err)) {
        return false;
    }
    write_body(mail, out);
    return !out->full || refuse_length(err);
}
