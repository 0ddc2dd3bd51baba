// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/multipart.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/buf.h"
#include "common/codec/hash.h"
#include "common/vendor/vendor_build.h"

enum { FORM_MAX = 128 * 1024 * 1024, BOUNDARY_HEX = 32, TRIES_MAX = 100 };

static bool any_holds(const MultipartField *fields, size_t count, Str part)
{
    for (size_t i = 0; i < count; i++) {
        if (str_contains(fields[i].value, part)) {
            return true;
        }
    }
    return false;
}

static Str hash_of(const MultipartField *fields, size_t count, int salt, Arena *arena)
{
    uint8_t digest[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    Sha256 *hash = sha256_begin();
    sha256_add(hash, str_from(arena_printf(arena, "%d", salt)));
    for (size_t i = 0; i < count; i++) {
        sha256_add(hash, fields[i].value);
    }
    sha256_end(hash, digest);
    hex_encode(digest, sizeof digest, hex);
    return str_from(arena_printf(arena, "stentor-%.*s", BOUNDARY_HEX, hex));
}

// No value can be written that holds its own hash; the loop is for the proof.
static Str choose_boundary(const MultipartField *fields, size_t count, Arena *arena)
{
    int salt = 0;
    Str boundary = hash_of(fields, count, salt, arena);
    while (any_holds(fields, count, boundary)) {
        assert(salt < TRIES_MAX);
        boundary = hash_of(fields, count, ++salt, arena);
    }
    return boundary;
}

static void put_field(Buf *out, const MultipartField *field, Str boundary)
{
    buf_printf(
        out, "--" STR_FMT "\r\nContent-Disposition: form-data; name=\"" STR_FMT "\"",
        STR_ARG(boundary), STR_ARG(field->name));
    if (field->filename.len > 0) {
        buf_printf(
            out, "; filename=\"" STR_FMT "\"\r\nContent-Type: " STR_FMT, STR_ARG(field->filename),
            STR_ARG(field->type));
    }
    buf_cstr(out, "\r\n\r\n");
    buf_str(out, field->value);
    buf_cstr(out, "\r\n");
}

void multipart_set(VendorRequest *request, const MultipartField *fields, size_t count, Arena *arena)
{
    Str boundary = choose_boundary(fields, count, arena);
    Buf out;
    buf_init(&out, FORM_MAX);
    for (size_t i = 0; i < count; i++) {
        put_field(&out, &fields[i], boundary);
    }
    buf_printf(&out, "--" STR_FMT "--\r\n", STR_ARG(boundary));
    assert(!out.full); // the mail's size was checked
    arena_own(arena, free, out.ptr);
    request->body = buf_view(&out);
    Str type =
        str_from(arena_printf(arena, "multipart/form-data; boundary=" STR_FMT, STR_ARG(boundary)));
    vendor_add_header(request, STR("Content-Type"), type);
}
