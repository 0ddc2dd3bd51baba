// SPDX-License-Identifier: Apache-2.0
#include "common/domain/event_seal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/domain/domain_event.h"
#include "common/names/event_type.h"
#include "stentor/v1/event.pb-c.h"

typedef Stentor__V1__SealedEvent SealedEvent;
typedef Stentor__V1__EventContent EventContent;

enum {
    KEYS_MAX = 10000, // of tenants and epochs, in memory
    MISSING_MAX = 64,
    HEADERS_MAX = 64,
    HEADER_VALUE_MAX = 1024, // as the bus sends
    PLAIN_MAX = 512,
    LETTER_MAX = EVENT_BYTES_MAX - 4096, // what a dead letter has room for, else its end is cut off
    BEGINNING_MAX = LETTER_MAX - 4096,
};

static const int64_t SECOND_US = 1000000;
static const int64_t REFRESH_US = INT64_C(60) * 1000000; // how old the current epoch may be
static const int64_t STALE_US = INT64_C(3600) * 1000000; // without a refresh nothing is sealed
static const int64_t MISSING_US = INT64_C(60) * 1000000; // a shared folder may be so far behind

#define MAGIC                                                                                      \
    "\xff"                                                                                         \
    "SE1"
enum { MAGIC_LEN = 4 };
#define FIELD "event"

struct EventKeys {
    MasterKey *master;
    Map *held;    // name -> DataKey
    Map *missing; // name -> int64_t, since when
    int64_t refreshed_us;
    int64_t looked_us; // when the folder was read for a missing key
    bool is_fresh;     // refreshed_us is a time
    bool has_looked;
};

static void free_key(void *key)
{
    data_key_free(key);
}

EventKeys *event_keys_new(MasterKey *master)
{
    EventKeys *keys = xcalloc(1, sizeof *keys);
    keys->master = master;
    keys->held = map_new(free_key);
    keys->missing = map_new(free);
    return keys;
}

void event_keys_free(EventKeys *keys)
{
    if (keys != NULL) {
        map_free(keys->held);
        map_free(keys->missing);
        free(keys);
    }
}

// ---- keys ----

static DataKey *take_key(EventKeys *keys, Str tenant, const EventKeyName *name, Error *err)
{
    Str as_text = str_of(name->bytes, KEY_SUBJECT_LEN);
    DataKey *key = map_get(keys->held, as_text);
    if (key != NULL && !event_key_is_missing(keys->master, name)) {
        return key;
    }
    key = event_key_derive(keys->master, tenant, name, err);
    if (key == NULL) {
        (void)map_remove(keys->held, as_text); // its epoch key was destroyed
        return NULL;
    }
    if (map_count(keys->held) >= KEYS_MAX) {
        map_free(keys->held);
        keys->held = map_new(free_key);
    }
    map_put(keys->held, as_text, key);
    return key;
}

// Another process opens the next epoch; an event that is sealed under one that has ended could not
// be opened, so this looks often enough, and stops sealing long before the shortest life of a key.
bool event_keys_ready(EventKeys *keys, int64_t now_us, Error *err)
{
    if (!keys->is_fresh || now_us - keys->refreshed_us >= REFRESH_US) {
        Error failed = {0};
        if (master_epochs_refresh(keys->master, &failed)) {
            keys->refreshed_us = now_us;
            keys->is_fresh = true;
        } else if (!keys->is_fresh || now_us - keys->refreshed_us >= STALE_US) {
            (void)error_set(err, ERROR_TRANSIENT, "%s", failed.text);
            return error_wrap(err, "the event is not sealed");
        }
    }
    return true;
}

static DataKey *key_to_seal(EventKeys *keys, int64_t now_us, Str tenant, Error *err)
{
    if (!event_keys_ready(keys, now_us, err)) {
        return NULL;
    }
    EventKeyName name = event_key_current(keys->master, tenant);
    return take_key(keys, tenant, &name, err);
}

// How long this key has been missing; from now on, if it was not before.
static int64_t missing_for(EventKeys *keys, int64_t now_us, const EventKeyName *name)
{
    Str as_text = str_of(name->bytes, KEY_SUBJECT_LEN);
    const int64_t *since = map_get(keys->missing, as_text);
    if (since != NULL) {
        return now_us - *since;
    }
    if (map_count(keys->missing) >= MISSING_MAX) {
        map_free(keys->missing);
        keys->missing = map_new(free);
    }
    int64_t *first = xmalloc(sizeof *first);
    *first = now_us;
    map_put(keys->missing, as_text, first);
    return 0;
}

static DataKey *key_to_open(
    EventKeys *keys, int64_t now_us, Str tenant, const EventKeyName *name, Error *err)
{
    (void)event_keys_ready(keys, now_us, NULL); // a destroyed key is forgotten within a minute
    bool missing = event_key_is_missing(keys->master, name);
    if (missing && (!keys->has_looked || now_us - keys->looked_us >= SECOND_US)) {
        (void)master_epochs_refresh(keys->master, NULL);
        keys->looked_us = now_us;
        keys->has_looked = true;
        missing = event_key_is_missing(keys->master, name);
    }
    DataKey *key = take_key(keys, tenant, name, err);
    if (missing && err != NULL && missing_for(keys, now_us, name) < MISSING_US) {
        err->kind = ERROR_TRANSIENT;
    }
    return key;
}

// ---- what may be in clear ----

bool event_is_sealed(Str payload)
{
    return str_starts(payload, str_of(MAGIC, MAGIC_LEN));
}

// An address has an '@', a telephone number begins with '+'.
static bool is_harmless(Str text)
{
    return memchr(text.ptr, '@', text.len) == NULL && memchr(text.ptr, '+', text.len) == NULL;
}

bool event_is_plain(Str type, Str payload)
{
    static const char *const types[] = {"PlaceOrderTimeout", "CleanUpOrders", "CleanUpSentEmail"};
    Str plain = event_type_plain(type);
    bool its = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        its = its || str_eq(plain, str_from(types[i]));
    }
    return its && payload.len <= PLAIN_MAX && (payload.len == 0 || is_harmless(payload));
}

static const char *const clear_names[] = {
    "ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time"};
enum { CLEAR_MAX = sizeof clear_names / sizeof *clear_names };

static bool stays_in_clear(const BusHeader *header)
{
    bool its = false;
    for (size_t i = 0; i < CLEAR_MAX; i++) {
        its = its || str_eq_nocase(str_from(header->name), str_from(clear_names[i]));
    }
    return its && (header->value.len == 0 || is_harmless(header->value));
}

// ---- sealing ----

typedef struct Plain {
    Str tenant, bound;
    EventContent content;
} Plain;

static bool pack(DataKey *key, const Plain *plain, Arena *arena, Str *ret, Error *err)
{
    Str packed = STR_EMPTY;
    Str body = STR_EMPTY;
    if (!event_pack(&plain->content.base, arena, &packed, err)) {
        return false;
    }
    SealedEvent sealed;
    stentor__v1__sealed_event__init(&sealed);
    sealed.content = seal(key, plain->tenant, plain->bound, FIELD, packed, arena);
    if (!event_pack(&sealed.base, arena, &body, err)) {
        return false;
    }
    char *bytes = arena_alloc(arena, MAGIC_LEN + body.len);
    memcpy(bytes, MAGIC, MAGIC_LEN);
    memcpy(bytes + MAGIC_LEN, body.ptr, body.len);
    *ret = str_of(bytes, MAGIC_LEN + body.len);
    return ret->len <= EVENT_BYTES_MAX ||
           error_set(
               err, ERROR_PERMANENT, "the event has %zu bytes when it is sealed; at most %d",
               ret->len, (int)EVENT_BYTES_MAX);
}

static bool write_headers(
    const BusHeader *headers, size_t count, Arena *arena, ProtobufCBinaryData *ret, Error *err)
{
    Buf block;
    bool ok = true;
    buf_init(&block, EVENT_BYTES_MAX);
    buf_cstr(&block, "NATS/1.0\r\n");
    for (size_t i = 0; i < count && ok; i++) {
        const BusHeader *header = &headers[i];
        ok = header->value.len <= HEADER_VALUE_MAX && !str_has_control(header->value);
        if (!ok) {
            (void)error_set(
                err, ERROR_PERMANENT, "header '%.60s': at most %d bytes without control characters",
                header->name, (int)HEADER_VALUE_MAX);
        }
        buf_printf(&block, "%s: ", header->name);
        buf_str(&block, header->value);
        buf_cstr(&block, "\r\n");
    }
    *ret = pb_data(arena_str(arena, buf_view(&block)));
    buf_done(&block);
    return ok;
}

// Those of the sealed message: its own, and of the event's the harmless ones.
static void choose_headers(const BusHeader *headers, size_t count, Arena *arena, BusOut *ret)
{
    BusHeader *chosen = arena_array(arena, count + 4, sizeof *chosen);
    size_t n = 0;
    chosen[n++] = (BusHeader){EVENT_SEALED_HEADER, STR("1")};
    chosen[n++] = (BusHeader){"Content-Type", STR(EVENT_SEALED_TYPE)};
    for (size_t i = 0; i < count; i++) {
        if (stays_in_clear(&headers[i])) {
            chosen[n++] = headers[i];
        }
    }
    ret->headers = chosen;
    ret->header_count = n;
}

static Plain plain_of(Str tenant, Str bound)
{
    Plain plain = {.tenant = tenant, .bound = bound};
    stentor__v1__event_content__init(&plain.content);
    return plain;
}

static bool find_tenant(Str subject, Str *ret, Error *err)
{
    Str type;
    return domain_subject(subject, ret, &type) ||
           error_set(err, ERROR_PERMANENT, "the subject is none of an event");
}

bool event_seal_out(EventKeys *keys, int64_t now_us, BusOut *out, Arena *arena, Error *err)
{
    Str tenant;
    Str subject = str_from(out->subject);
    if (!find_tenant(subject, &tenant, err)) {
        return false;
    }
    Plain plain = plain_of(tenant, subject);
    plain.content.message_id = pb_data(out->event_id);
    plain.content.payload = pb_data(out->payload);
    DataKey *key = key_to_seal(keys, now_us, tenant, err);
    if (key == NULL ||
        !write_headers(out->headers, out->header_count, arena, &plain.content.headers, err) ||
        !pack(key, &plain, arena, &out->payload, err)) {
        return false;
    }
    choose_headers(out->headers, out->header_count, arena, out);
    out->event_id = event_id_in_clear(out->event_id, arena);
    return true;
}

// ---- of a message that came in clear ----

// A message of get_message has its headers as a block, one of a worker does not.
static bool copy_headers(
    const BusMessage *message, Arena *arena, ProtobufCBinaryData *ret_block, Error *err)
{
    BusHeader *headers = NULL;
    size_t count = 0;
    if (message->native == NULL) {
        *ret_block = pb_data(message->headers);
        return true;
    }
    return (bus_message_headers(message, arena, HEADERS_MAX, &headers, &count) ||
            error_set(err, ERROR_PERMANENT, "more than %d headers", (int)HEADERS_MAX)) &&
           write_headers(headers, count, arena, ret_block, err);
}

static bool seal_message(
    EventKeys *keys, int64_t now_us, const BusMessage *message, bool as_copy, Arena *arena,
    Str *ret, Error *err)
{
    Str tenant;
    if (!find_tenant(message->subject, &tenant, err)) {
        return false;
    }
    Plain plain = plain_of(tenant, message->subject);
    plain.content.message_id = pb_data(message->event_id);
    plain.content.payload = pb_data(message->payload);
    if (as_copy) {
        plain.content.original_sequence = message->sequence;
        plain.content.original_stored_at_us = message->stored_at_us;
    }
    DataKey *key = key_to_seal(keys, now_us, tenant, err);
    return key != NULL && copy_headers(message, arena, &plain.content.headers, err) &&
           pack(key, &plain, arena, ret, err);
}

// The harmless headers of the message, and which one it is a copy of.
static void head_copy(const BusMessage *message, Arena *arena, BusOut *ret)
{
    BusHeader given[CLEAR_MAX];
    size_t count = 0;
    for (size_t i = 0; i < CLEAR_MAX; i++) {
        Str value = bus_message_header(message, clear_names[i]);
        if (value.len > 0) {
            given[count++] = (BusHeader){clear_names[i], arena_str(arena, value)};
        }
    }
    choose_headers(given, count, arena, ret);
    BusHeader *own = (BusHeader *)(uintptr_t)ret->headers;
    own[ret->header_count++] = (BusHeader){
        EVENT_ORIGINAL_HEADER, str_from(arena_printf(arena, "%" PRIu64, message->sequence))};
    own[ret->header_count++] = (BusHeader){
        EVENT_ORIGINAL_AT_HEADER, str_from(arena_printf(arena, "%" PRId64, message->stored_at_us))};
}

bool event_seal_copy(
    EventKeys *keys, int64_t now_us, const BusMessage *message, Arena *arena, BusOut *ret,
    Error *err)
{
    *ret = (BusOut){
        .subject = arena_cstr(arena, message->subject), .traceparent = message->traceparent};
    if (!seal_message(keys, now_us, message, true, arena, &ret->payload, err)) {
        return false;
    }
    char *place = arena_printf(arena, "%" PRIu64, message->sequence);
    char *cause = arena_printf(arena, "EVENTS/%" PRId64, message->stored_at_us);
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    event_id_derive("sealed", str_from(cause), str_from(place), id);
    ret->event_id = str_from(id);
    head_copy(message, arena, ret);
    return true;
}

static bool seal_whole(
    EventKeys *keys, int64_t now_us, const BusMessage *message, Arena *arena, Str *ret)
{
    return seal_message(keys, now_us, message, false, arena, ret, NULL) && ret->len <= LETTER_MAX;
}

// One that is too large when it is sealed, or whose headers could not be sent, keeps its beginning,
// without them: in clear it would stand in DEAD for months.
static bool seal_beginning(
    EventKeys *keys, int64_t now_us, const BusMessage *message, Arena *arena, Str *ret)
{
    BusMessage beginning = *message;
    beginning.native = NULL;
    beginning.headers = STR_EMPTY;
    beginning.payload = str_slice(message->payload, 0, BEGINNING_MAX);
    return seal_message(keys, now_us, &beginning, false, arena, ret, NULL);
}

void event_keep(EventKeys *keys, int64_t now_us, BusMessage *message, Arena *arena)
{
    Str tenant, type, kept;
    if (message->kept.len == 0 && !event_is_sealed(message->payload) &&
        domain_subject(message->subject, &tenant, &type) &&
        !event_is_plain(type, message->payload) &&
        (seal_whole(keys, now_us, message, arena, &kept) ||
         seal_beginning(keys, now_us, message, arena, &kept))) {
        message->kept = kept;
    }
}

void event_keep_letter(EventKeys *keys, int64_t now_us, BusMessage *message, Arena *arena)
{
    Str tenant;
    Str kept;
    if (message->kept.len == 0 || !find_tenant(message->subject, &tenant, NULL)) {
        return; // it is in clear, and may be
    }
    DataKey *key = key_to_seal(keys, now_us, tenant, NULL);
    Plain plain = plain_of(tenant, message->subject);
    plain.content.message_id = pb_data(message->event_id);
    plain.content.payload = pb_data(message->payload);
    if (key != NULL && pack(key, &plain, arena, &kept, NULL)) {
        message->kept = kept;
    }
}

// ---- opening ----

static bool fail_form(Error *err)
{
    return error_set(err, ERROR_PERMANENT, "the sealed event is malformed or cut off");
}

static bool open_content(
    EventKeys *keys, int64_t now_us, Str tenant, Str bound, Str bytes, Arena *arena,
    const EventContent **ret, Error *err)
{
    Str plain;
    EventKeyName name;
    const SealedEvent *sealed = (const SealedEvent *)event_unpack(
        &stentor__v1__sealed_event__descriptor, str_slice(bytes, MAGIC_LEN, bytes.len), arena,
        NULL);
    if (sealed == NULL || sealed->content == NULL) {
        return fail_form(err);
    }
    if (!event_key_named(pb_bytes(sealed->content->key_subject), tenant, &name)) {
        return error_set(err, ERROR_PERMANENT, "the event is not sealed under a key of its tenant");
    }
    DataKey *key = key_to_open(keys, now_us, tenant, &name, err);
    if (key == NULL || !unseal(key, tenant, bound, FIELD, sealed->content, arena, &plain, err)) {
        return false;
    }
    *ret = (const EventContent *)event_unpack(
        &stentor__v1__event_content__descriptor, plain, arena, NULL);
    return *ret != NULL || fail_form(err);
}

// A dead letter that is sent again is an event of its own place and time, not the copy once more.
static void keep_copy(EventKeys *keys, int64_t now_us, BusMessage *message, Arena *arena)
{
    Str kept;
    BusMessage own = *message;
    own.native = NULL; // its headers are the block that was sealed
    if (seal_message(keys, now_us, &own, false, arena, &kept, NULL)) {
        message->kept = kept;
    }
}

bool event_open(EventKeys *keys, int64_t now_us, BusMessage *message, Arena *arena, Error *err)
{
    Str tenant;
    const EventContent *content;
    if (message->is_opened || !event_is_sealed(message->payload)) {
        return true;
    }
    message->kept = message->payload;
    if (!find_tenant(message->subject, &tenant, err) ||
        !open_content(
            keys, now_us, tenant, message->subject, message->payload, arena, &content, err)) {
        return false;
    }
    message->payload = pb_bytes(content->payload);
    message->headers = pb_bytes(content->headers);
    // A dead letter without an id was sent again under one of its own.
    bool named = content->message_id.len > 0 || content->original_sequence != 0;
    message->event_id = named ? pb_bytes(content->message_id) : message->event_id;
    message->is_opened = true;
    message->replayed = message->replayed || bus_message_header(message, BUS_REPLAY_HEADER).len > 0;
    message->original = content->original_sequence;
    if (content->original_sequence != 0) {
        message->stored_at_us = content->original_stored_at_us;
        keep_copy(keys, now_us, message, arena);
    }
    return true;
}

uint64_t event_original(const BusMessage *message)
{
    int64_t sequence = 0;
    Str text = bus_message_header(message, EVENT_ORIGINAL_HEADER);
    return text.len > 0 && str_to_i64(text, &sequence) && sequence > 0 ? (uint64_t)sequence : 0;
}

int64_t event_original_at(const BusMessage *message)
{
    int64_t at_us = 0;
    Str text = bus_message_header(message, EVENT_ORIGINAL_AT_HEADER);
    return text.len > 0 && str_to_i64(text, &at_us) && at_us > 0 ? at_us : 0;
}

// ---- pieces ----

bool event_seal_piece(
    EventKeys *keys, int64_t now_us, Str tenant, Str place, Str plain, Arena *arena, Str *ret,
    Error *err)
{
    Plain content = plain_of(tenant, place);
    content.content.payload = pb_data(plain);
    DataKey *key = key_to_seal(keys, now_us, tenant, err);
    return key != NULL && pack(key, &content, arena, ret, err);
}

bool event_open_piece(
    EventKeys *keys, int64_t now_us, Str tenant, Str place, Str piece, Arena *arena, Str *ret,
    Error *err)
{
    const EventContent *content;
    *ret = piece;
    if (!event_is_sealed(piece)) {
        return true;
    }
    if (!open_content(keys, now_us, tenant, place, piece, arena, &content, err)) {
        return false;
    }
    *ret = pb_bytes(content->payload);
    return true;
}
