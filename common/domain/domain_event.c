// SPDX-License-Identifier: Apache-2.0
#include "common/domain/domain_event.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/json_scan.h"
#include "common/codec/hash.h"
#include "common/domain/domain_message.h"
#include "common/domain/envelope.h"
#include "common/domain/order_data.h"
#include "common/json/json_read.h"
#include "common/json/json_write.h"
#include "common/names/event_type.h"
#include "common/names/member.h"

// Extensions of a CloudEvent that only our own dead letters carry (domain_event_letter).
#define ONLY_READER "stentortrigger"
#define ID_TIME "stentorat"

#define DAY_US (INT64_C(24) * 3600 * 1000000)

// How far before its storing an event may have been produced for its ids to carry that time. Later
// repeats of it then have the same ids. Not more, for partitions begin a month ago.
static const int64_t ID_BACK_US = 7 * DAY_US;
static const int64_t LETTER_BACK_US = 120 * DAY_US; // dead letters are kept for 90 days

typedef struct Reading {
    const DomainInput *input;
    Arena *arena;
    DomainEvent *event;
    json_t *root;                  // of a JSON payload, owned
    Str ce_id, ce_source, ce_time; // an envelope's messageId and sentTime too
    Str id_time;
} Reading;

Str domain_identity(Str id, Arena *arena)
{
    if (id.len <= DOMAIN_IDENTITY_MAX && !str_has_control(id) && str_is_utf8(id)) {
        return id;
    }
    uint8_t hash[SHA256_LEN];
    char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
    sha256(id, hash);
    hex_encode(hash, SHA256_LEN, hex);
    return str_from(hex);
}

static bool cut(Str *text, Str prefix)
{
    bool there = str_starts(*text, prefix);
    *text = there ? str_slice(*text, prefix.len, text->len) : *text;
    return there;
}

Str domain_own_id(Str tenant, Str type, Str id)
{
    Str own = id;
    bool full = cut(&own, tenant) && cut(&own, STR("/")) && cut(&own, type) && cut(&own, STR("/"));
    return full && own.len > 0 ? own : id;
}

Str domain_full_id(Str tenant, Str type, Str id, Arena *arena)
{
    Str own = domain_identity(domain_own_id(tenant, type, id), arena);
    return str_from(arena_printf(
        arena, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(type), STR_ARG(own)));
}

bool domain_subject(Str subject, Str *ret_tenant, Str *ret_type)
{
    Str rest = subject;
    Str prefix = STR_EMPTY;
    return str_split(&rest, '.', &prefix) && str_eq(prefix, STR("evt")) &&
           str_split(&rest, '.', ret_tenant) && id_is_tenant(*ret_tenant) &&
           (*ret_type = rest).len > 0;
}

DomainInput domain_input(const BusMessage *message, Str tenant, Str type, Zone *zone)
{
    Str content_type = bus_message_header(message, "content-type");
    return (DomainInput){
        .tenant = tenant,
        .type = type,
        .payload = message->payload,
        .message_id = message->event_id,
        .id_is_made = bus_message_header(message, DOMAIN_MADE_ID_HEADER).len > 0,
        .stream = message->stream,
        .sequence = bus_message_place(message),
        .stored_at_us = message->stored_at_us,
        .replayed = message->replayed,
        .content_type =
            content_type.len > 0 ? content_type : bus_message_header(message, "Content-Type"),
        .message_type = bus_message_header(message, "Stentor-Type"),
        .ce_version = bus_message_header(message, "ce-specversion"),
        .ce_id = bus_message_header(message, "ce-id"),
        .ce_source = bus_message_header(message, "ce-source"),
        .ce_type = bus_message_header(message, "ce-type"),
        .ce_time = bus_message_header(message, "ce-time"),
        .ce_seen = bus_message_header(message, DOMAIN_SEEN_HEADER),
        .zone = zone,
    };
}

// ---- the payload ----

static bool load_json(Reading *r, Error *err)
{
    json_error_t where;
    JsonExcess excess;
    Str payload = r->input->payload;
    if (!json_is_modest(payload, &excess)) {
        return error_set(err, ERROR_PERMANENT, "event's JSON has %s", excess.what);
    }
    r->root = json_read(payload, JSON_REJECT_DUPLICATES, &where);
    if (r->root == NULL) {
        const char *quote =
            strstr(where.text, " near "); // the event itself, and this is kept longer
        int len = quote != NULL ? (int)(quote - where.text) : (int)strlen(where.text);
        return error_set(
            err, ERROR_PERMANENT, "event is not JSON: line %d, column %d: %.*s", where.line,
            where.column, len < 100 ? len : 100, where.text);
    }
    return json_is_object(r->root) ||
           error_set(err, ERROR_PERMANENT, "event is JSON, but not an object");
}

static Str member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}

static bool read_structured(Reading *r, Error *err)
{
    json_t *data = json_object_get(r->root, "data");
    if (member(r->root, "id").len == 0 || member(r->root, "type").len == 0) {
        return error_set(err, ERROR_PERMANENT, "CloudEvent without 'id' or 'type'");
    }
    if (!json_is_object(data)) {
        return error_set(err, ERROR_PERMANENT, "CloudEvent's 'data' is not an object");
    }
    r->ce_id = arena_str(r->arena, member(r->root, "id"));
    r->ce_source = arena_str(r->arena, member(r->root, "source"));
    r->ce_time = arena_str(r->arena, member(r->root, "time"));
    r->id_time = arena_str(r->arena, member(r->root, ID_TIME));
    r->event->only = arena_str(r->arena, member(r->root, ONLY_READER));
    r->event->data = json_incref(data);
    return true;
}

// A wrong mail is worse than none: what the envelope calls a known event must be the subject's.
static bool check_envelope(const Reading *r, const Envelope *envelope, Error *err)
{
    Str type = r->event->type;
    bool other = event_type_is_known(type) && event_type_is_known(envelope->type) &&
                 !str_eq(type, envelope->type);
    int64_t at_us = 0;
    if (other) {
        return error_set(
            err, ERROR_PERMANENT,
            "the envelope's 'messageType' is " STR_FMT ", and the subject's type is " STR_FMT,
            STR_ARG(envelope->type), STR_ARG(type));
    }
    return envelope->sent_time.len == 0 || clock_parse(envelope->sent_time, &at_us) ||
           error_set(
               err, ERROR_PERMANENT, "the envelope's 'sentTime' is not RFC 3339: '%.40s'",
               arena_cstr(r->arena, envelope->sent_time));
}

static bool read_envelope(Reading *r, Error *err)
{
    Envelope envelope;
    if (!envelope_read(r->root, r->arena, &envelope, err) || !check_envelope(r, &envelope, err)) {
        return false;
    }
    Str own = envelope.correlation_id;
    if (own.len > 0 && member_value(envelope.message, "correlation_id") == NULL) {
        (void)json_object_set_new(
            envelope.message, "correlation_id", json_stringn(own.ptr, own.len));
    }
    r->ce_id = envelope.message_id;
    r->ce_time = envelope.sent_time;
    r->event->data = json_incref(envelope.message);
    return true;
}

static bool says(Str content_type, const char *word)
{
    Str rest = content_type;
    Str type = STR_EMPTY;
    return str_split(&rest, ';', &type) && str_eq_nocase(str_trim(type), str_from(word));
}

static bool read_json(Reading *r, Error *err)
{
    if (!load_json(r, err)) {
        return false;
    }
    if (says(r->input->content_type, "application/vnd.masstransit+json") || envelope_is(r->root)) {
        return read_envelope(r, err);
    }
    bool binary = r->input->ce_version.len > 0;
    if (!binary && json_is_string(json_object_get(r->root, "specversion"))) {
        return read_structured(r, err);
    }
    r->event->data = json_incref(r->root);
    return true;
}

// Which message it is: by its header, by the CloudEvent's type, or by the subject. The last is why
// an event on evt.<tenant>.PlaceOrder needs no header but its content type.
static const ProtobufCMessageDescriptor *find_type(const DomainInput *in)
{
    const Str names[] = {in->message_type, in->ce_type, in->type};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const ProtobufCMessageDescriptor *type = domain_message_type(names[i]);
        if (type != NULL) {
            return type;
        }
    }
    return NULL;
}

static bool read_protobuf(Reading *r, Error *err)
{
    const ProtobufCMessageDescriptor *type = find_type(r->input);
    if (type == NULL) {
        return error_set(
            err, ERROR_PERMANENT,
            "protobuf event of an unknown message (HINT: name it in the header 'ce-type' or "
            "'Stentor-Type': stentor.v1.PlaceOrder)");
    }
    r->event->data = domain_message_json(type, r->input->payload, r->arena, err);
    return r->event->data != NULL;
}

// A dead letter keeps an event without its headers. Sent again it says by its subject which message
// it is, and no packed message of order.proto begins as an object of JSON does.
static bool is_bare_protobuf(const DomainInput *in)
{
    return in->content_type.len == 0 && in->ce_version.len == 0 && in->payload.len > 0 &&
           !str_starts(str_trim(in->payload), STR("{")) && domain_message_type(in->type) != NULL;
}

static bool read_data(Reading *r, Error *err)
{
    const DomainInput *in = r->input;
    bool ok = says(in->content_type, "application/protobuf") ||
                      says(in->content_type, "application/x-protobuf") || is_bare_protobuf(in)
                  ? read_protobuf(r, err)
                  : read_json(r, err);
    if (ok) {
        order_data_complete(r->event->type, r->event->data);
    }
    json_decref(r->root);
    if (ok && in->ce_version.len > 0) {
        r->ce_id = in->ce_id;
        r->ce_source = in->ce_source;
        r->ce_time = in->ce_time;
    }
    return ok;
}

// ---- identity and times ----

// `stentor replay` gives an event without an id one of stream and sequence, next to which the
// CloudEvent's own still counts. So it is with the one that ingest makes for an application's.
static bool is_our_own_id(const DomainInput *in)
{
    return in->id_is_made || (in->replayed && str_starts(in->message_id, STR("EVENTS/")));
}

// CloudEvents differ by source and id. The id of a dead letter is the event's identity already.
static Str cloud_identity(const Reading *r)
{
    bool is_letter = r->id_time.len > 0;
    if (r->ce_source.len == 0 || is_letter) {
        return r->ce_id;
    }
    return str_from(
        arena_printf(r->arena, STR_FMT " " STR_FMT, STR_ARG(r->ce_source), STR_ARG(r->ce_id)));
}

static void identify(Reading *r)
{
    const DomainInput *in = r->input;
    Str id = domain_own_id(in->tenant, in->type, in->message_id);
    if (r->ce_id.len > 0 && (id.len == 0 || is_our_own_id(in))) {
        id = cloud_identity(r);
    }
    if (id.len == 0) {
        id = str_from(arena_printf(r->arena, "%s/%" PRIu64, in->stream, in->sequence));
    }
    r->event->identity = domain_identity(id, r->arena);
}

static bool find_time(Reading *r, Error *err)
{
    static const char *const names[] = {"produced_at", "occurred_at"};
    DomainEvent *event = r->event;
    event->produced_at_us = r->input->stored_at_us;
    if (r->ce_time.len > 0) {
        return clock_parse(r->ce_time, &event->produced_at_us) ||
               error_set(
                   err, ERROR_PERMANENT, "CloudEvent's 'time' is not RFC 3339: '%.40s'",
                   arena_cstr(r->arena, r->ce_time));
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = member_value(event->data, names[i]);
        Str text = str_of(json_string_value(value), json_string_length(value));
        if (json_is_string(value) && clock_parse(text, &event->produced_at_us)) {
            return true;
        }
    }
    return true;
}

static bool is_near(int64_t at_us, int64_t stored_at_us, int64_t back_us)
{
    return at_us >= stored_at_us - back_us && at_us <= stored_at_us + 60 * INT64_C(1000000);
}

static void choose_id_time(Reading *r)
{
    DomainEvent *event = r->event;
    int64_t given_us = 0;
    if (event->only.len > 0 && clock_parse(r->id_time, &given_us) &&
        is_near(given_us, event->stored_at_us, LETTER_BACK_US)) {
        event->id_at_us = given_us;
    } else if (is_near(event->produced_at_us, event->stored_at_us, ID_BACK_US)) {
        event->id_at_us = event->produced_at_us;
    } else {
        event->id_at_us = event->stored_at_us;
    }
}

static bool pack_variables(Reading *r, Error *err)
{
    r->event->variables = json_text(r->event->data, JSON_DECIMALS, r->arena);
    size_t size = r->event->variables.len;
    if (size == 0 || size > DOMAIN_DATA_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "event's data is %zu bytes of JSON; at most %d", size,
            (int)DOMAIN_DATA_MAX);
    }
    return true;
}

bool domain_event_read(const DomainInput *input, Arena *arena, DomainEvent *ret, Error *err)
{
    DomainEvent event = {
        .tenant = input->tenant,
        .type = event_type_plain(input->type),
        .stored_at_us = input->stored_at_us,
        .zone = input->zone,
    };
    Reading r = {.input = input, .arena = arena, .event = &event};
    if (!read_data(&r, err) || !find_time(&r, err) || !pack_variables(&r, err)) {
        domain_event_free(&event);
        return false;
    }
    identify(&r);
    choose_id_time(&r);
    int64_t seen_us = 0;
    bool given = input->ce_version.len > 0 && clock_parse(input->ce_seen, &seen_us);
    event.seen_at_us = given && seen_us < event.stored_at_us ? seen_us : event.stored_at_us;
    *ret = event;
    return true;
}

void domain_event_free(DomainEvent *event)
{
    json_decref(event->data);
    event->data = NULL;
}

// ---- again ----

static void set_str(json_t *object, const char *name, Str value)
{
    (void)json_object_set_new(object, name, json_stringn(value.ptr, value.len));
}

Str domain_event_letter(const DomainEvent *event, Str only, Arena *arena)
{
    char produced[CLOCK_RFC3339_SIZE];
    char id_time[CLOCK_RFC3339_SIZE];
    clock_format(event->produced_at_us, produced);
    clock_format(event->id_at_us, id_time);
    json_t *root = json_object();
    (void)json_object_set_new(root, "specversion", json_string("1.0"));
    set_str(root, "id", event->identity);
    set_str(
        root, "source", str_from(arena_printf(arena, "/stentor/" STR_FMT, STR_ARG(event->tenant))));
    set_str(root, "type", event->type);
    (void)json_object_set_new(root, "time", json_string(produced));
    set_str(root, ONLY_READER, only);
    (void)json_object_set_new(root, ID_TIME, json_string(id_time));
    (void)json_object_set(root, "data", event->data);
    Str text = json_text(root, JSON_DECIMALS, arena);
    json_decref(root);
    return text;
}
