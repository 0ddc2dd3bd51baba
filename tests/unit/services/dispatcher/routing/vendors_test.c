// SPDX-License-Identifier: Apache-2.0
// Which vendors a mail gets, from entries of CONFIG as they come. No vendor is called.
#include "services/dispatcher/routing/vendors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "services/dispatcher/routing/vendor_mail.h"
#include "stentor/v1/config.pb-c.h"

typedef struct Stage {
    uv_loop_t loop;
    Arena *arena;
    Vendors *vendors;
    Delivery delivery;
    LedgerKey key;
    Stentor__V1__Rendered rendered;
    Job job;
    uint64_t sequence;
    char *fallback_on; // of the routes; NULL: as without
    bool stopped;
} Stage;

static char *text(const char *value)
{
    return (char *)(uintptr_t)value;
}

static void send_nothing(void *self, Mail *mail)
{
    (void)self;
    (void)mail;
    fail();
}

static void ignore(void *self)
{
    (void)self;
}

static VendorHealth is_well(void *self)
{
    (void)self;
    return (VendorHealth){0};
}

static int up(void **state)
{
    Stage *stage = xcalloc(1, sizeof *stage);
    uv_loop_init(&stage->loop);
    stage->arena = arena_new(0);
    Error err = {0};
    stage->vendors = vendors_new(
        &(VendorsParts){
            .loop = &stage->loop,
            .smtp = {"smtp", stage, send_nothing, ignore, is_well, ignore},
            .instance = "us",
            .calls = 4,
            .connect_ms = 1000,
            .call_ms = 1000,
            .secret_dirs = "/tmp",
        },
        &err);
    assert_non_null(stage->vendors);
    *state = stage;
    return 0;
}

static void on_stopped(void *ctx)
{
    ((Stage *)ctx)->stopped = true;
}

static int down(void **state)
{
    Stage *stage = *state;
    vendors_stop(stage->vendors, on_stopped, stage);
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    assert_true(stage->stopped);
    vendors_free(stage->vendors);
    assert_int_equal(uv_loop_close(&stage->loop), 0);
    arena_free(stage->arena);
    free(stage);
    return 0;
}

// ---- entries ----

static void put(Stage *stage, const char *kind, const char *tenant, const char *key, const void *of)
{
    Error err = {0};
    BusMessage message = {.sequence = ++stage->sequence};
    assert_true(event_pack(of, stage->arena, &message.payload, NULL));
    if (!vendors_changed(
            stage->vendors, str_from(kind), str_from(tenant), str_from(key), &message, &err)) {
        fail_msg("%s", err.text);
    }
}

static void put_named(
    Stage *stage, const char *vendor, const char *name, Stentor__V1__CredentialState state,
    int64_t changed_at_us)
{
    Stentor__V1__VendorCredential entry;
    stentor__v1__vendor_credential__init(&entry);
    entry.tenant = text("acme");
    entry.vendor = text(vendor);
    entry.name = text(name);
    entry.reference = text("env:VENDORS_TEST_SECRET");
    entry.state = state;
    entry.changed_at_us = changed_at_us;
    Stentor__V1__VendorSetting setting;
    stentor__v1__vendor_setting__init(&setting);
    bool mailgun = strcmp(vendor, "mailgun") == 0;
    bool webpush = strcmp(vendor, "webpush") == 0;
    setting.name = text(mailgun ? "domain" : "subject");
    setting.value = text(mailgun ? "mg.acme.test" : "mailto:operator@acme.test");
    Stentor__V1__VendorSetting *settings[] = {&setting};
    entry.settings = settings;
    entry.n_settings = mailgun || webpush ? 1 : 0;
    const char *key = arena_printf(stage->arena, "%s.%s", vendor, name);
    put(stage, "credential", "acme", key, &entry.base);
}

static void put_credential(Stage *stage, const char *vendor)
{
    put_named(
        stage, vendor, "main", STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_ACTIVE,
        clock_now_us() - 3600 * 1000000LL);
}

// "postmark sendgrid": each is the fallback of the one before.
static void put_route(Stage *stage, const char *vendors, const char *unknown)
{
    Stentor__V1__Route route;
    stentor__v1__route__init(&route);
    route.tenant = text("acme");
    route.key = text("mails");
    route.unknown = text(unknown);
    Stentor__V1__RouteVendor steps[ROUTE_VENDORS_MAX];
    Stentor__V1__RouteVendor *list[ROUTE_VENDORS_MAX];
    Str rest = str_from(vendors);
    Str name;
    while (str_split(&rest, ' ', &name)) {
        size_t n = route.n_vendors++;
        stentor__v1__route_vendor__init(&steps[n]);
        steps[n].vendor = arena_cstr(stage->arena, name);
        steps[n].step = (uint32_t)n;
        list[n] = &steps[n];
        if (!str_eq(name, STR("smtp"))) {
            put_credential(stage, steps[n].vendor);
        }
    }
    route.vendors = list;
    route.fallback_on = &stage->fallback_on;
    route.n_fallback_on = stage->fallback_on != NULL ? 1 : 0;
    put(stage, "route", "acme", "mails", &route.base);
}

static void put_health(
    Stage *stage, const char *tenant, const char *vendor, Stentor__V1__ChannelStatus status,
    int64_t until_us)
{
    Stentor__V1__ChannelHealth entry;
    stentor__v1__channel_health__init(&entry);
    entry.tenant = text(tenant);
    entry.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    entry.vendor = text(vendor);
    entry.status = status;
    entry.until_us = until_us;
    entry.changed_at_us = clock_now_us();
    entry.down_since_us =
        status == STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DOWN ? entry.changed_at_us : 0;
    entry.noted_by = text("them");
    const char *key = arena_printf(stage->arena, "email_%s", vendor);
    put(stage, "channel_health", tenant, key, &entry.base);
}

// ---- mails ----

static const char ID[] = "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV";

static JobRoute *choose(Stage *stage)
{
    stage->delivery = (Delivery){.arena = stage->arena};
    stage->key = (LedgerKey){.notification_id = str_from(ID), .attempt = 3, .tenant = STR("acme")};
    stage->rendered.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    stage->rendered.priority = STENTOR__V1__PRIORITY__PRIORITY_NORMAL;
    stage->job =
        (Job){.delivery = &stage->delivery, .rendered = &stage->rendered, .key = &stage->key};
    vendors_choose(stage->vendors, &stage->job, STR("alice@example.com"), clock_now_us());
    return &stage->job.route;
}

static void fresh(Stage *stage)
{
    stentor__v1__rendered__init(&stage->rendered);
}

static const char *order(const Stage *stage)
{
    const char *names = "";
    const JobRoute *route = &stage->job.route;
    for (size_t i = 0; i < route->count; i++) {
        names = arena_printf(
            stage->arena, "%s%s%s", names, i > 0 ? " " : "", vendor_of(route->targets[i])->name);
    }
    return names;
}

static void fail_times(Stage *stage, VendorPlace *place, int times)
{
    (void)stage;
    SendResult refused = {.state = SEND_UNSENT, .text = STR("connection refused")};
    for (int i = 0; i < times; i++) {
        vendor_tell(place, &refused, clock_now_us());
    }
}

// ---- tests ----

static void without_a_route_a_mail_goes_to_the_smtp_server(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    const JobRoute *route = choose(stage);
    assert_false(route->routed);
    assert_int_equal(route->waits_until_us, 0);
    assert_true(vendors_want_message(route));
    assert_int_equal(vendors_calls(stage->vendors), 0);
}

static void a_route_names_its_vendors_in_order(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark sendgrid", "");
    const JobRoute *route = choose(stage);
    assert_true(route->routed);
    assert_string_equal(route->name, "mails");
    assert_string_equal(order(stage), "postmark sendgrid");
    assert_false(vendors_want_message(route));
    const LedgerPlace *place = &stage->job.place;
    assert_true(str_eq(place->vendor, STR("postmark")) && str_eq(place->credential, STR("main")));
    assert_true(str_eq(place->key, STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV-3")));
    assert_int_equal(vendors_calls(stage->vendors), 8);
    put_route(stage, "postmark smtp", "");
    assert_true(vendors_want_message(choose(stage)));
    put_route(stage, "mailgun", "");
    assert_true(vendors_want_message(choose(stage)));
}

static void a_vendor_that_refused_the_mail_is_left_out(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark sendgrid", "");
    char *avoid[] = {text("postmark")};
    stage->rendered.avoid_vendors = avoid;
    stage->rendered.n_avoid_vendors = 1;
    (void)choose(stage);
    assert_string_equal(order(stage), "sendgrid");
}

static void a_vendor_that_fails_is_passed_and_tried_again_later(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark sendgrid", "");
    VendorPlace *postmark = choose(stage)->targets[0];
    fail_times(stage, postmark, BREAKER_IN_ROW);
    assert_false(vendor_is_up(postmark, clock_now_us()));
    Buf warning;
    buf_init(&warning, 1000);
    vendors_warn(stage->vendors, &warning);
    assert_non_null(strstr(buf_c(&warning), "postmark with credential main of acme fails since 2"));
    assert_non_null(strstr(buf_c(&warning), "connection refused"));
    buf_done(&warning);
    assert_true(vendor_due_us(postmark, clock_now_us()) > clock_now_us());
    (void)choose(stage);
    assert_string_equal(order(stage), "sendgrid");
}

static void without_another_vendor_a_mail_waits_for_the_probe(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark", "");
    fail_times(stage, choose(stage)->targets[0], BREAKER_IN_ROW);
    const JobRoute *route = choose(stage);
    assert_string_equal(order(stage), "postmark");
    assert_true(route->waits_until_us > clock_now_us());
    put_credential(stage, "postmark"); // it is worth a try now
    assert_int_equal(choose(stage)->waits_until_us, 0);
}

static void on_claimed(void *ctx, bool granted)
{
    *(int *)ctx = granted ? 1 : 0;
}

static void an_urgent_mail_is_no_probe_while_another_vendor_is_there(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark sendgrid", "");
    VendorPlace *postmark = choose(stage)->targets[0];
    fail_times(stage, postmark, BREAKER_IN_ROW);
    put_credential(stage, "postmark"); // a probe is due
    stage->rendered.priority = STENTOR__V1__PRIORITY__PRIORITY_CRITICAL;
    stage->delivery = (Delivery){.arena = stage->arena};
    stage->job =
        (Job){.delivery = &stage->delivery, .rendered = &stage->rendered, .key = &stage->key};
    vendors_choose(stage->vendors, &stage->job, STR("alice@example.com"), clock_now_us());
    assert_string_equal(order(stage), "sendgrid");
    (void)choose(stage); // of the lane normal
    assert_string_equal(order(stage), "postmark sendgrid");
}

static void a_probe_that_is_given_back_is_due_again(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark", "");
    VendorPlace *postmark = choose(stage)->targets[0];
    fail_times(stage, postmark, BREAKER_IN_ROW);
    put_credential(stage, "postmark");
    int64_t at_us = 0;
    assert_int_equal(vendor_ask(postmark, clock_now_us(), &at_us), BREAKER_PROBE);
    assert_int_equal(vendor_ask(postmark, clock_now_us(), &at_us), BREAKER_WAIT);
    vendor_no_probe(postmark);
    assert_int_equal(vendor_ask(postmark, clock_now_us(), &at_us), BREAKER_PROBE);
    int granted = -1;
    vendor_claim_probe(postmark, on_claimed, &granted); // alone, without Postgres
    assert_int_equal(granted, 1);
}

static void a_credential_that_is_refused_at_once_gives_way_to_the_one_before(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark", "");
    int64_t now_us = clock_now_us();
    const SendResult refused = {.state = SEND_ANSWERED, .reply = REPLY_CONFIG, .code = STR("401")};
    put_named(
        stage, "postmark", "old", STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_SUPERSEDED,
        now_us);
    vendor_tell(choose(stage)->targets[0], &refused, now_us);
    assert_true(choose(stage)->waits_until_us > now_us); // it had worked for an hour
    put_named(
        stage, "postmark", "main", STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_ACTIVE,
        clock_now_us());
    VendorPlace *probed = choose(stage)->targets[0];
    int64_t at_us = 0;
    assert_int_equal(vendor_ask(probed, clock_now_us(), &at_us), BREAKER_PROBE);
    vendor_tell(probed, &refused, clock_now_us());
    const JobRoute *route = choose(stage);
    assert_int_equal(route->waits_until_us, 0);
    assert_true(str_eq(stage->job.place.credential, STR("old")));
}

static void what_never_had_its_turn_says_nothing_about_the_vendor(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark", "");
    VendorPlace *postmark = choose(stage)->targets[0];
    SendResult waited = {.state = SEND_UNSENT, .waited = true};
    for (int i = 0; i < 2 * BREAKER_IN_ROW; i++) {
        vendor_tell(postmark, &waited, clock_now_us());
    }
    assert_true(vendor_is_up(postmark, clock_now_us()));
}

static void a_host_that_an_address_names_and_that_is_not_there_says_nothing_about_the_others(
    void **state)
{
    Stage *stage = *state;
    put_credential(stage, "webpush");
    VendorPlace *place = vendors_place(stage->vendors, STR("acme"), STR("webpush"), STR("main"));
    assert_non_null(place);
    fail_times(stage, place, 2 * BREAKER_IN_ROW);
    assert_true(vendor_is_closed(place));
    SendResult failing = {.state = SEND_ANSWERED, .reply = REPLY_RETRY, .code = STR("503")};
    for (int i = 0; i < 2 * BREAKER_IN_ROW; i++) {
        vendor_tell(place, &failing, clock_now_us());
    }
    assert_false(vendor_is_closed(place));
}

static void what_another_replica_found_counts_here(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark sendgrid", "");
    (void)choose(stage);
    put_health(stage, "acme", "postmark", STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DOWN, 0);
    (void)choose(stage);
    assert_string_equal(order(stage), "sendgrid");
    put_health(stage, "acme", "postmark", STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_ACTIVE, 0);
    (void)choose(stage);
    assert_string_equal(order(stage), "postmark sendgrid");
}

static void that_a_vendor_is_degraded_no_more_closes_no_breaker(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark sendgrid", "");
    put_health(stage, "acme", "postmark", STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DEGRADED, 0);
    fail_times(stage, choose(stage)->targets[0], 5);
    put_health(stage, "acme", "postmark", STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_ACTIVE, 0);
    (void)choose(stage);
    assert_string_equal(order(stage), "sendgrid");
}

static void a_degraded_vendor_goes_last_where_the_route_falls_back_on_it(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark sendgrid", "");
    put_health(stage, "acme", "postmark", STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DEGRADED, 0);
    (void)choose(stage);
    assert_string_equal(order(stage), "postmark sendgrid"); // alone in its step
    stage->fallback_on = text("degraded");
    put_route(stage, "postmark sendgrid", "");
    (void)choose(stage);
    assert_string_equal(order(stage), "sendgrid postmark");
}

static void an_operators_suspension_is_obeyed_until_it_ends(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    const Stentor__V1__ChannelStatus off = STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED;
    put_route(stage, "postmark sendgrid", "");
    put_health(stage, "acme", "postmark", off, 0);
    (void)choose(stage);
    assert_string_equal(order(stage), "sendgrid");
    put_health(stage, "platform", "sendgrid", off, 0);
    int64_t now_us = clock_now_us();
    const JobRoute *route = choose(stage);
    assert_true(route->waits_until_us > now_us);
    assert_true(route->waits_until_us <= clock_now_us() + VENDORS_SUSPENDED_WAIT_S * 1000000LL);
    assert_string_equal(route->waits_for, "an operator has suspended the vendor");
    put_health(stage, "acme", "postmark", off, now_us - 1); // over
    (void)choose(stage);
    assert_string_equal(order(stage), "postmark");
}

// Such a route leaves vendors that fail in their order, and a mail may move on within its claim.
static void a_suspended_vendor_is_no_fallback_of_a_route_that_ignores_open_breakers(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    stage->fallback_on = text("unsent");
    put_route(stage, "postmark sendgrid", "");
    put_health(stage, "acme", "sendgrid", STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED, 0);
    (void)choose(stage);
    assert_string_equal(order(stage), "postmark");
}

static void the_smtp_server_can_be_suspended_without_a_route(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    const Stentor__V1__ChannelStatus off = STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED;
    put_health(stage, "platform", "smtp", off, 0);
    const JobRoute *route = choose(stage);
    assert_false(route->routed);
    assert_true(route->waits_until_us > clock_now_us());
}

static const JobRoute *doubt(Stage *stage, const char *vendors, const char *unknown)
{
    fresh(stage);
    put_route(stage, vendors, unknown);
    stage->rendered.unknown_vendor = arena_cstr(
        stage->arena, str_slice(str_from(vendors), 0, (size_t)str_find(str_from(vendors), ' ')));
    stage->rendered.unknown_credential = text("main");
    stage->rendered.unknown_key = text("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV-1");
    stage->rendered.unknown_at_us = clock_now_us() - 300 * 1000000LL; // settle_ms is over
    return choose(stage);
}

static void what_may_have_been_sent_is_bound_to_its_vendor(void **state)
{
    Stage *stage = *state;
    const JobRoute *route = doubt(stage, "sendgrid postmark", "park");
    assert_int_equal(route->doubt, NEXT_PARK);
    assert_true(route->bound);
    assert_true(str_eq(stage->job.place.vendor, STR("sendgrid")));
    route = doubt(stage, "sendgrid postmark", "resend");
    assert_int_equal(route->doubt, NEXT_RESEND);
    assert_true(route->bound);
    assert_string_equal(vendor_of(route->targets[route->at])->name, "sendgrid");
}

static void a_vendor_that_knows_keys_gets_the_same_key_and_the_same_attempt(void **state)
{
    Stage *stage = *state;
    const JobRoute *route = doubt(stage, "resend postmark", "park");
    assert_int_equal(route->doubt, NEXT_SAME_KEY);
    assert_true(str_eq(stage->job.place.key, STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV-1")));
    VendorMail content = {.attempt = 3};
    stage->job.mail.content = &content;
    vendor_mail_claim(&stage->job, &(JobRules){0});
    assert_int_equal(content.attempt, 1);
    assert_true(str_eq(content.key, stage->job.place.key));
}

static void failover_alone_takes_it_to_another_vendor(void **state)
{
    Stage *stage = *state;
    const JobRoute *route = doubt(stage, "sendgrid postmark", "failover");
    assert_int_equal(route->doubt, NEXT_FAILOVER);
    assert_false(route->bound);
    assert_string_equal(order(stage), "postmark");
    assert_true(str_eq(stage->job.place.vendor, STR("postmark")));
    assert_true(str_ends(stage->job.place.key, STR("-3")));
}

static void failover_waits_for_a_vendor_that_is_down(void **state)
{
    Stage *stage = *state;
    VendorPlace *postmark = doubt(stage, "sendgrid postmark", "failover")->targets[0];
    fail_times(stage, postmark, BREAKER_IN_ROW);
    const JobRoute *route = choose(stage);
    assert_int_equal(route->doubt, NEXT_WAIT);
    assert_true(route->bound);
    assert_true(str_eq(stage->job.place.vendor, STR("sendgrid")));
}

static void a_vendor_that_can_be_asked_is_asked_first(void **state)
{
    Stage *stage = *state;
    assert_int_equal(doubt(stage, "postmark sendgrid", "failover")->doubt, NEXT_ASK);
    stage->rendered.unknown_asked = 2; // it had not got it, twice
    const JobRoute *route = choose(stage);
    assert_int_equal(route->doubt, NEXT_SAME_CLAIM);
    stage->rendered.unknown_unclear = true; // or it did not say
    assert_int_equal(choose(stage)->doubt, NEXT_FAILOVER);
}

static void a_doubt_whose_credential_was_rotated_is_sent_again_with_the_active_one(void **state)
{
    Stage *stage = *state;
    (void)doubt(stage, "sendgrid postmark", "resend");
    stage->rendered.unknown_credential = text("gone");
    const JobRoute *route = choose(stage);
    assert_int_equal(route->doubt, NEXT_RESEND);
    assert_string_equal(vendor_of(route->targets[route->at])->name, "sendgrid");
    assert_true(str_eq(stage->job.place.credential, STR("main")));
    assert_true(str_eq(stage->job.place.key, STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV-1")));
}

static void a_doubt_whose_credential_the_vendor_refuses_is_sent_again_with_the_active_one(
    void **state)
{
    Stage *stage = *state;
    int64_t now_us = clock_now_us();
    const JobRoute *route = doubt(stage, "resend postmark", "resend");
    assert_int_equal(route->doubt, NEXT_SAME_KEY);
    const SendResult refused = {.state = SEND_ANSWERED, .reply = REPLY_CONFIG, .code = STR("403")};
    put_named(
        stage, "resend", "old", STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_SUPERSEDED, now_us);
    stage->rendered.unknown_credential = text("old");
    route = choose(stage);
    assert_int_equal(route->doubt, NEXT_SAME_KEY); // it works still
    vendor_tell(route->targets[0], &refused, now_us);
    route = choose(stage);
    assert_int_equal(route->doubt, NEXT_RESEND);
    assert_true(str_eq(stage->job.place.credential, STR("main")));
    assert_true(str_eq(stage->job.place.key, STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV-1")));
}

// A key is known to one account, and the active credential may be another's.
static void a_rotated_credential_s_doubt_is_parked_where_that_is_the_policy(void **state)
{
    Stage *stage = *state;
    (void)doubt(stage, "resend postmark", "park");
    stage->rendered.unknown_credential = text("gone");
    assert_int_equal(choose(stage)->doubt, NEXT_PARK);
    assert_true(str_eq(stage->job.place.credential, STR("gone")));
}

static void a_doubt_whose_vendor_is_gone_is_parked(void **state)
{
    Stage *stage = *state;
    (void)doubt(stage, "sendgrid postmark", "resend");
    stage->rendered.unknown_vendor = text("sparkpost");
    const JobRoute *route = choose(stage);
    assert_int_equal(route->doubt, NEXT_PARK);
    assert_true(str_eq(stage->job.place.vendor, STR("sparkpost")));
}

static void what_waits_for_a_refused_credential_looks_again_within_a_minute(void **state)
{
    Stage *stage = *state;
    fresh(stage);
    put_route(stage, "postmark", "");
    VendorPlace *postmark = choose(stage)->targets[0];
    int64_t now_us = clock_now_us();
    SendResult refused = {
        .state = SEND_ANSWERED, .reply = REPLY_CONFIG, .code = STR("401"), .text = STR("no")};
    vendor_tell(postmark, &refused, now_us);
    assert_false(vendor_is_up(postmark, now_us + 120 * INT64_C(1000000)));
    assert_true(vendor_due_us(postmark, now_us) <= now_us + BREAKER_WAIT_MAX_MS * INT64_C(1000));
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, up, down)

int main(void)
{
    setenv("VENDORS_TEST_SECRET", "s3cret", 1);
    const struct CMUnitTest tests[] = {
        ON_STAGE(without_a_route_a_mail_goes_to_the_smtp_server),
        ON_STAGE(a_route_names_its_vendors_in_order),
        ON_STAGE(a_vendor_that_refused_the_mail_is_left_out),
        ON_STAGE(a_vendor_that_fails_is_passed_and_tried_again_later),
        ON_STAGE(without_another_vendor_a_mail_waits_for_the_probe),
        ON_STAGE(an_urgent_mail_is_no_probe_while_another_vendor_is_there),
        ON_STAGE(a_probe_that_is_given_back_is_due_again),
        ON_STAGE(a_credential_that_is_refused_at_once_gives_way_to_the_one_before),
        ON_STAGE(what_never_had_its_turn_says_nothing_about_the_vendor),
        ON_STAGE(a_host_that_an_address_names_and_that_is_not_there_says_nothing_about_the_others),
        ON_STAGE(what_another_replica_found_counts_here),
        ON_STAGE(that_a_vendor_is_degraded_no_more_closes_no_breaker),
        ON_STAGE(a_degraded_vendor_goes_last_where_the_route_falls_back_on_it),
        ON_STAGE(an_operators_suspension_is_obeyed_until_it_ends),
        ON_STAGE(a_suspended_vendor_is_no_fallback_of_a_route_that_ignores_open_breakers),
        ON_STAGE(the_smtp_server_can_be_suspended_without_a_route),
        ON_STAGE(what_may_have_been_sent_is_bound_to_its_vendor),
        ON_STAGE(a_vendor_that_knows_keys_gets_the_same_key_and_the_same_attempt),
        ON_STAGE(failover_alone_takes_it_to_another_vendor),
        ON_STAGE(failover_waits_for_a_vendor_that_is_down),
        ON_STAGE(a_vendor_that_can_be_asked_is_asked_first),
        ON_STAGE(a_doubt_whose_credential_was_rotated_is_sent_again_with_the_active_one),
        ON_STAGE(a_doubt_whose_credential_the_vendor_refuses_is_sent_again_with_the_active_one),
        ON_STAGE(a_rotated_credential_s_doubt_is_parked_where_that_is_the_policy),
        ON_STAGE(a_doubt_whose_vendor_is_gone_is_parked),
        ON_STAGE(what_waits_for_a_refused_credential_looks_again_within_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
