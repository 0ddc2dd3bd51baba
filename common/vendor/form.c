// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/form.h"

#include "common/base/id.h"
#include "common/storage/sigv4.h"
#include "common/vendor/vendor_build.h"

void form_put(Buf *form, const char *name, Str value)
{
    buf_cstr(form, form->len > 0 ? "&" : "");
    buf_cstr(form, name);
    buf_char(form, '=');
    sigv4_encode(value, false, form);
}

void form_set(VendorRequest *request, const Buf *form, Arena *arena)
{
    request->body = arena_str(arena, buf_view(form));
    vendor_add_header(
        request, STR("Content-Type"), STR("application/x-www-form-urlencoded; charset=utf-8"));
}

static bool decode(Str text, Arena *arena, Str *ret)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c != '%') {
            out[len++] = (char)(c == '+' ? ' ' : c);
            continue;
        }
        int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text.ptr[i + 2]) : -1;
        if (low < 0) {
            return false;
        }
        out[len++] = (char)(high * 16 + low);
        i += 2;
    }
    *ret = (Str){out, len};
    return true;
}

bool form_read(Str body, Arena *arena, VendorPair ret[FORM_FIELDS_MAX], size_t *ret_count)
{
    Str rest = body, field;
    *ret_count = 0;
    while (body.len > 0 && str_split(&rest, '&', &field)) {
        ptrdiff_t at = str_find(field, '=');
        if (at < 0 || *ret_count == FORM_FIELDS_MAX) {
            return false;
        }
        VendorPair *pair = &ret[*ret_count];
        if (!decode(str_slice(field, 0, (size_t)at), arena, &pair->name) ||
            !decode(str_slice(field, (size_t)at + 1, field.len), arena, &pair->value)) {
            return false;
        }
        (*ret_count)++;
    }
    return true;
}

Str form_value(const VendorPair *fields, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(fields[i].name, str_from(name))) {
            return fields[i].value;
        }
    }
    return STR_EMPTY;
}
