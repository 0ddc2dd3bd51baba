// SPDX-License-Identifier: Apache-2.0
#include "common/trace/span.h"

#include <string.h>

#include "common/base/id.h"
#include "common/codec/event.h"
#include "otlp/trace.pb-c.h"

enum { SCOPE_MAX = 64, WIRE_BYTES = 2 };

// ---- one span ----

// A collector refuses the whole batch for one text that is no UTF-8, as one is that was cut inside
// a letter.
static char *text_of(Str text, Arena *arena)
{
    Str cut = str_slice(text, 0, SPAN_TEXT_MAX);
    bool as_it_is = str_is_utf8(cut);
    char *out = arena_cstr(arena, cut);
    for (size_t i = 0; i < cut.len; i++) {
        unsigned char c = (unsigned char)out[i];
        out[i] = c < 0x20 || c == 0x7f || (c > 0x7f && !as_it_is) ? '?' : out[i];
    }
    return out;
}

static void pack_attribute(
    const SpanAttribute *attribute, Otlp__KeyValue *pair, Otlp__AnyValue *value, Arena *arena)
{
    otlp__key_value__init(pair);
    otlp__any_value__init(value);
    pair->key = pb_borrow(attribute->key);
    pair->value = value;
    if (attribute->text.ptr != NULL) {
        value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
        value->string_value = text_of(attribute->text, arena);
    } else {
        value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
        value->int_value = attribute->number;
    }
}

static void add_attributes(const Span *span, Otlp__Span *out, Arena *arena)
{
    size_t count =
        span->attribute_count < SPAN_ATTRIBUTES_MAX ? span->attribute_count : SPAN_ATTRIBUTES_MAX;
    Otlp__KeyValue *pairs = arena_array(arena, count + 1, sizeof *pairs);
    Otlp__AnyValue *values = arena_array(arena, count + 1, sizeof *values);
    out->attributes = arena_array(arena, count + 1, sizeof *out->attributes);
    for (size_t i = 0; i < count; i++) {
        const SpanAttribute *attribute = &span->attributes[i];
        if (attribute->text.ptr != NULL && attribute->text.len == 0) {
            continue;
        }
        pack_attribute(attribute, &pairs[i], &values[i], arena);
        out->attributes[out->n_attributes++] = &pairs[i];
    }
}

static ProtobufCBinaryData bytes_of(const uint8_t *bytes, size_t len)
{
    return pb_data(str_of(bytes, len));
}

static void add_links(const Span *span, Otlp__Span *out, Arena *arena)
{
    size_t count = span->link_count < SPAN_LINKS_MAX ? span->link_count : SPAN_LINKS_MAX;
    Otlp__Span__Link *links = arena_array(arena, count + 1, sizeof *links);
    out->links = arena_array(arena, count + 1, sizeof *out->links);
    for (size_t i = 0; i < count; i++) {
        const TraceContext *to = &span->links[i];
        otlp__span__link__init(&links[i]);
        links[i].trace_id = bytes_of(to->trace_id, TRACE_ID_LEN);
        links[i].span_id = bytes_of(to->span_id, SPAN_ID_LEN);
        links[i].flags = to->sampled;
        out->links[out->n_links++] = &links[i];
    }
    out->dropped_links_count = (uint32_t)(span->link_count - count);
}

Str span_pack(const Span *span, Arena *arena)
{
    static const uint8_t none[SPAN_ID_LEN];
    Otlp__Span out;
    Otlp__Status status;
    otlp__span__init(&out);
    otlp__status__init(&status);
    out.trace_id = bytes_of(span->context.trace_id, TRACE_ID_LEN);
    out.span_id = bytes_of(span->context.span_id, SPAN_ID_LEN);
    if (memcmp(span->parent, none, SPAN_ID_LEN) != 0) {
        out.parent_span_id = bytes_of(span->parent, SPAN_ID_LEN);
    }
    out.name = text_of(str_from(span->name), arena);
    out.kind = (Otlp__Span__SpanKind)span->kind;
    int64_t end_us =
        span->ended_at_us > span->started_at_us ? span->ended_at_us : span->started_at_us;
    out.start_time_unix_nano = (uint64_t)span->started_at_us * 1000;
    out.end_time_unix_nano = (uint64_t)end_us * 1000;
    out.flags = span->context.sampled;
    add_attributes(span, &out, arena);
    add_links(span, &out, arena);
    if (span->failed) {
        status.code = OTLP__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
        status.message = text_of(span->why, arena);
        out.status = &status;
    }
    size_t size = otlp__span__get_packed_size(&out);
    uint8_t *bytes = arena_alloc(arena, size);
    return str_of(bytes, otlp__span__pack(&out, bytes));
}

// ---- pairs ----

static bool decode(Str text, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            int high = i + 1 < text.len ? hex_value(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_value(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        if ((unsigned char)c < 0x20 || c == 0x7f) {
            return false;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

static bool read_pair(Str part, Arena *arena, TracePair *ret)
{
    ptrdiff_t equals = str_find(part, '=');
    if (equals < 1) {
        return false;
    }
    Str value = str_trim(str_slice(part, (size_t)equals + 1, part.len));
    char *decoded = arena_alloc(arena, value.len + 1);
    ret->key = arena_cstr(arena, str_trim(str_slice(part, 0, (size_t)equals)));
    ret->value = decoded;
    return ret->key[0] != '\0' && decode(value, decoded);
}

bool trace_pairs(
    const char *option, Str text, Arena *arena, TracePair *ret, size_t max, size_t *ret_count,
    Error *err)
{
    Str rest = text, part;
    size_t count = 0;
    while (str_split(&rest, ',', &part)) {
        part = str_trim(part);
        if (part.len == 0) {
            continue;
        }
        if (count == max) {
            return error_set(err, ERROR_CONFIG, "%s has more than %zu pairs", option, max);
        }
        if (!read_pair(part, arena, &ret[count++])) {
            return error_set(
                err, ERROR_CONFIG,
                "%s: pair %zu is not key=value (HINT: pairs are separated by commas, a ',' or '%%' "
                "in a value is written %%2C or %%25)",
                option, count);
        }
    }
    *ret_count = count;
    return true;
}

// ---- many ----

static bool is_named_before(const TracePair *pairs, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(pairs[i].key, pairs[index].key) == 0) {
            return true;
        }
    }
    return false;
}

Str trace_resource_pack(const TracePair *pairs, size_t count, Arena *arena)
{
    Otlp__Resource out;
    otlp__resource__init(&out);
    out.attributes = arena_array(arena, count + 1, sizeof *out.attributes);
    for (size_t i = 0; i < count; i++) {
        if (is_named_before(pairs, i)) {
            continue;
        }
        Otlp__KeyValue *pair = arena_alloc(arena, sizeof *pair);
        Otlp__AnyValue *value = arena_alloc(arena, sizeof *value);
        SpanAttribute attribute = SPAN_CSTR(pairs[i].key, pairs[i].value);
        pack_attribute(&attribute, pair, value, arena);
        out.attributes[out.n_attributes++] = pair;
    }
    uint8_t *bytes = arena_alloc(arena, otlp__resource__get_packed_size(&out) + 1);
    return str_of(bytes, otlp__resource__pack(&out, bytes));
}

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7) {
        size++;
    }
    return size;
}

static void put_head(Buf *out, int field, uint64_t len)
{
    buf_char(out, (char)(field << 3 | WIRE_BYTES));
    for (; len >= 0x80; len >>= 7) {
        buf_char(out, (char)(len | 0x80));
    }
    buf_char(out, (char)len);
}

static size_t field_size(size_t len)
{
    return 1 + varint_size(len) + len;
}

// The spans are packed already, so the three messages around them are written by hand: every field
// number is below 16, and its head is one byte.
bool trace_request_pack(Buf *out, Str resource, Str version, const Str *spans, size_t count)
{
    Otlp__InstrumentationScope scope;
    uint8_t scope_bytes[SCOPE_MAX];
    otlp__instrumentation_scope__init(&scope);
    char number[SCOPE_MAX / 2];
    scope.name = pb_borrow("stentor");
    scope.version = str_to_c(version, number, sizeof number) ? number : pb_borrow("");
    size_t scope_len = otlp__instrumentation_scope__pack(&scope, scope_bytes);
    size_t inner = field_size(scope_len);
    for (size_t i = 0; i < count; i++) {
        inner += field_size(spans[i].len);
    }
    put_head(out, 1, field_size(resource.len) + field_size(inner));
    put_head(out, 1, resource.len);
    buf_str(out, resource);
    put_head(out, 2, inner);
    put_head(out, 1, scope_len);
    buf_append(out, scope_bytes, scope_len);
    for (size_t i = 0; i < count; i++) {
        put_head(out, 2, spans[i].len);
        buf_str(out, spans[i]);
    }
    return !out->full;
}

int64_t trace_rejected(Str answer)
{
    int64_t rejected = 0;
    Arena *arena = arena_new(0);
    const Otlp__TracesResponse *read = (const Otlp__TracesResponse *)event_unpack(
        &otlp__traces_response__descriptor, answer, arena, NULL);
    if (read != NULL && read->partial_success != NULL) {
        rejected = read->partial_success->rejected_spans;
    }
    arena_free(arena);
    return rejected > 0 ? rejected : 0;
}
