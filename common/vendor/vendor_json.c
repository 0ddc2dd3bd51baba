// SPDX-License-Identifier: Apache-2.0
// JSON of a request: jansson's tree, whose members keep the order in which they were put, written
// by our own hand: json_dump() looks at each character and took 50 us for a mail of 5 KB.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/vendor/vendor_build.h"

enum { BODY_MAX = 128 * 1024 * 1024 };

// ---- the tree ----

json_t *vendor_json_str(Str text)
{
    return json_stringn_nocheck(text.ptr, text.len);
}

void vendor_json_put(json_t *object, const char *name, json_t *value)
{
    int rc = json_object_set_new_nocheck(object, name, value);
    assert(rc == 0); // memory is out: a mail without one of its fields must not go out
}

void vendor_json_put_str(json_t *object, const char *name, Str text)
{
    vendor_json_put(object, name, vendor_json_str(text));
}

void vendor_json_put_some(json_t *object, const char *name, Str text)
{
    if (text.len > 0) {
        vendor_json_put_str(object, name, text);
    }
}

void vendor_json_put_list(json_t *object, const char *name, json_t *array)
{
    if (json_array_size(array) > 0) {
        vendor_json_put(object, name, array);
    } else {
        json_decref(array);
    }
}

void vendor_json_add(json_t *array, json_t *value)
{
    int rc = json_array_append_new(array, value);
    assert(rc == 0);
}

json_t *vendor_json_list(json_t *value)
{
    json_t *list = json_array();
    vendor_json_add(list, value);
    return list;
}

json_t *vendor_json_pair(const char *a, Str a_text, const char *b, Str b_text)
{
    json_t *object = json_object();
    vendor_json_put_str(object, a, a_text);
    vendor_json_put_str(object, b, b_text);
    return object;
}

json_t *vendor_json_headers(const VendorMail *mail, Arena *arena)
{
    json_t *headers = json_object();
    for (size_t i = 0; i < mail->header_count; i++) {
        const VendorPair *header = &mail->headers[i];
        vendor_json_put_str(headers, arena_cstr(arena, header->name), header->value);
    }
    return headers;
}

// ---- its text ----

// Eight bytes at once: one is below 0x20, a quotation mark or a backslash. (The lowest such byte is
// found surely; others may be found though they are none.)
static bool has_special_word(const char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
    uint64_t word;
    memcpy(&word, p, sizeof word);
    uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
    uint64_t low = (word - ones * 0x20) & ~word;
    return ((low | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & highs) != 0;
}

static bool is_special(char c)
{
    return (unsigned char)c < 0x20 || c == '"' || c == '\\';
}

static size_t plain_length(Str text)
{
    size_t at = 0;
    while (at + 8 <= text.len && !has_special_word(text.ptr + at)) {
        at += 8;
    }
    while (at < text.len && !is_special(text.ptr[at])) {
        at++;
    }
    return at;
}

static void put_escape(Buf *out, char c)
{
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *name = names; *name != '\0'; name += 2) {
        if (name[0] == c) {
            const char pair[] = {'\\', name[1]};
            buf_append(out, pair, sizeof pair);
            return;
        }
    }
    buf_printf(out, "\\u%04X", (unsigned)(unsigned char)c);
}

static void put_text(Buf *out, Str text)
{
    buf_char(out, '"');
    while (text.len > 0) {
        size_t plain = plain_length(text);
        buf_append(out, text.ptr, plain);
        if (plain < text.len) {
            put_escape(out, text.ptr[plain++]);
        }
        text = str_slice(text, plain, text.len);
    }
    buf_char(out, '"');
}

static void put_value(Buf *out, json_t *value);

static void put_object(Buf *out, json_t *object)
{
    const char *name, *between = "";
    json_t *member;
    buf_char(out, '{');
    json_object_foreach(object, name, member)
    {
        buf_cstr(out, between);
        put_text(out, str_from(name));
        buf_char(out, ':');
        put_value(out, member);
        between = ",";
    }
    buf_char(out, '}');
}

static void put_array(Buf *out, json_t *array)
{
    buf_char(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        buf_cstr(out, i > 0 ? "," : "");
        put_value(out, json_array_get(array, i));
    }
    buf_char(out, ']');
}

// What is neither text, object nor array, as jansson writes it: of an application's own data.
static void put_plain(Buf *out, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    assert(text != NULL);
    buf_cstr(out, text);
    free(text);
}

static void put_value(Buf *out, json_t *value)
{
    if (json_is_object(value)) {
        put_object(out, value);
    } else if (json_is_array(value)) {
        put_array(out, value);
    } else if (json_is_string(value)) {
        put_text(out, str_of(json_string_value(value), json_string_length(value)));
    } else {
        put_plain(out, value);
    }
}

void vendor_set_json(VendorRequest *request, json_t *root, Arena *arena)
{
    Buf out;
    buf_init(&out, BODY_MAX);
    put_value(&out, root);
    assert(!out.full); // the mail's size was checked
    json_decref(root);
    arena_own(arena, free, out.ptr);
    request->body = buf_view(&out);
    vendor_add_header(request, STR("Content-Type"), STR("application/json"));
}
