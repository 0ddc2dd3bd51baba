// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_events.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/domain/domain_event.h"
#include "common/domain/event_seal.h"
#include "common/session/stream_walk.h"

static const char POSITION[] = "SELECT sequence FROM erasure.positions WHERE stream = 'EVENTS'";
static const char MOVE[] = "SELECT erasure.read_until('EVENTS', $1::bigint)";

bool erasure_event_user(const json_t *data, Arena *arena, Str *ret)
{
    static const char *const names[] = {"user_id", "userId", "id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(data, names[i]);
        if (json_is_string(value) && json_string_length(value) > 0) {
            *ret = arena_str(arena, str_of(json_string_value(value), json_string_length(value)));
            return !str_has_control(*ret);
        }
        if (json_is_integer(value)) {
            *ret = str_from(arena_printf(arena, "%" PRId64, (int64_t)json_integer_value(value)));
            return true;
        }
    }
    return false;
}

// One event, kept until the stream was walked: no statement runs within the walk.
typedef struct Wanted {
    struct Wanted *next;
    const char *tenant, *event;
    int64_t stored_at_us;
    uint64_t sequence;
    Str user;
} Wanted;

typedef struct Taking {
    Arena *arena;
    ErasureEvents *counts;
    EventKeys *keys;
    uint64_t *seen;
    size_t seen_count, seen_cap;
    uint64_t after, last;
    Wanted *first, **end;
} Taking;

static bool read_event(Taking *taking, const BusMessage *message, Wanted *ret)
{
    Str tenant = STR_EMPTY, type = STR_EMPTY;
    DomainEvent event;
    if (!domain_subject(message->subject, &tenant, &type)) {
        return false;
    }
    BusMessage opened = *message;
    if (!event_open(taking->keys, clock_mono_us(), &opened, taking->arena, NULL)) {
        return false;
    }
    DomainInput input = domain_input(&opened, tenant, type, NULL);
    if (!domain_event_read(&input, taking->arena, &event, NULL)) {
        return false;
    }
    bool ok = erasure_event_user(event.data, taking->arena, &ret->user);
    ret->tenant = arena_cstr(taking->arena, tenant);
    ret->event = arena_cstr(taking->arena, event.identity);
    ret->stored_at_us = event.stored_at_us;
    ret->sequence = message->sequence;
    domain_event_free(&event);
    return ok;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return *left < *right ? -1 : *left > *right;
}

// The sealed copy of an event that was taken before, or in this walk. Sequences ascend.
static bool is_known_copy(const Taking *taking, uint64_t original)
{
    return original != 0 &&
           (original <= taking->after ||
            (taking->seen_count > 0 &&
             bsearch(&original, taking->seen, taking->seen_count, sizeof *taking->seen, compare) !=
                 NULL));
}

static void note_seen(Taking *taking, uint64_t sequence)
{
    if (taking->seen_count == taking->seen_cap) {
        taking->seen_cap = taking->seen_cap == 0 ? 64 : 2 * taking->seen_cap;
        taking->seen = xrealloc(taking->seen, taking->seen_cap * sizeof *taking->seen);
    }
    taking->seen[taking->seen_count++] = sequence;
}

static void on_event(void *ctx, const BusMessage *message)
{
    Taking *taking = ctx;
    if (message->sequence <= taking->after) {
        return;
    }
    Wanted wanted = {0};
    taking->last = message->sequence;
    if (is_known_copy(taking, event_original(message))) {
        return;
    }
    note_seen(taking, message->sequence);
    taking->counts->read++;
    if (!read_event(taking, message, &wanted)) {
        taking->counts->refused++;
        return;
    }
    Wanted *kept = arena_alloc(taking->arena, sizeof *kept);
    *kept = wanted;
    *taking->end = kept;
    taking->end = &kept->next;
}

static void derive_id(const Wanted *wanted, Str recipient, Arena *arena, char out[ID_SIZE])
{
    uint8_t digest[SHA256_LEN];
    Str cause = str_from(arena_printf(
        arena, "erasure|%s|%s|" STR_FMT, wanted->tenant, wanted->event, STR_ARG(recipient)));
    sha256(cause, digest);
    id_derived("era_", wanted->stored_at_us, digest, out);
}

static bool ask_for_one(
    PGconn *pg, const HashKeys *keys, const Wanted *wanted, Str recipient, Arena *arena,
    bool *ret_asked, Error *err)
{
    ErasurePerson person;
    ErasureSearch search = {.tenant = wanted->tenant, .recipient_id = recipient};
    char derived[ID_SIZE];
    ErasureAsk ask = {
        .person = &person,
        .id = derived,
        .ground = "the user was deleted (" ERASURE_EVENT_TYPE ")",
        .requested_by = "event",
        .source_event = wanted->event};
    const char *id = NULL;
    bool found = false;
    derive_id(wanted, recipient, arena, derived);
    if (!erasure_find(pg, keys, &search, arena, &person, &found, err) ||
        !erasure_ask(pg, &ask, arena, &id, err)) {
        return error_wrap(err, "recipient '" STR_FMT "'", STR_ARG(recipient));
    }
    *ret_asked = *ret_asked || id != NULL;
    return true;
}

// For every recipient with the identity, also behind one whose request fails.
static bool ask_for(
    PGconn *pg, const HashKeys *keys, const Wanted *wanted, Arena *arena, ErasureEvents *counts)
{
    ErasureSearch search = {
        .tenant = wanted->tenant, .identity_type = STR("user"), .identity_id = wanted->user};
    const Str *recipients = NULL;
    size_t count = 0;
    Error err = {0};
    bool asked = false;
    bool ok = erasure_find_identity(pg, &search, arena, &recipients, &count, &err);
    for (size_t i = 0; i < count; i++) {
        Error one = {0};
        if (!ask_for_one(pg, keys, wanted, recipients[i], arena, &asked, &one)) {
            ok = false;
            err = one;
        }
    }
    counts->asked += asked;
    counts->unknown += ok && !asked;
    if (!ok) {
        counts->failed++;
        counts->on_failure(
            counts->ctx, arena_printf(
                             arena, "event '%s' of tenant '%s' is read again by the next run: %s",
                             wanted->event, wanted->tenant, err.text));
    }
    return ok;
}

static bool read_position(PGconn *pg, uint64_t *ret, Error *err)
{
    AUTO(PGresult) row = erasure_pg_query(pg, POSITION, 0, NULL, err);
    *ret = row != NULL && PQntuples(row) == 1 ? strtoull(PQgetvalue(row, 0, 0), NULL, 10) : 0;
    return row != NULL;
}

static void forget_counts(ErasureEvents *counts)
{
    *counts = (ErasureEvents){.on_failure = counts->on_failure, .ctx = counts->ctx};
}

// Killed before the position is moved: the same events are read again, and are the same requests.
bool erasure_take_events(
    PGconn *pg, Session *session, MasterKey *master, Arena *arena, ErasureEvents *ret, Error *err)
{
    Taking taking = {.arena = arena, .counts = ret, .keys = event_keys_new(master)};
    HashKeys hash_keys = master_hash_keys(master);
    uint64_t failed_first = 0;
    taking.end = &taking.first;
    forget_counts(ret);
    bool walked =
        read_position(pg, &taking.after, err) &&
        session_walk(session, "EVENTS", "evt.*." ERASURE_EVENT_TYPE, on_event, &taking, err);
    event_keys_free(taking.keys);
    free(taking.seen);
    if (!walked) {
        return false;
    }
    for (const Wanted *wanted = taking.first; wanted != NULL; wanted = wanted->next) {
        if (!ask_for(pg, &hash_keys, wanted, arena, ret) && failed_first == 0) {
            failed_first = wanted->sequence;
        }
    }
    uint64_t until = failed_first != 0 ? failed_first - 1 : taking.last;
    if (until <= taking.after) {
        return true;
    }
    const char *params[] = {arena_printf(arena, "%" PRIu64, until)};
    AUTO(PGresult) moved = erasure_pg_query(pg, MOVE, 1, params, err);
    return moved != NULL;
}
