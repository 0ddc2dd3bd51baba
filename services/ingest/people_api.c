// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/people_api.h"

#include "common/base/clock.h"
#include "services/ingest/people_address.h"
#include "services/ingest/people_read.h"

enum { BODY_TEXT_MAX = PERSON_LINE_MAX };

// One call on its way; lives in the request's arena.
typedef struct Call {
    PeopleApi *api;
    ApiCall *base;
    Str id;
    bool created;
    bool given; // the body named what it is about
    PersonRecord record;
    PersonPreference *preferences;
    size_t preference_count;
    PersonConsent *consents;
    size_t consent_count;
    PersonFact *facts;
    size_t fact_count;
    PeopleWrite write;
    void (*look_up_done)(struct Call *call, const PGresult *rows); // by one of the statements
} Call;

Str people_api_hash_key(const PeopleApi *people)
{
    return master_hash_key(keyring_master(people->keyring));
}

static Call *call_new(ApiCall *base)
{
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    call->api = base->ctx;
    call->base = base;
    return call;
}

static void answer_json(Call *call, int status, const Buf *json)
{
    http_respond(call->base->http, status, "application/json", buf_view(json));
}

// ---- checks ----

bool people_api_writable(ApiCall *call)
{
    const PeopleApi *api = call->ctx;
    const char *why = people_write_unready(api->bus);
    if (why != NULL) {
        api_answer_unavailable(call, why);
    }
    return why == NULL;
}

static bool check_id(Call *call)
{
    FieldError err = {.field = ""};
    call->id = call->base->params[0];
    if (id_parse(call->id, "rcp_", NULL)) {
        return true;
    }
    (void)field_error(&err, "id", "not a recipient's id ('rcp_' and a ULID)");
    api_answer_field(call->base, &err);
    return false;
}

// Parses the body, has it read, and answers what is wrong with it.
static bool read_body(
    Call *call, const char *array, bool (*take)(Call *call, ApiBody *body), Str text)
{
    ApiBody body = {0};
    if (text.len > BODY_TEXT_MAX) {
        Problem problem = {
            .status = 422,
            .slug = "invalid-body",
            .title = "The body is not valid",
            .detail = "longer than 65536 bytes",
        };
        api_answer_problem(call->base, &problem);
        return false;
    }
    bool ok = person_body_parse(&body, array, text, call->base->http->arena) && take(call, &body) &&
              api_body_end(&body);
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- one question to the tables ----

static void on_looked_up(void *ctx, DbTxn *txn, const Error *err)
{
    Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else {
        call->look_up_done(call, db_txn_result(txn, 0));
    }
}

static DbTxn *look_up(Call *call, void (*done)(Call *call, const PGresult *rows))
{
    call->look_up_done = done;
    DbTxn *txn = db_txn_new(call->api->pool);
    db_txn_tenant(txn, str_from(call->base->tenant));
    return txn;
}

static void look_up_known(Call *call, void (*done)(Call *call, const PGresult *rows))
{
    DbTxn *txn = look_up(call, done);
    DbParams *p = db_txn_add(txn, &people_known_sql, NULL);
    db_text(p, str_from(call->base->tenant));
    db_push_text(db_array(p, DB_TEXT), call->id);
    db_txn_submit(txn, on_looked_up, call);
}

static bool is_known(Call *call, const PGresult *rows)
{
    if (db_rows(rows) > 0) {
        return true;
    }
    api_answer_missing(
        call->base,
        arena_printf(call->base->http->arena, "recipient '" STR_FMT "'", STR_ARG(call->id)));
    return false;
}

// ---- writing ----

PeopleWrite people_api_write_of(ApiCall *call)
{
    const PeopleApi *api = call->ctx;
    return (PeopleWrite){
        .bus = api->bus,
        .keyring = api->keyring,
        .people = api->people,
        .arena = call->http->arena,
        .tenant = str_from(call->tenant),
        .said_by = call->key_id,
    };
}

static void answer_written(Call *call)
{
    Buf out;
    buf_init(&out, 256);
    buf_cstr(&out, "{\"id\":");
    buf_json(&out, call->id);
    buf_char(&out, '}');
    const char *place =
        arena_printf(call->base->http->arena, "/v1/recipients/" STR_FMT, STR_ARG(call->id));
    http_response_header(call->base->http, "Location", str_from(place));
    answer_json(call, call->created ? 201 : 200, &out);
    buf_done(&out);
}

static void on_written(void *ctx, const Error *err)
{
    Call *call = ctx;
    for (size_t i = 0; err == NULL && i < call->fact_count; i++) {
        err = call->facts[i].error.kind != ERROR_NONE ? &call->facts[i].error : NULL;
    }
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else {
        answer_written(call);
    }
}

static void write_facts(Call *call)
{
    if (call->fact_count == 0) {
        answer_written(call); // it says what stands there already
        return;
    }
    call->write = people_api_write_of(call->base);
    call->write.facts = call->facts;
    call->write.count = call->fact_count;
    call->write.done = on_written;
    call->write.ctx = call;
    people_write(&call->write);
}

static PersonFact *add_fact(Call *call, PersonPart part, size_t room)
{
    if (call->facts == NULL) {
        call->facts = arena_array(call->base->http->arena, room, sizeof *call->facts);
    }
    PersonFact *fact = &call->facts[call->fact_count++];
    *fact = (PersonFact){.recipient_id = call->id, .part = part};
    return fact;
}

// ---- the record ----

static bool take_record(Call *call, ApiBody *body)
{
    return person_record_read(body, &call->record);
}

static void write_record(Call *call)
{
    add_fact(call, PERSON_RECORD, 1)->record = &call->record;
    write_facts(call);
}

static void put_found(Call *call, const PGresult *rows)
{
    call->created = db_rows(rows) == 0;
    write_record(call);
}

static void put_recipient(ApiCall *base)
{
    Call *call = call_new(base);
    if (check_id(call) && read_body(call, "recipient", take_record, base->http->body) &&
        people_api_writable(base)) {
        look_up_known(call, put_found);
    }
}

static void post_found(Call *call, const PGresult *rows)
{
    Arena *arena = call->base->http->arena;
    call->created = db_rows(rows) == 0;
    if (!call->created) {
        call->id = arena_str(arena, db_get_text(rows, 0, 2));
    }
    write_record(call);
}

// By identity: who is known is changed, and two posts at once make one, for the id comes from it.
static void post_recipient(ApiCall *base)
{
    Call *call = call_new(base);
    Arena *arena = base->http->arena;
    if (!read_body(call, "recipient", take_record, base->http->body) ||
        !people_api_writable(base)) {
        return;
    }
    char *id = arena_alloc(arena, ID_SIZE);
    const PersonRecord *record = &call->record;
    if (record->identity_id.len == 0) {
        id_new("rcp_", clock_now_us(), id);
        call->id = str_from(id);
        call->created = true;
        write_record(call);
        return;
    }
    Str type = str_from(identity_name(record->identity));
    const char *cause =
        arena_printf(arena, STR_FMT "|" STR_FMT, STR_ARG(type), STR_ARG(record->identity_id));
    person_derive_id(
        people_api_hash_key(call->api), str_from(base->tenant), "identity", str_from(cause), id);
    call->id = str_from(id);
    DbTxn *txn = look_up(call, post_found);
    DbParams *p = db_txn_add(txn, &people_identities_sql, NULL);
    db_text(p, str_from(base->tenant));
    db_push_text(db_array(p, DB_TEXT), type);
    db_push_text(db_array(p, DB_TEXT), record->identity_id);
    db_txn_submit(txn, on_looked_up, call);
}

static void remove_found(Call *call, const PGresult *rows)
{
    if (is_known(call, rows)) {
        (void)add_fact(call, PERSON_REMOVAL, 1);
        write_facts(call);
    }
}

static void delete_recipient(ApiCall *base)
{
    Call *call = call_new(base);
    if (check_id(call) && people_api_writable(base)) {
        look_up_known(call, remove_found);
    }
}

// ---- unsubscription ----

static bool take_unsubscription(Call *call, ApiBody *body)
{
    PersonFact *fact = add_fact(call, PERSON_UNSUBSCRIPTION, 1);
    if (!json_is_boolean(json_object_get(body->root, "unsubscribed"))) { // nor is null an answer
        return api_body_fail(body, "unsubscribed", "required: true or false");
    }
    return api_take_bool(body, "unsubscribed", &fact->unsubscribed);
}

static void known_found(Call *call, const PGresult *rows)
{
    if (is_known(call, rows)) {
        write_facts(call);
    }
}

static void put_unsubscription(ApiCall *base)
{
    Call *call = call_new(base);
    if (check_id(call) &&
        read_body(call, "unsubscription", take_unsubscription, base->http->body) &&
        people_api_writable(base)) {
        look_up_known(call, known_found);
    }
}

// ---- preferences ----

static bool take_preferences(Call *call, ApiBody *body)
{
    return person_preferences_read(
               body, &call->preferences, &call->preference_count, &call->given) &&
           (call->given || api_body_fail(body, "preferences", "required: an array"));
}

static bool row_is(const PGresult *rows, int row, const PersonPreference *p)
{
    Category category = CATEGORY_NONE;
    Channel channel = CHANNEL_NONE;
    (void)category_from_name(db_get_text(rows, row, 0), &category);
    (void)channel_from_name(db_get_text(rows, row, 1), &channel);
    return category == p->category && channel == p->channel;
}

static bool row_says(const PGresult *rows, int row, const PersonPreference *p)
{
    return (db_get_int(rows, row, 2) != 0) == p->off &&
           str_eq(db_get_text(rows, row, 3), str_from(frequency_name(p->frequency))) &&
           db_get_int(rows, row, 4) == p->at_minute && db_get_int(rows, row, 5) == p->on_weekday;
}

// The body is the whole set: what is new or other is said, what it does not name is taken back.
static void preferences_found(Call *call, const PGresult *rows)
{
    size_t room = call->preference_count + (size_t)db_rows(rows) + 1;
    bool *kept = arena_array(call->base->http->arena, (size_t)db_rows(rows) + 1, sizeof *kept);
    for (size_t i = 0; i < call->preference_count; i++) {
        const PersonPreference *wanted = &call->preferences[i];
        bool same = false;
        for (int row = 0; row < db_rows(rows); row++) {
            if (row_is(rows, row, wanted)) {
                kept[row] = true;
                same = row_says(rows, row, wanted);
            }
        }
        if (!same) {
            add_fact(call, PERSON_PREFERENCE, room)->preference = *wanted;
        }
    }
    for (int row = 0; row < db_rows(rows); row++) {
        if (!kept[row]) {
            PersonFact *fact = add_fact(call, PERSON_PREFERENCE_CLEARED, room);
            (void)category_from_name(db_get_text(rows, row, 0), &fact->preference.category);
            (void)channel_from_name(db_get_text(rows, row, 1), &fact->preference.channel);
        }
    }
    write_facts(call);
}

static void look_up_entries(
    Call *call, const DbStatement *statement, void (*done)(Call *call, const PGresult *rows))
{
    DbTxn *txn = look_up(call, done);
    DbParams *p = db_txn_add(txn, statement, NULL);
    db_text(p, str_from(call->base->tenant));
    db_text(p, call->id);
    db_txn_submit(txn, on_looked_up, call);
}

static void preferences_known(Call *call, const PGresult *rows)
{
    if (is_known(call, rows)) {
        look_up_entries(call, &people_preferences_sql, preferences_found);
    }
}

static void put_preferences(ApiCall *base)
{
    Call *call = call_new(base);
    if (check_id(call) && read_body(call, "preferences", take_preferences, base->http->body) &&
        people_api_writable(base)) {
        look_up_known(call, preferences_known);
    }
}

static void show_preferences(Call *call, const PGresult *rows)
{
    Buf out;
    buf_init(&out, 256 * 1024);
    buf_cstr(&out, "{\"preferences\":[");
    for (int row = 0; row < db_rows(rows); row++) {
        Str frequency = db_get_text(rows, row, 3);
        int minute = (int)db_get_int(rows, row, 4);
        int weekday = (int)db_get_int(rows, row, 5);
        bool weekly = str_eq(frequency, STR("weekly"));
        char at[CLOCK_RFC3339_SIZE];
        clock_format(db_get_time(rows, row, 6), at);
        buf_printf(
            &out,
            "%s{\"category\":\"" STR_FMT "\",\"channel\":\"" STR_FMT
            "\",\"off\":%s,\"frequency\":\"" STR_FMT "\"",
            row > 0 ? "," : "", STR_ARG(db_get_text(rows, row, 0)),
            STR_ARG(db_get_text(rows, row, 1)), db_get_int(rows, row, 2) != 0 ? "true" : "false",
            STR_ARG(frequency));
        if (weekly || str_eq(frequency, STR("daily"))) {
            buf_printf(&out, ",\"at\":\"%02d:%02d\"", minute / 60, minute % 60);
        }
        if (weekly) {
            buf_printf(&out, ",\"weekday\":%d", weekday == 0 ? 1 : weekday);
        }
        buf_printf(&out, ",\"updated_at\":\"%s\"}", at);
    }
    buf_cstr(&out, "]}");
    answer_json(call, 200, &out);
    buf_done(&out);
}

static void show_preferences_known(Call *call, const PGresult *rows)
{
    if (is_known(call, rows)) {
        look_up_entries(call, &people_preferences_sql, show_preferences);
    }
}

static void get_preferences(ApiCall *base)
{
    Call *call = call_new(base);
    if (check_id(call)) {
        look_up_known(call, show_preferences_known);
    }
}

// ---- consents ----

static bool take_consents(Call *call, ApiBody *body)
{
    return person_consents_read(
               body, call->base->http->received_at_us, &call->consents, &call->consent_count,
               &call->given) &&
           (call->given || api_body_fail(body, "consents", "required: an array"));
}

// Those that the body does not name stay: a consent is taken back by saying so, never by silence.
static void put_consents(ApiCall *base)
{
    Call *call = call_new(base);
    if (!check_id(call) || !read_body(call, "consents", take_consents, base->http->body) ||
        !people_api_writable(base)) {
        return;
    }
    for (size_t i = 0; i < call->consent_count; i++) {
        add_fact(call, PERSON_CONSENT, call->consent_count)->consent = call->consents[i];
    }
    look_up_known(call, known_found);
}

static void show_consents(Call *call, const PGresult *rows)
{
    Buf out;
    buf_init(&out, 256 * 1024);
    buf_cstr(&out, "{\"consents\":[");
    for (int row = 0; row < db_rows(rows); row++) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(db_get_time(rows, row, 4), at);
        buf_printf(
            &out, "%s{\"category\":\"" STR_FMT "\",\"channel\":\"" STR_FMT "\",\"granted\":%s",
            row > 0 ? "," : "", STR_ARG(db_get_text(rows, row, 0)),
            STR_ARG(db_get_text(rows, row, 1)), db_get_int(rows, row, 2) != 0 ? "true" : "false");
        if (!db_is_null(rows, row, 3)) {
            buf_cstr(&out, ",\"source\":");
            buf_json(&out, db_get_text(rows, row, 3));
        }
        buf_printf(&out, ",\"given_at\":\"%s\"}", at);
    }
    buf_cstr(&out, "]}");
    answer_json(call, 200, &out);
    buf_done(&out);
}

static void show_consents_known(Call *call, const PGresult *rows)
{
    if (is_known(call, rows)) {
        look_up_entries(call, &people_consents_sql, show_consents);
    }
}

static void get_consents(ApiCall *base)
{
    Call *call = call_new(base);
    if (check_id(call)) {
        look_up_known(call, show_consents_known);
    }
}

// ---- reading people ----

static bool read_reveal(ApiCall *base, bool *ret)
{
    FieldError err = {.field = ""};
    Str text = http_query(base->http, "reveal");
    *ret = str_eq(text, STR("true"));
    if (text.len == 0 || *ret || str_eq(text, STR("false"))) {
        return true;
    }
    (void)field_error(&err, "reveal", "must be true or false");
    api_answer_field(base, &err);
    return false;
}

static PeopleRead *read_new(Call *call, void (*done)(void *, size_t, Str, const Error *))
{
    PeopleRead *read = arena_zalloc(call->base->http->arena, sizeof *read);
    *read = (PeopleRead){
        .pool = call->api->pool,
        .keyring = call->api->keyring,
        .arena = call->base->http->arena,
        .tenant = str_from(call->base->tenant),
        .done = done,
        .ctx = call,
    };
    return read;
}

static void on_one_read(void *ctx, size_t count, Str people, const Error *err)
{
    Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else if (count == 0) {
        api_answer_missing(
            call->base,
            arena_printf(call->base->http->arena, "recipient '" STR_FMT "'", STR_ARG(call->id)));
    } else {
        http_respond(call->base->http, 200, "application/json", people);
    }
}

static void get_recipient(ApiCall *base)
{
    Call *call = call_new(base);
    PeopleRead *read = read_new(call, on_one_read);
    if (check_id(call) && read_reveal(base, &read->reveal)) {
        read->id = call->id;
        people_read(read);
    }
}

static void on_list_read(void *ctx, size_t count, Str people, const Error *err)
{
    (void)count;
    Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    Buf out;
    buf_init(&out, PEOPLE_JSON_MAX + 64);
    buf_cstr(&out, "{\"recipients\":[");
    buf_str(&out, people);
    buf_cstr(&out, "]}");
    answer_json(call, 200, &out);
    buf_done(&out);
}

// The hash knows the channel, so an address is looked for on each channel that it fits.
static bool hash_address(Call *call, Str address, PeopleRead *read, FieldError *err)
{
    Arena *arena = call->base->http->arena;
    uint8_t(*hashes)[ADDRESS_HASH_LEN] = arena_array(arena, PEOPLE_HASHES_MAX, sizeof *hashes);
    char reason[ADDRESS_REASON_SIZE] = "";
    for (Channel channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
        Str normal = STR_EMPTY;
        if (people_address_check(channel, address, arena, &normal, reason)) {
            address_hash(
                people_api_hash_key(call->api), str_from(call->base->tenant), channel, normal,
                hashes[read->hash_count++]);
        }
    }
    read->hashes = (const uint8_t(*)[ADDRESS_HASH_LEN])hashes;
    return read->hash_count > 0 || field_error(err, "address", "not an address of any channel");
}

static bool choose_people(Call *call, PeopleRead *read, FieldError *err)
{
    const HttpRequest *http = call->base->http;
    Str type = http_query(http, "identity_type");
    Str id = http_query(http, "identity_id");
    Str address = http_query(http, "address");
    bool by_identity = type.len > 0 || id.len > 0;
    if (by_identity == (address.len > 0)) {
        return field_error(err, "address", "give 'address', or 'identity_type' and 'identity_id'");
    }
    if (!by_identity) {
        return hash_address(call, address, read, err);
    }
    if (!identity_from_name(type, &read->identity)) {
        return field_error(err, "identity_type", "not guest, user, vendor or anonymous");
    }
    read->identity_id = id;
    return id.len > 0 || field_error(err, "identity_id", "required beside identity_type");
}

static void list_recipients(ApiCall *base)
{
    Call *call = call_new(base);
    FieldError err = {.field = ""};
    PeopleRead *read = read_new(call, on_list_read);
    if (!read_reveal(base, &read->reveal)) {
        return;
    }
    if (choose_people(call, read, &err)) {
        people_read(read);
    } else {
        api_answer_field(base, &err);
    }
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/recipients", post_recipient},
    {"GET", "/v1/recipients", list_recipients},
    {"POST", "/v1/recipients/import", people_api_import},
    {"PUT", "/v1/recipients/{}", put_recipient},
    {"GET", "/v1/recipients/{}", get_recipient},
    {"DELETE", "/v1/recipients/{}", delete_recipient},
    {"PUT", "/v1/recipients/{}/preferences", put_preferences},
    {"GET", "/v1/recipients/{}/preferences", get_preferences},
    {"PUT", "/v1/recipients/{}/consents", put_consents},
    {"GET", "/v1/recipients/{}/consents", get_consents},
    {"PUT", "/v1/recipients/{}/unsubscription", put_unsubscription},
};

void people_api_add(Api *api, PeopleApi *people)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], people);
}
