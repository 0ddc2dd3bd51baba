// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/gate/gate_run.h"
#include "stentor/v1/config.pb-c.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define ALICE "rcp_01ARZ3NDEKTSV4RRFFQ69G5FA0"
#define BOB "rcp_01ARZ3NDEKTSV4RRFFQ69G5FA1"
#define NOON INT64_C(1777636800000000) // 2026-05-01T12:00:00Z
#define HOUR_US INT64_C(3600000000)

enum { NOTICES_MAX = 64 };

typedef struct Scene {
    uv_loop_t loop;
    PGconn *admin;
    DbPool *pool;
    Catalog *catalog;
    Suppressions *suppressions;
    Arena *arena;
    Gate gate;
    GateRun run;
    Notice notices[2 * NOTICES_MAX];
    int64_t now_us;
    bool done;
    Error err;
    bool closed;
} Scene;

static int set_up(void **state)
{
    Scene *s = calloc(1, sizeof *s);
    uv_loop_init(&s->loop);
    s->admin = admin_connect();
    admin_exec(
        s->admin, "TRUNCATE people.recipients, people.addresses, people.preferences, "
                  "people.consents, ingest.gate_counters");
    char url[512];
    url_with("&user=stentor_ingest", url, sizeof url);
    s->pool = db_pool_new(
        &s->loop, &(DbPoolOptions){.url = url, .application_name = "gate-test", .connections = 2});
    s->catalog = catalog_new();
    s->suppressions = suppressions_new();
    s->arena = arena_new(0);
    s->now_us = NOON;
    s->gate = (Gate){
        .pool = s->pool,
        .catalog = s->catalog,
        .suppressions = s->suppressions,
        .hash_key = STR("0123456789abcdef0123456789abcdef")};
    *state = s;
    return 0;
}

static void on_scene_closed(void *ctx)
{
    Scene *s = ctx;
    s->closed = true;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    db_pool_close(s->pool, on_scene_closed, s);
    assert_true(run_for(&s->loop, &s->closed, true, WAIT_MS));
    PQfinish(s->admin);
    catalog_free(s->catalog);
    suppressions_free(s->suppressions);
    arena_free(s->arena);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    free(s);
    return 0;
}

// ---- people and tenants ----

static void add_person(Scene *s, const char *id, const char *columns, const char *values)
{
    admin_exec(
        s->admin,
        arena_printf(
            s->arena,
            "INSERT INTO people.recipients (tenant_id, recipient_id, updated_at, sequence%s%s) "
            "VALUES ('acme', '%s', now(), 1%s%s)",
            columns[0] == '\0' ? "" : ", ", columns, id, values[0] == '\0' ? "" : ", ", values));
}

static void add_address(
    Scene *s, const char *id, const char *channel, int mark, const char *status, bool primary)
{
    admin_exec(
        s->admin,
        arena_printf(
            s->arena,
            "INSERT INTO people.addresses (tenant_id, recipient_id, channel, address_hash, "
            "address, status, verified, is_primary, position) VALUES ('acme', '%s', '%s', "
            "decode(repeat('%02x', 32), 'hex'), '\\x01%02x', '%s', true, %s, %d)",
            id, channel, mark, mark, status, primary ? "true" : "false", mark));
}

static void say(Scene *s, const char *table, const char *values)
{
    const char *columns =
        strcmp(table, "preferences") == 0
            ? "category, channel, is_off, frequency, at_minute, on_weekday, is_cleared, updated_at"
            : "category, channel, is_granted, given_at";
    admin_exec(
        s->admin, arena_printf(
                      s->arena,
                      "INSERT INTO people.%s (tenant_id, recipient_id, sequence, %s) "
                      "VALUES ('acme', '" ALICE "', 1, %s, now())",
                      table, columns, values));
}

static void put_tenant(Scene *s, Stentor__V1__Tenant *tenant)
{
    tenant->tenant = arena_cstr(s->arena, STR("acme"));
    Str bytes = STR_EMPTY;
    Error err = {0};
    assert_true(event_pack(&tenant->base, s->arena, &bytes, NULL));
    if (!catalog_tenant_changed(s->catalog, STR("acme"), bytes, &err)) {
        fail_msg("%s", err.text);
    }
}

// ---- the run ----

static void on_gate_decided(void *ctx, const Error *err)
{
    Scene *s = ctx;
    assert_false(s->done);
    s->done = true;
    s->err = err == NULL ? (Error){0} : *err;
}

static Notice *ask(Scene *s, const char *recipient, const char *to)
{
    Notice *notice = &s->notices[s->run.count++];
    char *id = arena_alloc(s->arena, ID_SIZE);
    id_new("ntf_", NOON, id);
    *notice = (Notice){
        .request =
            {
                .to = str_from(to),
                .recipient_id = str_from(recipient),
                .channel = CHANNEL_EMAIL,
                .category = CATEGORY_BILLING,
                .priority = PRIORITY_NORMAL,
                .template_key = STR("welcome"),
            },
        .tenant = STR("acme"),
        .id = id,
    };
    return notice;
}

static void start(Scene *s)
{
    s->done = false;
    s->run.gate = &s->gate;
    s->run.arena = s->arena;
    s->run.notices = s->notices;
    s->run.cap = 2 * NOTICES_MAX;
    s->run.now_us = s->now_us;
    s->run.done = on_gate_decided;
    s->run.ctx = s;
    gate_run(&s->run);
}

static void decide(Scene *s)
{
    start(s);
    if (!run_for(&s->loop, &s->done, true, WAIT_MS)) {
        fail_msg("no decision");
    }
    if (s->err.kind != ERROR_NONE) {
        fail_msg("%s", s->err.text);
    }
}

static void forget(Scene *s)
{
    memset(&s->run, 0, sizeof s->run);
}

static void expect(const Notice *notice, GateVerdict verdict, GateReason reason)
{
    assert_int_equal(notice->decision.verdict, verdict);
    assert_int_equal(notice->decision.reason, reason);
}

// ---- tests ----

static void without_recipients_and_limits_nothing_is_asked(void **state)
{
    Scene *s = *state;
    Notice *inline_one = ask(s, "", "alice@example.com");
    inline_one->request.category = CATEGORY_TRANSACTIONAL; // which no recipient may refuse
    start(s);
    assert_true(s->done); // at once
    expect(inline_one, GATE_GO, GATE_NO_REASON);
    assert_true(inline_one->has_address);
    assert_int_equal(inline_one->sealed.len, 0);
}

// A group waits for its keys after the gate: what the gate took must not die with a tenant's entry.
static void a_tenants_locale_outlives_a_change_of_its_settings(void **state)
{
    Scene *s = *state;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.default_locale = arena_cstr(s->arena, STR("pt-BR"));
    put_tenant(s, &tenant);
    Notice *mail = ask(s, "", "alice@example.com");
    mail->request.category = CATEGORY_TRANSACTIONAL;
    start(s);
    assert_true(s->done);
    tenant.default_locale = arena_cstr(s->arena, STR("de-DE"));
    put_tenant(s, &tenant);
    assert_true(str_eq(mail->request.locale, STR("pt-BR")));
}

static void a_recipients_primary_active_address_is_taken(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "locale", "'de-DE'");
    add_address(s, ALICE, "email", 1, "active", false);
    add_address(s, ALICE, "email", 2, "revoked", true);
    add_address(s, ALICE, "email", 3, "active", true);
    add_address(s, ALICE, "sms", 4, "suppressed", true);
    Notice *mail = ask(s, ALICE, "");
    Notice *given = ask(s, ALICE, "other@example.com");
    Notice *sms = ask(s, ALICE, "");
    sms->request.channel = CHANNEL_SMS;
    Notice *stranger = ask(s, BOB, "");
    Notice *named = ask(s, BOB, "bob@example.com");
    named->request.locale = STR("fr");
    decide(s);
    expect(mail, GATE_GO, GATE_NO_REASON);
    assert_int_equal(mail->hash[0], 3);
    assert_memory_equal(mail->sealed.ptr, "\x01\x03", 2);
    assert_true(str_eq(mail->request.locale, STR("de-DE")));
    expect(given, GATE_GO, GATE_NO_REASON);
    assert_int_equal(given->sealed.len, 0); // what the caller gave wins
    expect(sms, GATE_SUPPRESS, GATE_NO_ADDRESS);
    expect(stranger, GATE_SUPPRESS, GATE_NO_ADDRESS);
    expect(named, GATE_GO, GATE_NO_REASON); // no recipient known, but an address
    assert_true(str_eq(named->request.locale, STR("fr")));
}

static void what_a_person_said_is_honoured(void **state)
{
    Scene *s = *state;
    add_person(
        s, ALICE, "time_zone, quiet_start, quiet_end", "'Asia/Tokyo', 1200, 420"); // 21:00 there
    add_address(s, ALICE, "email", 1, "active", true);
    say(s, "preferences", "'social', 'any', true, 'immediate', 0, 0, false");
    say(s, "preferences", "'academic', 'email', true, 'immediate', 0, 0, true"); // taken back
    say(s, "preferences", "'reminder', 'any', false, 'daily', 600, 0, false");
    say(s, "consents", "'marketing', 'any', false");
    Notice *night = ask(s, ALICE, "");
    Notice *off = ask(s, ALICE, "");
    off->request.category = CATEGORY_SOCIAL;
    Notice *cleared = ask(s, ALICE, "");
    cleared->request.category = CATEGORY_ACADEMIC;
    Notice *refused = ask(s, ALICE, "");
    refused->request.category = CATEGORY_MARKETING;
    Notice *urgent = ask(s, ALICE, "");
    urgent->request.priority = PRIORITY_CRITICAL;
    Notice *gathered = ask(s, ALICE, "");
    gathered->request.category = CATEGORY_REMINDER;
    decide(s);
    expect(night, GATE_DEFER, GATE_QUIET_HOURS);
    assert_int_equal(night->decision.until_us, NOON + 10 * HOUR_US); // seven there
    expect(off, GATE_SUPPRESS, GATE_PREFERENCE);
    expect(cleared, GATE_DEFER, GATE_QUIET_HOURS);
    expect(refused, GATE_SUPPRESS, GATE_NO_CONSENT);
    expect(urgent, GATE_GO, GATE_NO_REASON);
    expect(gathered, GATE_DEFER, GATE_QUIET_HOURS); // no template to show a digest with
    assert_string_equal(gathered->trace, "T+S+U+F+(4/0)A+D!(daily)Q>(r2000-0700)");
    assert_string_equal(refused->trace, "T+S+U+C-(5/0)");
}

static void a_digest_is_gathered_where_there_is_a_template_for_it(void **state)
{
    Scene *s = *state;
    Stentor__V1__TemplateVersion digest;
    stentor__v1__template_version__init(&digest);
    digest.tenant = arena_cstr(s->arena, STR("acme"));
    digest.key = arena_cstr(s->arena, STR("digest-billing"));
    digest.version = arena_cstr(s->arena, STR("3.1.0"));
    digest.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&digest.base, s->arena, &bytes, NULL));
    assert_true(catalog_template_changed(
        s->catalog, STR("acme"), STR("digest-billing.3_1_0"), bytes, NULL));
    add_person(s, ALICE, "", "");
    add_address(s, ALICE, "email", 1, "active", true);
    say(s, "preferences", "'any', 'any', false, 'hourly', 0, 0, false");
    Notice *notice = ask(s, ALICE, "");
    decide(s);
    expect(notice, GATE_GATHER, GATE_DIGEST);
    assert_int_equal(notice->decision.until_us, NOON + HOUR_US);
    assert_true(str_eq(notice->digest.template_key, STR("digest-billing")));
    assert_true(str_eq(notice->digest.template_version, STR("3.1.0")));
}

static void suppressed_addresses_are_not_written_to(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "", "");
    add_address(s, ALICE, "email", 9, "active", true);
    uint8_t hash[ADDRESS_HASH_LEN];
    memset(hash, 9, sizeof hash);
    suppressions_put(
        s->suppressions, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, hash, SUPPRESSION_HARD_BOUNCE,
        0);
    address_hash(s->gate.hash_key, STR("acme"), CHANNEL_EMAIL, STR("carol@example.com"), hash);
    suppressions_put(
        s->suppressions, STR("acme"), CHANNEL_EMAIL, CATEGORY_BILLING, hash, SUPPRESSION_OPT_OUT,
        0);
    address_hash(s->gate.hash_key, STR("platform"), CHANNEL_EMAIL, STR("spam@example.com"), hash);
    suppressions_put(
        s->suppressions, STR("platform"), CHANNEL_EMAIL, CATEGORY_NONE, hash,
        SUPPRESSION_COMPLIANCE, 0);
    Notice *stored = ask(s, ALICE, "");
    Notice *inline_one = ask(s, "", "carol@example.com");
    Notice *other_category = ask(s, "", "carol@example.com");
    other_category->request.category = CATEGORY_SOCIAL;
    Notice *platforms = ask(s, "", "spam@example.com");
    Notice *free_one = ask(s, "", "dave@example.com");
    decide(s);
    expect(stored, GATE_SUPPRESS, GATE_HARD_BOUNCE);
    expect(inline_one, GATE_SUPPRESS, GATE_OPT_OUT);
    expect(other_category, GATE_GO, GATE_NO_REASON);
    expect(platforms, GATE_SUPPRESS, GATE_COMPLIANCE);
    expect(free_one, GATE_GO, GATE_NO_REASON);
    assert_string_equal(stored->trace, "T+S-(tenant)");
    assert_string_equal(platforms->trace, "T+S-(platform)");
    assert_string_equal(free_one->trace, "T+S+A+");
}

// ---- whose an address is ----

static void own(Scene *s, const char *id, Channel channel, const char *address, const char *status)
{
    uint8_t hash[ADDRESS_HASH_LEN];
    char hex[2 * ADDRESS_HASH_LEN + 1];
    address_hash(s->gate.hash_key, STR("acme"), channel, str_from(address), hash);
    hex_encode(hash, sizeof hash, hex);
    admin_exec(
        s->admin, arena_printf(
                      s->arena,
                      "INSERT INTO people.addresses (tenant_id, recipient_id, channel, "
                      "address_hash, address, status, verified, is_primary, position) VALUES "
                      "('acme', '%s', '%s', decode('%s', 'hex'), '\\x01', '%s', true, true, 0)",
                      id, channel_name(channel), hex, status));
}

static Notice *market(Scene *s, const char *recipient, const char *to, bool consent)
{
    Notice *notice = ask(s, recipient, to);
    notice->request.category = CATEGORY_MARKETING;
    notice->request.consent_source = consent ? STR("form") : STR_EMPTY;
    return notice;
}

static void an_inline_address_of_a_recipient_is_that_recipient(void **state)
{
    Scene *s = *state;
    add_person(
        s, ALICE, "time_zone, quiet_start, quiet_end, locale", "'Asia/Tokyo', 1200, 420, 'ja'");
    own(s, ALICE, CHANNEL_EMAIL, "alice@example.com", "active");
    say(s, "consents", "'marketing', 'any', false");
    say(s, "preferences", "'social', 'any', true, 'immediate', 0, 0, false");
    Notice *refused = market(s, "", "alice@example.com", true);
    Notice *off = ask(s, "", "alice@example.com");
    off->request.category = CATEGORY_SOCIAL;
    Notice *night = ask(s, "", "alice@example.com");
    Notice *receipt = ask(s, "", "alice@example.com");
    receipt->request.category = CATEGORY_TRANSACTIONAL;
    Notice *other_tenants = ask(s, "", "alice@example.com");
    other_tenants->tenant = STR("globex");
    decide(s);
    expect(refused, GATE_SUPPRESS, GATE_NO_CONSENT);
    expect(off, GATE_SUPPRESS, GATE_PREFERENCE);
    expect(night, GATE_DEFER, GATE_QUIET_HOURS);
    assert_true(str_eq(night->request.recipient_id, STR(ALICE)));
    assert_true(str_eq(night->request.locale, STR("ja")));
    assert_int_equal(night->sealed.len, 0); // still the address that the caller gave
    expect(receipt, GATE_GO, GATE_NO_REASON);
    assert_int_equal(receipt->request.recipient_id.len, 0);
    expect(other_tenants, GATE_GO, GATE_NO_REASON);
}

static void marketing_to_an_address_without_a_recipient_needs_the_callers_word(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "unsubscribed_at", "now()");
    own(s, ALICE, CHANNEL_EMAIL, "old@example.com", "revoked");
    Notice *without = market(s, "", "new@example.com", false);
    Notice *with = market(s, "", "new@example.com", true);
    Notice *stranger = market(s, BOB, "new@example.com", false);
    Notice *former = market(s, "", "old@example.com", true); // no longer Alice's
    decide(s);
    expect(without, GATE_SUPPRESS, GATE_NO_CONSENT);
    expect(with, GATE_GO, GATE_NO_REASON);
    expect(stranger, GATE_SUPPRESS, GATE_NO_CONSENT);
    expect(former, GATE_GO, GATE_NO_REASON);
}

// One address of a family: no one's hours count, but one refusal is enough.
static void of_several_owners_one_refusal_is_enough(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "quiet_start, quiet_end", "0, 1439");
    add_person(s, BOB, "unsubscribed_at", "now()");
    own(s, ALICE, CHANNEL_EMAIL, "family@example.com", "active");
    Notice *alone = ask(s, "", "family@example.com");
    decide(s);
    expect(alone, GATE_DEFER, GATE_QUIET_HOURS);
    own(s, BOB, CHANNEL_EMAIL, "family@example.com", "suppressed");
    forget(s);
    Notice *inline_one = ask(s, "", "family@example.com");
    Notice *named = ask(s, ALICE, "family@example.com");
    Notice *urgent = ask(s, "", "family@example.com");
    urgent->request.priority = PRIORITY_CRITICAL;
    decide(s);
    expect(inline_one, GATE_SUPPRESS, GATE_UNSUBSCRIBED);
    expect(named, GATE_SUPPRESS, GATE_UNSUBSCRIBED);
    expect(urgent, GATE_GO, GATE_NO_REASON);
    assert_int_equal(urgent->request.recipient_id.len, 0);
}

static void a_number_is_its_owners_on_every_channel_and_under_every_hash_key(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "unsubscribed_at", "now()");
    own(s, ALICE, CHANNEL_SMS, "+491512345678", "active");
    own(s, ALICE, CHANNEL_EMAIL, "alice@example.com", "active");
    Notice *chat = ask(s, "", "+491512345678");
    chat->request.channel = CHANNEL_WHATSAPP;
    s->gate.hash_keys =
        (HashKeys){.keys = {STR("fedcba9876543210fedcba9876543210"), s->gate.hash_key}, .count = 2};
    s->gate.hash_key = s->gate.hash_keys.keys[0];
    Notice *mail = ask(s, "", "alice@example.com");
    decide(s);
    expect(chat, GATE_SUPPRESS, GATE_UNSUBSCRIBED);
    expect(mail, GATE_SUPPRESS, GATE_UNSUBSCRIBED);
}

static void a_minors_inline_address_goes_to_the_guardian(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "minor, guardian_id, guardian_routing", "true, '" BOB "', 'redirect'");
    add_person(s, BOB, "", "");
    own(s, ALICE, CHANNEL_EMAIL, "child@example.com", "active");
    add_address(s, BOB, "email", 2, "active", true);
    Notice *notice = ask(s, "", "child@example.com");
    decide(s);
    expect(notice, GATE_GO, GATE_NO_REASON);
    assert_true(str_eq(notice->request.recipient_id, STR(BOB)));
    assert_int_equal(notice->hash[0], 2);
}

// More than there is room for at first, each the owner of one address.
static void every_one_of_many_owners_counts(void **state)
{
    Scene *s = *state;
    for (int i = 0; i < 60; i++) {
        char *id = arena_printf(s->arena, "rcp_01ARZ3NDEKTSV4RRFFQ69G6F%02d", i);
        add_person(s, id, i == 59 ? "unsubscribed_at" : "", i == 59 ? "now()" : "");
        own(s, id, CHANNEL_EMAIL, "office@example.com", "active");
    }
    Notice *notice = ask(s, "", "office@example.com");
    decide(s);
    assert_int_equal(notice->owner_count, 60);
    expect(notice, GATE_SUPPRESS, GATE_UNSUBSCRIBED);
}

static void set_limits(Scene *s, uint32_t tenant_minute, uint32_t recipient_day, bool suppress)
{
    Stentor__V1__Limits of_tenant;
    stentor__v1__limits__init(&of_tenant);
    of_tenant.per_minute = tenant_minute;
    Stentor__V1__Limits of_recipient;
    stentor__v1__limits__init(&of_recipient);
    of_recipient.per_day = recipient_day;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant_limits = &of_tenant;
    tenant.recipient_limits = &of_recipient;
    tenant.over_limit = suppress ? STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS
                                 : STENTOR__V1__OVER_LIMIT__OVER_LIMIT_DEFER;
    put_tenant(s, &tenant);
}

static void a_tenants_limit_is_shared_by_all_groups(void **state)
{
    Scene *s = *state;
    set_limits(s, 3, 0, false);
    for (int group = 0; group < 3; group++) {
        forget(s);
        Notice *first = ask(s, "", "a@example.com");
        Notice *second = ask(s, "", "b@example.com");
        decide(s);
        // Places 1, 2 - 3, 4 - 5, 6 of three a minute.
        expect(
            first, group < 2 ? GATE_GO : GATE_DEFER, group < 2 ? GATE_NO_REASON : GATE_RATE_LIMIT);
        expect(
            second, group < 1 ? GATE_GO : GATE_DEFER, group < 1 ? GATE_NO_REASON : GATE_RATE_LIMIT);
        assert_int_equal(second->decision.until_us, group < 1 ? 0 : NOON + HOUR_US / 60);
    }
    // A minute later three of the six have had their turn, and the other three have theirs.
    forget(s);
    Notice *late = ask(s, "", "c@example.com");
    s->now_us = NOON + HOUR_US / 60;
    decide(s);
    expect(late, GATE_DEFER, GATE_RATE_LIMIT);
    assert_int_equal(late->decision.until_us, NOON + 2 * HOUR_US / 60);
    forget(s);
    Notice *later = ask(s, "", "d@example.com");
    s->now_us = NOON + 3 * HOUR_US / 60;
    decide(s);
    expect(later, GATE_GO, GATE_NO_REASON);
    assert_string_equal(
        admin_value(
            s->admin, "SELECT subject || minute_used || '/' || day_used FROM "
                      "ingest.gate_counters"),
        "1/8");
}

// What is suppressed was never sent, so a minute's burst must not use up the day.
// As gateway asks, which may call the function alone.
static void a_dry_run_finds_the_same_and_takes_no_place(void **state)
{
    Scene *s = *state;
    admin_exec(
        s->admin,
        "GRANT EXECUTE ON FUNCTION ingest.gate_places(bigint, bigint, text[], text[], bigint[], "
        "bigint[]) TO stentor_ingest");
    for (int over = 0; over < 2; over++) {
        set_limits(s, 2, 3, over == 1);
        admin_exec(s->admin, "TRUNCATE ingest.gate_counters");
        for (int place = 1; place <= 4; place++) {
            Notice dry;
            for (int take = 0; take < 2; take++) {
                forget(s);
                s->run.dry = take == 0;
                Notice *notice = ask(s, "", "a@example.com");
                decide(s);
                dry = take == 0 ? *notice : dry;
                expect(notice, dry.decision.verdict, dry.decision.reason);
                assert_int_equal(notice->decision.until_us, dry.decision.until_us);
                assert_string_equal(notice->trace, dry.trace);
            }
            assert_int_equal(dry.decision.reason == GATE_NO_REASON, place <= 2);
        }
    }
    s->now_us = NOON + 24 * HOUR_US; // what the counters drain with the time is counted as well
    forget(s);
    s->run.dry = true;
    Notice *tomorrow = ask(s, "", "a@example.com");
    decide(s);
    expect(tomorrow, GATE_GO, GATE_NO_REASON);
}

static void what_a_minutes_limit_suppresses_takes_nothing_of_the_day(void **state)
{
    Scene *s = *state;
    Stentor__V1__Limits limits;
    stentor__v1__limits__init(&limits);
    limits.per_minute = 2;
    limits.per_day = 5;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant_limits = &limits;
    tenant.over_limit = STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS;
    put_tenant(s, &tenant);
    // Two of each minute's nine, in groups of three, until the day's five are out.
    int sent = 0;
    for (int group = 0; group < 12; group++) {
        forget(s);
        s->now_us = NOON + group / 3 * HOUR_US / 60;
        Notice *notices[3];
        for (int i = 0; i < 3; i++) {
            notices[i] = ask(s, "", "a@example.com");
        }
        decide(s);
        for (int i = 0; i < 3; i++) {
            bool goes = group % 3 == 0 && i < 2 && sent < 5;
            sent += goes ? 1 : 0;
            expect(
                notices[i], goes ? GATE_GO : GATE_SUPPRESS,
                goes ? GATE_NO_REASON : GATE_RATE_LIMIT);
        }
    }
    assert_int_equal(sent, 5);
}

static void a_recipients_limit_counts_only_what_is_not_refused(void **state)
{
    Scene *s = *state;
    set_limits(s, 0, 2, true);
    add_person(s, ALICE, "", "");
    add_address(s, ALICE, "email", 1, "active", true);
    say(s, "preferences", "'social', 'any', true, 'immediate', 0, 0, false");
    Notice *alice[4];
    for (int i = 0; i < 4; i++) {
        alice[i] = ask(s, ALICE, "");
    }
    alice[1]->request.category = CATEGORY_SOCIAL; // refused: takes no place
    Notice *other = ask(s, "", "b@example.com");
    decide(s);
    expect(alice[0], GATE_GO, GATE_NO_REASON);
    expect(alice[1], GATE_SUPPRESS, GATE_PREFERENCE);
    expect(alice[2], GATE_GO, GATE_NO_REASON);
    expect(alice[3], GATE_SUPPRESS, GATE_RATE_LIMIT);
    expect(other, GATE_GO, GATE_NO_REASON);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.gate_counters"), "2");
}

static Stentor__V1__ChannelLimits *limit_a_channel(Scene *s, Channel channel, uint32_t a_day)
{
    Stentor__V1__ChannelLimits *one = arena_alloc(s->arena, sizeof *one);
    stentor__v1__channel_limits__init(one);
    one->channel = (Stentor__V1__Channel)channel;
    one->limits = arena_alloc(s->arena, sizeof *one->limits);
    stentor__v1__limits__init(one->limits);
    one->limits->per_day = a_day;
    return one;
}

static void each_channel_has_counters_of_its_own(void **state)
{
    Scene *s = *state;
    Stentor__V1__ChannelLimits *of_tenant[] = {limit_a_channel(s, CHANNEL_EMAIL, 3)};
    Stentor__V1__ChannelLimits *of_recipient[] = {limit_a_channel(s, CHANNEL_EMAIL, 2)};
    Stentor__V1__Limits all;
    Stentor__V1__Tenant tenant;
    stentor__v1__limits__init(&all);
    stentor__v1__tenant__init(&tenant);
    all.per_day = 100;
    tenant.tenant_limits = &all;
    tenant.channel_limits = of_tenant;
    tenant.n_channel_limits = 1;
    tenant.recipient_channel_limits = of_recipient;
    tenant.n_recipient_channel_limits = 1;
    tenant.over_limit = STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS;
    put_tenant(s, &tenant);
    Notice *a[3];
    for (int i = 0; i < 3; i++) {
        a[i] = ask(s, "", "a@example.com");
    }
    Notice *text = ask(s, "", "+4915112345678");
    text->request.channel = CHANNEL_SMS;
    Notice *b = ask(s, "", "b@example.com");
    decide(s);
    expect(a[0], GATE_GO, GATE_NO_REASON);
    expect(a[1], GATE_GO, GATE_NO_REASON);
    expect(a[2], GATE_SUPPRESS, GATE_RATE_LIMIT); // its third, by the recipient's limit
    expect(text, GATE_GO, GATE_NO_REASON);
    expect(b, GATE_SUPPRESS, GATE_RATE_LIMIT); // the tenant's fourth e-mail
    assert_string_equal(
        admin_value(
            s->admin, "SELECT string_agg(CASE WHEN length(subject) > 20 THEN 'hash' || "
                      "right(subject, 6) ELSE subject END || '=' || day_used, ' ' ORDER BY "
                      "length(subject), day_used) FROM ingest.gate_counters"),
        "=5 :email=4 hash:email=1 hash:email=3");
}

static void a_minors_notification_is_copied_or_redirected(void **state)
{
    Scene *s = *state;
    static const char *const ROUTINGS[] = {"copy", "redirect", "none"};
    for (int i = 0; i < 3; i++) {
        admin_exec(s->admin, "TRUNCATE people.recipients, people.addresses");
        add_person(
            s, ALICE, "minor, guardian_id, guardian_routing",
            arena_printf(s->arena, "true, '" BOB "', '%s'", ROUTINGS[i]));
        add_person(s, BOB, "locale, minor, guardian_id", "'fr', true, '" ALICE "'"); // no circle
        add_address(s, ALICE, "email", 1, "active", true);
        add_address(s, BOB, "email", 2, "active", true);
        forget(s);
        Notice *notice = ask(s, ALICE, "");
        decide(s);
        expect(notice, GATE_GO, GATE_NO_REASON);
        bool copy = i == 0;
        bool redirect = i == 1;
        assert_int_equal(s->run.count, copy ? 2 : 1);
        assert_int_equal(notice->hash[0], redirect ? 2 : 1);
        assert_true(str_eq(notice->request.recipient_id, redirect ? STR(BOB) : STR(ALICE)));
        const Notice *guardians = copy ? &s->notices[1] : notice;
        if (copy || redirect) {
            expect(guardians, GATE_GO, GATE_NO_REASON);
            assert_true(str_eq(guardians->request.locale, STR("fr")));
            assert_int_equal(guardians->hash[0], 2);
            assert_string_equal(
                guardians->trace, copy ? "G+(copy)T+S+U+A+" : "G+(redirect)T+S+U+A+");
        }
        if (copy) {
            assert_true(id_parse(str_from(guardians->id), "ntf_", NULL));
            assert_string_not_equal(guardians->id, notice->id);
        }
    }
}

static void without_a_guardian_no_redirect_is_possible(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "minor, guardian_routing", "true, 'redirect'");
    add_address(s, ALICE, "email", 1, "active", true);
    add_person(s, BOB, "minor, guardian_routing", "true, 'copy'");
    add_address(s, BOB, "email", 2, "active", true);
    Notice *redirected = ask(s, ALICE, "");
    Notice *copied = ask(s, BOB, "");
    decide(s);
    expect(redirected, GATE_SUPPRESS, GATE_NO_ADDRESS);
    expect(copied, GATE_GO, GATE_NO_REASON);
    assert_string_equal(redirected->trace, "T+U+A-(guardian)");
    assert_string_equal(copied->trace, "T+S+U+A+");
    assert_int_equal(s->run.count, 2);
}

static void another_tenants_people_are_not_seen(void **state)
{
    Scene *s = *state;
    add_person(s, ALICE, "", "");
    add_address(s, ALICE, "email", 1, "active", true);
    Notice *own = ask(s, ALICE, "");
    Notice *foreign = ask(s, ALICE, "");
    foreign->tenant = STR("other");
    decide(s);
    expect(own, GATE_GO, GATE_NO_REASON);
    expect(foreign, GATE_SUPPRESS, GATE_NO_ADDRESS);
}

static void counters_that_say_nothing_any_more_are_forgotten(void **state)
{
    Scene *s = *state;
    admin_exec(
        s->admin, "INSERT INTO ingest.gate_counters SELECT 'acme', 's' || n, 0, 1, 10, "
                  "CASE n WHEN 1 THEN 0 ELSE floor(extract(epoch FROM now()) / 86400) END, "
                  "CASE n WHEN 3 THEN 1000 ELSE 1 END, 10 FROM generate_series(1, 3) n");
    admin_exec(s->admin, "SET ROLE stentor_ingest");
    assert_string_equal(admin_value(s->admin, "SELECT ingest.forget_gate_counters(10)"), "1");
    admin_exec(s->admin, "RESET ROLE");
    assert_string_equal(
        admin_value(
            s->admin, "SELECT string_agg(subject, ',' ORDER BY subject) FROM "
                      "ingest.gate_counters"),
        "s2,s3");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_recipients_and_limits_nothing_is_asked),
        TEST(a_tenants_locale_outlives_a_change_of_its_settings),
        TEST(a_recipients_primary_active_address_is_taken),
        TEST(what_a_person_said_is_honoured),
        TEST(a_digest_is_gathered_where_there_is_a_template_for_it),
        TEST(suppressed_addresses_are_not_written_to),
        TEST(an_inline_address_of_a_recipient_is_that_recipient),
        TEST(marketing_to_an_address_without_a_recipient_needs_the_callers_word),
        TEST(of_several_owners_one_refusal_is_enough),
        TEST(a_number_is_its_owners_on_every_channel_and_under_every_hash_key),
        TEST(a_minors_inline_address_goes_to_the_guardian),
        TEST(every_one_of_many_owners_counts),
        TEST(a_tenants_limit_is_shared_by_all_groups),
        TEST(a_dry_run_finds_the_same_and_takes_no_place),
        TEST(what_a_minutes_limit_suppresses_takes_nothing_of_the_day),
        TEST(a_recipients_limit_counts_only_what_is_not_refused),
        TEST(each_channel_has_counters_of_its_own),
        TEST(a_minors_notification_is_copied_or_redirected),
        TEST(without_a_guardian_no_redirect_is_possible),
        TEST(another_tenants_people_are_not_seen),
        TEST(counters_that_say_nothing_any_more_are_forgotten),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
