// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/preferences/preferences_public.h"

#include <string.h>

#include "common/api/config_read.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/events/suppression_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/config/config_store.h"
#include "common/recipients/people_sql.h"
#include "services/gateway/preferences/preference_page.h"
#include "services/gateway/recipients/recipients_read.h"
#include "services/gateway/recipients/recipients_write.h"
#include "services/gateway/suppressions/suppression_note.h"

enum { PAGE_MAX = 64 * 1024 };

static const Str PATH = {"/v1/preferences/", 16};
static char SAID_BY[] = "preferences";

static const DbStatement RECORD = {
    "preferences_record",
    "SELECT r.unsubscribed_at IS NOT NULL, coalesce((SELECT string_agg(DISTINCT a.channel, ' ')"
    "  FROM people.addresses a WHERE a.tenant_id = $1::text AND a.recipient_id = $2::text), '')"
    " FROM people.recipients r WHERE r.tenant_id = $1::text AND r.recipient_id = $2::text"
    "  AND r.sequence > 0"};

// One call in handling; in the request's arena.
typedef struct Visit {
    PreferencesPublic *preferences;
    HttpRequest *http;
    OptOut what;
    PreferenceState state;
    PreferenceChoice choices[CHOICES_MAX];
    size_t count;
    PreferencePlan plan;
    RecipientsWrite write;
    size_t waiting; // stores of suppressions
    Error failed;
} Visit;

// A category's opt-out that is ended; in the request's arena.
typedef struct Release {
    Visit *visit;
    char *subject;
    Stentor__V1__Suppression *entry;
    uint64_t replaces;
} Release;

bool preferences_is_path(Str path)
{
    return str_starts(path, PATH);
}

// ---- answers ----

static bool wants_json(const HttpRequest *http)
{
    return str_contains_nocase(http_header(http, "Accept"), STR("application/json")) ||
           str_contains_nocase(http_header(http, "Content-Type"), STR("application/json"));
}

static void answer_choices(Visit *visit, bool stored)
{
    Buf out;
    HttpRequest *http = visit->http;
    bool json = wants_json(http);
    buf_init(&out, PAGE_MAX);
    if (json) {
        preference_page_json(&out, visit->choices, visit->count);
    } else {
        preference_page_html(&out, visit->choices, visit->count, stored);
        http_response_header(
            http, "Content-Security-Policy",
            STR("default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                "frame-ancestors 'none'"));
    }
    metric_add(stored ? visit->preferences->stored : visit->preferences->shown, 1);
    http_response_header(http, "Referrer-Policy", STR("no-referrer"));
    http_response_header(http, "X-Robots-Tag", STR("noindex"));
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_respond(http, 200, json ? "application/json" : "text/html; charset=utf-8", buf_view(&out));
    buf_done(&out);
}

static void answer_unavailable(PreferencesPublic *preferences, HttpRequest *http, const Error *err)
{
    metric_add(preferences->refused, 1);
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "a recipient's choices could not be shown or stored",
            log_text("request", http->id), log_error(err));
    }
    http_response_header(http, "Retry-After", STR("5"));
    http_problem(
        http, 503, "unavailable", "Temporarily unavailable", NULL,
        "your choices could not be shown or stored; please try again in a moment");
}

static bool answer_bad_link(PreferencesPublic *preferences, HttpRequest *http)
{
    metric_add(preferences->refused, 1);
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_problem(
        http, 404, "not-found", "This link does not work", NULL,
        "it is incomplete or too old; please use the link of a newer mail");
    return false;
}

// ---- storing the address's opt-outs ----

static void part_stored(Visit *visit, const Error *err)
{
    if (err != NULL) {
        visit->failed = *err;
    }
    if (--visit->waiting > 0) {
        return;
    }
    if (visit->failed.kind != ERROR_NONE) {
        answer_unavailable(visit->preferences, visit->http, &visit->failed);
    } else {
        answer_choices(visit, true);
    }
}

static void on_part_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence, (void)duplicate;
    part_stored(ctx, err);
}

static void store_opt_out(Visit *visit, Category category)
{
    SuppressionSpec spec = {
        .tenant = visit->what.tenant,
        .channel = CHANNEL_EMAIL,
        .category = category,
        .hash = visit->what.address_hash,
        .reason = SUPPRESSION_OPT_OUT,
        .at_us = visit->http->received_at_us,
        .by = str_from(SAID_BY),
        .notification_id = visit->what.notification_id,
    };
    Arena *arena = visit->http->arena;
    visit->waiting++;
    suppression_store(
        visit->preferences->bus, visit->preferences->known, suppression_make(&spec, arena),
        STR_EMPTY, arena, on_part_stored, visit);
}

static ConfigVerdict leave(void *ctx, uint64_t there)
{
    (void)ctx, (void)there;
    return CONFIG_LEAVE; // another changed it at this moment: its word stands
}

static void store_release(Release *release)
{
    Visit *visit = release->visit;
    Arena *arena = visit->http->arena;
    Error err = {0};
    ConfigStore store = {
        .replaces = release->replaces,
        .decide = leave,
        .done = on_part_stored,
        .ctx = visit,
    };
    if (suppression_event(release->entry, arena, &store.out, &err)) {
        config_store(visit->preferences->bus, &store, arena);
    } else {
        part_stored(visit, &err);
    }
}

static void on_release_noted(void *ctx, const Error *err, const AuditHead *head)
{
    (void)head;
    Release *release = ctx;
    if (err != NULL) {
        part_stored(release->visit, err);
    } else {
        store_release(release);
    }
}

static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Release *release = ctx;
    Visit *visit = release->visit;
    Error own = {0};
    Stentor__V1__Suppression *entry =
        err != NULL || payload.len == 0
            ? NULL
            : (Stentor__V1__Suppression *)event_unpack(
                  &stentor__v1__suppression__descriptor, payload, visit->http->arena, &own);
    bool ours = entry != NULL && entry->released_at_us == 0 &&
                entry->reason == STENTOR__V1__SUPPRESSION_REASON__SUPPRESSION_REASON_OPT_OUT;
    if (err != NULL || own.kind != ERROR_NONE || !ours) {
        part_stored(visit, err != NULL ? err : own.kind != ERROR_NONE ? &own : NULL);
        return;
    }
    release->entry = entry;
    release->replaces = sequence;
    entry->released_at_us = visit->http->received_at_us;
    entry->released_by = SAID_BY;
    suppression_note_release(visit->preferences->audit, entry, on_release_noted, release);
}

static void release_opt_out(Visit *visit, Category category)
{
    Arena *arena = visit->http->arena;
    char key[SUPPRESSION_KEY_SIZE];
    Release *release = arena_zalloc(arena, sizeof *release);
    *release = (Release){.visit = visit, .subject = arena_alloc(arena, SUBJECT_SIZE)};
    suppression_key(key, CHANNEL_EMAIL, category, visit->what.address_hash);
    subject_config(release->subject, "suppression", visit->what.tenant, str_from(key));
    visit->waiting++;
    config_read(visit->preferences->bus, release->subject, arena, on_entry_read, release);
}

// The new ones before the old one of every category ends, so that nothing is open in between: a
// repeat after a kill stores what is missing.
static void store_address(Visit *visit)
{
    visit->waiting = 1; // ours, so that no answer comes before all have begun
    for (int category = CATEGORY_NONE; category < CATEGORY_COUNT; category++) {
        if (visit->plan.suppress[category]) {
            store_opt_out(visit, (Category)category);
        }
    }
    for (int category = CATEGORY_COUNT - 1; category >= CATEGORY_NONE; category--) {
        if (visit->plan.release[category]) {
            release_opt_out(visit, (Category)category);
        }
    }
    part_stored(visit, NULL);
}

// ---- storing preferences ----

static void on_facts_written(void *ctx, const Error *err)
{
    Visit *visit = ctx;
    const Error *failed = err;
    for (size_t i = 0; failed == NULL && i < visit->plan.fact_count; i++) {
        failed = visit->plan.facts[i].error.kind != ERROR_NONE ? &visit->plan.facts[i].error : NULL;
    }
    if (failed != NULL) {
        answer_unavailable(visit->preferences, visit->http, failed);
    } else {
        store_address(visit);
    }
}

static void store(Visit *visit)
{
    PreferencesPublic *preferences = visit->preferences;
    if (visit->plan.fact_count == 0) {
        store_address(visit);
        return;
    }
    for (size_t i = 0; i < visit->plan.fact_count; i++) {
        visit->plan.facts[i].recipient_id = visit->what.recipient_id;
    }
    visit->write = (RecipientsWrite){
        .bus = preferences->bus,
        .keyring = preferences->keyring,
        .wait = preferences->wait,
        .arena = visit->http->arena,
        .tenant = visit->what.tenant,
        .said_by = str_from(SAID_BY),
        .facts = visit->plan.facts,
        .count = visit->plan.fact_count,
        .done = on_facts_written,
        .ctx = visit,
    };
    recipients_write(&visit->write);
}

// ---- what stands ----

static void take_opt_outs(Visit *visit)
{
    const OptOut *what = &visit->what;
    for (int category = CATEGORY_NONE; category < CATEGORY_COUNT; category++) {
        visit->state.opted_out[category] =
            suppressions_of_entry(
                visit->preferences->known, what->tenant, CHANNEL_EMAIL, (Category)category,
                what->address_hash, visit->http->received_at_us) == SUPPRESSION_OPT_OUT;
    }
}

static void take_record(Visit *visit, const PGresult *rows)
{
    if (db_rows(rows) == 0) {
        return;
    }
    Str rest = db_get_text(rows, 0, 1);
    Str name;
    visit->state.has_record = true;
    visit->state.unsubscribed = db_get_int(rows, 0, 0) != 0;
    while (rest.len > 0) {
        ptrdiff_t end = str_find(rest, ' ');
        name = end < 0 ? rest : str_slice(rest, 0, (size_t)end);
        rest = end < 0 ? STR_EMPTY : str_slice(rest, (size_t)end + 1, rest.len);
        Channel channel = CHANNEL_NONE;
        (void)channel_from_name(name, &channel);
        visit->state.channels[channel] = true;
    }
}

static void take_entries(Visit *visit, const PGresult *rows)
{
    size_t count = (size_t)db_rows(rows);
    PersonPreference *entries = arena_array(visit->http->arena, count + 1, sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        int row = (int)i;
        (void)category_from_name(db_get_text(rows, row, 0), &entries[i].category);
        (void)channel_from_name(db_get_text(rows, row, 1), &entries[i].channel);
        entries[i].off = db_get_int(rows, row, 2) != 0;
        (void)frequency_from_name(db_get_text(rows, row, 3), &entries[i].frequency);
        entries[i].at_minute = (uint32_t)db_get_int(rows, row, 4);
        entries[i].on_weekday = (uint32_t)db_get_int(rows, row, 5);
    }
    visit->state.entries = entries;
    visit->state.entry_count = count;
}

static void answer_malformed(Visit *visit, const Problem *problem)
{
    metric_add(visit->preferences->refused, 1);
    http_problem(
        visit->http, problem->status, problem->slug, problem->title,
        problem->field[0] == '\0' ? NULL : problem->field, "%s", problem->detail);
}

// false: answered.
static bool read_wanted(Visit *visit)
{
    HttpRequest *http = visit->http;
    if (!str_contains_nocase(http_header(http, "Content-Type"), STR("application/json"))) {
        Problem problem = {
            .status = 400,
            .slug = "invalid-body",
            .title = "Not a form of this page",
            .detail = "expected the page's own form, or JSON with Content-Type application/json",
        };
        bool ok = preference_form_read(http->body, visit->choices, visit->count);
        if (!ok) {
            answer_malformed(visit, &problem);
        }
        return ok;
    }
    ApiBody body = {0};
    bool ok = api_body_parse(&body, http->body, http->arena) &&
              preference_json_read(&body, visit->choices, visit->count);
    if (!ok) {
        answer_malformed(visit, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void go_on(Visit *visit)
{
    take_opt_outs(visit);
    visit->count = preference_choices(&visit->state, visit->choices);
    if (!str_eq(visit->http->method, STR("POST"))) {
        answer_choices(visit, false);
        return;
    }
    if (read_wanted(visit)) {
        preference_plan(&visit->state, visit->choices, visit->count, &visit->plan);
        store(visit);
    }
}

static void on_looked_up(void *ctx, DbTxn *txn, const Error *err)
{
    Visit *visit = ctx;
    if (err != NULL) {
        answer_unavailable(visit->preferences, visit->http, err);
        return;
    }
    take_record(visit, db_txn_result(txn, 1));
    take_entries(visit, db_txn_result(txn, 2));
    go_on(visit);
}

static void look_up(Visit *visit)
{
    DbTxn *txn = db_txn_new(visit->preferences->pool);
    db_txn_tenant(txn, visit->what.tenant);
    people_sql_replan(txn);
    const DbStatement *const statements[] = {&RECORD, &people_preferences_sql};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        DbParams *p = db_txn_add(txn, statements[i], NULL);
        db_text(p, visit->what.tenant);
        db_text(p, visit->what.recipient_id);
    }
    db_txn_submit(txn, on_looked_up, visit);
}

// ---- the endpoint ----

bool preferences_public_admit(PreferencesPublic *preferences, HttpRequest *http)
{
    bool post = str_eq(http->method, STR("POST"));
    if (!post && !str_eq(http->method, STR("GET")) && !str_eq(http->method, STR("HEAD"))) {
        http_response_header(http, "Allow", STR("GET, HEAD, POST"));
        http_problem(
            http, 405, "method-not-allowed", "Method not allowed", NULL, "use GET or POST");
        return false;
    }
    Visit *visit = arena_zalloc(http->arena, sizeof *visit);
    visit->preferences = preferences;
    visit->http = http;
    OptOut *what = &visit->what;
    Str token = str_slice(http->path, PATH.len, http->path.len);
    if (!opt_out_verify(&preferences->key, token, http->received_at_us, http->arena, what, NULL) ||
        what->channel != CHANNEL_EMAIL) {
        return answer_bad_link(preferences, http);
    }
    LinkOwner owner = {
        .tenant = what->tenant,
        .notification_id = what->notification_id,
        .recipient_id = what->recipient_id,
        .who = str_of(what->address_hash, sizeof what->address_hash),
        .issued_at_us = what->issued_at_us,
    };
    if (link_is_revoked(preferences->revoked, &owner)) {
        return answer_bad_link(preferences, http);
    }
    http_request_known(http);
    http->body_max = post ? PREFERENCE_BODY_MAX : 0;
    http->admitted = visit;
    return true;
}

void preferences_public_handle(PreferencesPublic *preferences, HttpRequest *http)
{
    Visit *visit = http->admitted;
    bool writes = str_eq(http->method, STR("POST"));
    if (preferences->unready(preferences->unready_ctx) != NULL ||
        (writes && recipients_write_unready(preferences->bus) != NULL)) {
        answer_unavailable(preferences, http, NULL);
    } else if (visit->what.recipient_id.len == 0) {
        go_on(visit);
    } else {
        look_up(visit);
    }
}

void preferences_public_init(
    PreferencesPublic *preferences, const MasterKey *master, Metrics *metrics)
{
    // clang-format off
    opt_out_key(master, &preferences->key);
    preferences->shown   = metrics_counter(metrics, "stentor_gateway_preference_pages_total", "answer=\"shown\"", "Calls of preference pages");
    preferences->stored  = metrics_counter(metrics, "stentor_gateway_preference_pages_total", "answer=\"stored\"", "Calls of preference pages");
    preferences->refused = metrics_counter(metrics, "stentor_gateway_preference_pages_total", "answer=\"refused\"", "Calls of preference pages");
    // clang-format on
}
