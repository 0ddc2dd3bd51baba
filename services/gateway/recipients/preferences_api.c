// SPDX-License-Identifier: Apache-2.0
// What a recipient wants and allows: preferences, consents, unsubscription.
#include "common/base/clock.h"
#include "services/gateway/recipients/recipient_call.h"
#include "services/gateway/recipients/recipients_read.h"

// ---- unsubscription ----

static bool take_unsubscription(RecipientCall *call, ApiBody *body)
{
    PersonFact *fact = recipient_call_add_fact(call, PERSON_UNSUBSCRIPTION, 1);
    if (!json_is_boolean(json_object_get(body->root, "unsubscribed"))) { // nor is null an answer
        (void)api_body_fail(body, "unsubscribed", "required: true or false");
    }
    return api_read_bool(body, "unsubscribed", &fact->unsubscribed);
}

static void known_found(RecipientCall *call, const PGresult *rows)
{
    if (recipient_call_is_known(call, rows)) {
        recipient_call_write(call);
    }
}

static void put_unsubscription(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    if (recipient_call_check_id(call) &&
        recipient_call_read_body(call, "unsubscription", take_unsubscription, base->http->body) &&
        recipient_call_may_write(call)) {
        recipient_call_look_up_known(call, known_found);
    }
}

// ---- preferences ----

static bool take_preferences(RecipientCall *call, ApiBody *body)
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

// The body is the whole set: new and changed ones are written, those that it lacks are cleared.
static void preferences_found(RecipientCall *call, const PGresult *rows)
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
            recipient_call_add_fact(call, PERSON_PREFERENCE, room)->preference = *wanted;
        }
    }
    for (int row = 0; row < db_rows(rows); row++) {
        if (!kept[row]) {
            PersonFact *fact = recipient_call_add_fact(call, PERSON_PREFERENCE_CLEARED, room);
            (void)category_from_name(db_get_text(rows, row, 0), &fact->preference.category);
            (void)channel_from_name(db_get_text(rows, row, 1), &fact->preference.channel);
        }
    }
    recipient_call_write(call);
}

static void look_up_entries(
    RecipientCall *call, const DbStatement *statement,
    void (*done)(RecipientCall *call, const PGresult *rows))
{
    DbTxn *txn = recipient_call_look_up(call, done);
    DbParams *p = db_txn_add(txn, statement, NULL);
    db_text(p, str_from(call->base->tenant));
    db_text(p, call->id);
    db_txn_submit(txn, recipient_call_looked_up, call);
}

static void preferences_known(RecipientCall *call, const PGresult *rows)
{
    if (recipient_call_is_known(call, rows)) {
        look_up_entries(call, &people_preferences_sql, preferences_found);
    }
}

static void put_preferences(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    if (recipient_call_check_id(call) &&
        recipient_call_read_body(call, "preferences", take_preferences, base->http->body) &&
        recipient_call_may_write(call)) {
        recipient_call_look_up_known(call, preferences_known);
    }
}

static void show_preferences(RecipientCall *call, const PGresult *rows)
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
    precondition_tag(call->base, call->version);
    recipient_call_answer(call, 200, &out);
    buf_done(&out);
}

static void show_preferences_known(RecipientCall *call, const PGresult *rows)
{
    if (recipient_call_is_known(call, rows)) {
        look_up_entries(call, &people_preferences_sql, show_preferences);
    }
}

static void get_preferences(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    if (recipient_call_check_id(call)) {
        recipient_call_look_up_known(call, show_preferences_known);
    }
}

// ---- consents ----

static bool take_consents(RecipientCall *call, ApiBody *body)
{
    return person_consents_read(
               body, call->base->http->received_at_us, &call->consents, &call->consent_count,
               &call->given) &&
           (call->given || api_body_fail(body, "consents", "required: an array"));
}

// Those that the body does not name stay: a consent is withdrawn by `granted` false alone.
static void put_consents(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    if (!recipient_call_check_id(call) ||
        !recipient_call_read_body(call, "consents", take_consents, base->http->body) ||
        !recipient_call_may_write(call)) {
        return;
    }
    for (size_t i = 0; i < call->consent_count; i++) {
        recipient_call_add_fact(call, PERSON_CONSENT, call->consent_count)->consent =
            call->consents[i];
    }
    recipient_call_look_up_known(call, known_found);
}

static void show_consents(RecipientCall *call, const PGresult *rows)
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
    precondition_tag(call->base, call->version);
    recipient_call_answer(call, 200, &out);
    buf_done(&out);
}

static void show_consents_known(RecipientCall *call, const PGresult *rows)
{
    if (recipient_call_is_known(call, rows)) {
        look_up_entries(call, &people_consents_sql, show_consents);
    }
}

static void get_consents(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    if (recipient_call_check_id(call)) {
        recipient_call_look_up_known(call, show_consents_known);
    }
}

const ApiRoute preferences_routes[] = {
    {"PUT", "/v1/recipients/{}/preferences", SCOPE_RECIPIENTS_WRITE, put_preferences, NULL, true},
    {"GET", "/v1/recipients/{}/preferences", SCOPE_RECIPIENTS_READ, get_preferences, NULL, false},
    {"PUT", "/v1/recipients/{}/consents", SCOPE_RECIPIENTS_WRITE, put_consents, NULL, true},
    {"GET", "/v1/recipients/{}/consents", SCOPE_RECIPIENTS_READ, get_consents, NULL, false},
    {"PUT", "/v1/recipients/{}/unsubscription", SCOPE_RECIPIENTS_WRITE, put_unsubscription, NULL,
     true},
};
const size_t preferences_route_count = sizeof preferences_routes / sizeof preferences_routes[0];
