// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/mail/mail_parse.h"

#include <gmime/gmime.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "services/webhook-receiver/mail/mail_fields.h"
#include "services/webhook-receiver/mail/mail_parse_limits.h"

typedef struct Recipient {
    Str original, final, action, status, diagnostic;
} Recipient;

typedef struct Found {
    Arena *arena;
    int parts;
    bool has_returned, has_delivery, has_feedback;
    Str message_id, return_path, list_unsubscribe, to; // of the returned mail
    Str envelope_id;
    Recipient recipients[MAIL_RECIPIENTS_MAX];
    size_t recipient_count;
    Str feedback_type, feedback_from, feedback_envelope_id;
    Str rcpt_to[MAIL_ADDRESSES_MAX];
    size_t rcpt_to_count;
} Found;

// The first one counts.
static void keep(Str *place, Str value)
{
    if (place->len == 0) {
        *place = str_slice(value, 0, MAIL_VALUE_MAX);
    }
}

typedef struct Row {
    const char *name;
    size_t place; // of a Str
} Row;

static void keep_named(void *object, const Row *rows, size_t count, Str name, Str value)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(name, str_from(rows[i].name))) {
            keep((Str *)(void *)((char *)object + rows[i].place), value);
        }
    }
}

#define KEEP_NAMED(object, rows, field)                                                            \
    keep_named((object), (rows), sizeof(rows) / sizeof *(rows), (field)->name, (field)->value)

// ---- parts ----

// The content, its transfer encoding undone; "" when it is too large.
static Str content_of(GMimeObject *object, Arena *arena)
{
    GMimeDataWrapper *content =
        GMIME_IS_PART(object) ? g_mime_part_get_content((GMimePart *)object) : NULL;
    if (content == NULL) {
        return STR_EMPTY;
    }
    GMimeStream *out = g_mime_stream_mem_new();
    ssize_t written = g_mime_data_wrapper_write_to_stream(content, out);
    const GByteArray *bytes = g_mime_stream_mem_get_byte_array((GMimeStreamMem *)out);
    bool good = written > 0 && bytes->len <= MAIL_BYTES_MAX;
    Str text = good ? arena_str(arena, str_of(bytes->data, bytes->len)) : STR_EMPTY;
    g_object_unref(out);
    return text;
}

static const Row RECIPIENT_ROWS[] = {
    {"Original-Recipient", offsetof(Recipient, original)},
    {"Final-Recipient", offsetof(Recipient, final)},
    {"Action", offsetof(Recipient, action)},
    {"Status", offsetof(Recipient, status)},
    {"Diagnostic-Code", offsetof(Recipient, diagnostic)},
};

static Str *place_of(Recipient *at, Str name)
{
    for (size_t i = 0; i < sizeof RECIPIENT_ROWS / sizeof *RECIPIENT_ROWS; i++) {
        if (str_eq_nocase(name, str_from(RECIPIENT_ROWS[i].name))) {
            return (Str *)(void *)((char *)at + RECIPIENT_ROWS[i].place);
        }
    }
    return NULL;
}

static bool names_one(const Recipient *at)
{
    return at->original.len > 0 || at->final.len > 0;
}

// A block of fields for the mail, then one for each recipient, in any order. Where the blank line
// between two is missing, a field that a block has already begins the next one.
static void read_delivery(Found *found, Str text)
{
    found->has_delivery = true;
    Recipient *at = found->recipients;
    MailField field;
    while (mail_field_next(&text, found->arena, &field)) {
        if (str_eq_nocase(field.name, STR("Original-Envelope-Id"))) {
            keep(&found->envelope_id, field.value);
        }
        Str *place = place_of(at, field.name);
        if (place == NULL) {
            continue;
        }
        bool over = place->len > 0 || (field.first && names_one(at) && at->action.len > 0);
        if (over && names_one(at)) {
            if (++found->recipient_count == MAIL_RECIPIENTS_MAX) {
                return;
            }
            at++;
            place = place_of(at, field.name);
        }
        keep(place, field.value);
    }
    found->recipient_count += names_one(at) ? 1 : 0;
}

static void read_feedback(Found *found, Str text)
{
    static const Row ROWS[] = {
        {"Feedback-Type", offsetof(Found, feedback_type)},
        {"Original-Mail-From", offsetof(Found, feedback_from)},
        {"Original-Envelope-Id", offsetof(Found, feedback_envelope_id)},
    };
    found->has_feedback = true;
    MailField field;
    while (mail_field_next(&text, found->arena, &field)) {
        KEEP_NAMED(found, ROWS, &field);
        bool address = str_eq_nocase(field.name, STR("Original-Rcpt-To")) ||
                       str_eq_nocase(field.name, STR("Removal-Recipient"));
        if (address && found->rcpt_to_count < MAIL_ADDRESSES_MAX) {
            keep(&found->rcpt_to[found->rcpt_to_count++], field.value);
        }
    }
}

// Of the mail that came back.
static void read_returned(Found *found, Str headers)
{
    static const Row ROWS[] = {
        {"Message-ID", offsetof(Found, message_id)},
        {"Return-Path", offsetof(Found, return_path)},
        {"List-Unsubscribe", offsetof(Found, list_unsubscribe)},
        {"To", offsetof(Found, to)},
    };
    found->has_returned = true;
    MailField field;
    while (mail_field_next(&headers, found->arena, &field)) {
        KEEP_NAMED(found, ROWS, &field);
    }
}

static void read_message_part(Found *found, GMimeObject *part)
{
    GMimeMessage *message = g_mime_message_part_get_message((GMimeMessagePart *)part);
    char *headers =
        message != NULL ? g_mime_object_get_headers((GMimeObject *)message, NULL) : NULL;
    if (headers != NULL) {
        read_returned(found, arena_str(found->arena, str_from(headers)));
        g_free(headers);
    }
}

static bool is_type(GMimeObject *part, const char *type, const char *subtype)
{
    GMimeContentType *content = g_mime_object_get_content_type(part);
    return content != NULL && g_mime_content_type_is_type(content, type, subtype);
}

static void read_leaf(Found *found, GMimeObject *part)
{
    if (!found->has_delivery && (is_type(part, "message", "delivery-status") ||
                                 is_type(part, "message", "global-delivery-status"))) {
        read_delivery(found, content_of(part, found->arena));
    } else if (!found->has_feedback && is_type(part, "message", "feedback-report")) {
        read_feedback(found, content_of(part, found->arena));
    } else if (
        !found->has_returned &&
        (is_type(part, "text", "rfc822-headers") || is_type(part, "message", "global-headers"))) {
        read_returned(found, content_of(part, found->arena));
    }
}

static void read_part(Found *found, GMimeObject *part, int depth)
{
    if (part == NULL || depth > MAIL_DEPTH_MAX || found->parts++ >= MAIL_PARTS_MAX) {
        return;
    }
    if (GMIME_IS_MULTIPART(part)) {
        int count = g_mime_multipart_get_count((GMimeMultipart *)part);
        for (int i = 0; i < count && found->parts < MAIL_PARTS_MAX; i++) {
            read_part(found, g_mime_multipart_get_part((GMimeMultipart *)part, i), depth + 1);
        }
    } else if (GMIME_IS_MESSAGE_PART(part)) {
        if (!found->has_returned) {
            read_message_part(found, part);
        }
    } else {
        read_leaf(found, part);
    }
}

// ---- the report ----

static void write_member(Buf *out, const char *comma, const char *name, Str value)
{
    (void)buf_printf(out, "%s\"%s\":", comma, name);
    (void)buf_json(out, value);
}

static void write_returned(const Found *found, Buf *out)
{
    (void)buf_cstr(out, ",\"returned\":{");
    write_member(out, "", "message_id", found->message_id);
    write_member(out, ",", "return_path", found->return_path);
    write_member(out, ",", "list_unsubscribe", found->list_unsubscribe);
    write_member(out, ",", "to", found->to);
    (void)buf_char(out, '}');
}

static void write_delivery(const Found *found, Buf *out)
{
    (void)buf_cstr(out, ",\"delivery\":{");
    write_member(out, "", "envelope_id", found->envelope_id);
    (void)buf_cstr(out, ",\"recipients\":[");
    for (size_t i = 0; i < found->recipient_count; i++) {
        const Recipient *at = &found->recipients[i];
        (void)buf_cstr(out, i > 0 ? ",{" : "{");
        write_member(out, "", "original", at->original);
        write_member(out, ",", "final", at->final);
        write_member(out, ",", "action", at->action);
        write_member(out, ",", "status", at->status);
        write_member(out, ",", "diagnostic", at->diagnostic);
        (void)buf_char(out, '}');
    }
    (void)buf_cstr(out, "]}");
}

static void write_feedback(const Found *found, Buf *out)
{
    (void)buf_cstr(out, ",\"feedback\":{");
    write_member(out, "", "type", found->feedback_type);
    write_member(out, ",", "mail_from", found->feedback_from);
    write_member(out, ",", "envelope_id", found->feedback_envelope_id);
    (void)buf_cstr(out, ",\"rcpt_to\":[");
    for (size_t i = 0; i < found->rcpt_to_count; i++) {
        (void)buf_cstr(out, i > 0 ? "," : "");
        (void)buf_json(out, found->rcpt_to[i]);
    }
    (void)buf_cstr(out, "]}");
}

static void write_report(const Found *found, Buf *out)
{
    (void)buf_printf(out, "{\"parts\":%d", found->parts);
    if (found->has_returned) {
        write_returned(found, out);
    }
    if (found->has_delivery) {
        write_delivery(found, out);
    }
    if (found->has_feedback) {
        write_feedback(found, out);
    }
    (void)buf_char(out, '}');
}

bool mail_parse(Str mail, Buf *ret)
{
    // Some senders begin with the mark of UTF-8.
    mail = str_starts(mail, STR("\xef\xbb\xbf")) ? str_slice(mail, 3, mail.len) : mail;
    g_mime_init();
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(mail.ptr, mail.len);
    GMimeParser *parser = g_mime_parser_new_with_stream(stream);
    GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);
    Found *found = xcalloc(1, sizeof *found);
    found->arena = arena_new(0);
    if (message != NULL) {
        read_part(found, g_mime_message_get_mime_part(message), 0);
        g_object_unref(message);
    }
    write_report(found, ret);
    arena_free(found->arena);
    free(found);
    g_object_unref(parser);
    g_object_unref(stream);
    return !ret->full;
}

// ---- the process ----

static bool read_all(Buf *mail)
{
    for (;;) {
        char piece[65536];
        ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
        if (got <= 0) {
            return got == 0;
        }
        if (!buf_append(mail, piece, (size_t)got)) {
            return false;
        }
    }
}

static bool write_all(Str text)
{
    while (text.len > 0) {
        ssize_t put = write(STDOUT_FILENO, text.ptr, text.len);
        if (put <= 0) {
            return false;
        }
        text = str_slice(text, (size_t)put, text.len);
    }
    return true;
}

// Ends by _exit: nothing is to be flushed or freed, and no exit handler may open a file.
int mail_parse_main(void)
{
    g_mime_init(); // reads what it reads of the system before the limits
    Buf mail;
    Buf report;
    buf_init(&mail, MAIL_BYTES_MAX);
    buf_init(&report, MAIL_REPORT_MAX);
    bool good = mail_parse_limit() && read_all(&mail) && mail_parse(buf_view(&mail), &report) &&
                write_all(buf_view(&report));
    _exit(good ? 0 : 1);
}
