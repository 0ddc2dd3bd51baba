// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/codec/event.h"
#include "common/routing/routes.h"

#define TENANT STR("acme")

typedef struct World {
    Routes *routes;
    Arena *arena;
} World;

static int begin(void **state)
{
    World *world = xcalloc(1, sizeof *world);
    world->routes = routes_new();
    world->arena = arena_new(0);
    *state = world;
    return 0;
}

static int end(void **state)
{
    World *world = *state;
    routes_free(world->routes);
    arena_free(world->arena);
    free(world);
    return 0;
}

static RouteEntry *new_route(World *world, const char *tenant, const char *key)
{
    RouteEntry *route = arena_alloc(world->arena, sizeof *route);
    stentor__v1__route__init(route);
    route->tenant = pb_borrow(tenant);
    route->key = pb_borrow(key);
    route->vendors = arena_array(world->arena, 10, sizeof *route->vendors);
    return route;
}

static Stentor__V1__RouteVendor *add(
    World *world, RouteEntry *route, const char *vendor, uint32_t step, uint32_t weight)
{
    Stentor__V1__RouteVendor *one = arena_alloc(world->arena, sizeof *one);
    stentor__v1__route_vendor__init(one);
    one->vendor = pb_borrow(vendor);
    one->step = step;
    one->weight = weight;
    route->vendors[route->n_vendors++] = one;
    return one;
}

static bool put(World *world, const RouteEntry *route, Error *err)
{
    Str payload;
    assert_true(event_pack(&route->base, world->arena, &payload, NULL));
    return routes_changed(
        world->routes, str_from(route->tenant), str_from(route->key), payload, err);
}

static void put_good(World *world, const RouteEntry *route)
{
    Error err = {0};
    if (!put(world, route, &err)) {
        fail_msg("%s", err.text);
    }
}

static RouteChoice choose(World *world, const RouteQuestion *question)
{
    RouteChoice choice;
    RouteQuestion asked = *question;
    asked.tenant = TENANT;
    asked.channel = CHANNEL_EMAIL;
    asked.notification_id = asked.notification_id.len > 0 ? asked.notification_id : STR("ntf_1");
    routes_choose(world->routes, &asked, &choice);
    return choice;
}

static const char *chosen(World *world, const RouteQuestion *question)
{
    RouteChoice choice = choose(world, question);
    return choice.route == NULL ? "" : choice.route->key;
}

static void put_smtp(World *world, const char *tenant, const char *key, uint32_t position)
{
    RouteEntry *route = new_route(world, tenant, key);
    route->position = position;
    add(world, route, "smtp", 0, 0);
    put_good(world, route);
}

static void the_tenant_s_own_routes_come_first_then_by_position_then_by_key(void **state)
{
    World *world = *state;
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "");
    put_smtp(world, "platform", "all", 0);
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "all");
    put_smtp(world, "acme", "late", 5);
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "late");
    put_smtp(world, "acme", "b", 2);
    put_smtp(world, "acme", "a", 2);
    put_smtp(world, "other", "first", 0);
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "a");
    assert_true(routes_changed(world->routes, TENANT, STR("a"), STR_EMPTY, NULL));
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "b");
}

static void a_route_fits_by_category_domain_and_country(void **state)
{
    World *world = *state;
    put_smtp(world, "acme", "rest", 9);
    RouteEntry *codes = new_route(world, "acme", "codes");
    codes->category = STENTOR__V1__CATEGORY__CATEGORY_SECURITY;
    add(world, codes, "smtp", 0, 0);
    put_good(world, codes);
    RouteEntry *domain = new_route(world, "acme", "domain");
    domain->domain = pb_borrow("example.com");
    add(world, domain, "smtp", 0, 0);
    put_good(world, domain);
    RouteEntry *below = new_route(world, "acme", "below");
    below->domain = pb_borrow("*.example.com");
    add(world, below, "smtp", 0, 0);
    put_good(world, below);
    RouteEntry *german = new_route(world, "acme", "german");
    german->country = pb_borrow("DE");
    german->position = 1;
    add(world, german, "smtp", 0, 0);
    put_good(world, german);
    RouteEntry *off = new_route(world, "acme", "a-off");
    off->disabled = true;
    add(world, off, "smtp", 0, 0);
    put_good(world, off);
#define CHOSEN(...) chosen(world, &(RouteQuestion){__VA_ARGS__})
    assert_string_equal(CHOSEN(.category = CATEGORY_SECURITY), "codes");
    assert_string_equal(CHOSEN(.domain = STR("Example.COM")), "domain");
    assert_string_equal(CHOSEN(.domain = STR("mail.example.com")), "below");
    assert_string_equal(CHOSEN(.domain = STR("badexample.com")), "rest");
    assert_string_equal(CHOSEN(.country = STR("DE")), "german");
    assert_string_equal(CHOSEN(.country = STR("FR")), "rest");
}

static void without_a_route_nothing_is_picked_and_the_defaults_hold(void **state)
{
    RouteChoice choice = choose(*state, &(RouteQuestion){.category = CATEGORY_MARKETING});
    assert_null(choice.route);
    assert_int_equal(choice.count, 0);
    assert_int_equal(choice.rules.unknown, ROUTING_COUNT_AS_SENT);
    assert_int_equal(choice.rules.fallback_on, FALLBACK_DEFAULT);
}

static void a_route_s_rules_are_those_of_the_mail(void **state)
{
    World *world = *state;
    RouteEntry *route = new_route(world, "acme", "own");
    char *on[] = {pb_borrow("unsent"), pb_borrow("retry")};
    route->fallback_on = on;
    route->n_fallback_on = 2;
    route->unknown = pb_borrow("failover");
    route->settle_ms = 7000;
    add(world, route, "smtp", 0, 0);
    put_good(world, route);
    RouteChoice choice = choose(world, &(RouteQuestion){0});
    assert_int_equal(choice.rules.fallback_on, FALLBACK_UNSENT | FALLBACK_RETRY);
    assert_int_equal(choice.rules.unknown, ROUTING_FAILOVER);
    assert_int_equal(choice.rules.settle_ms, 7000);
    assert_string_equal(choice.picks[0].vendor.ptr, "smtp");
    assert_null(choice.picks[0].credential);
}

// ---- credentials and the order of vendors ----

static CredentialEntry *new_credential(
    World *world, const char *tenant, const char *vendor, const char *name)
{
    CredentialEntry *entry = arena_alloc(world->arena, sizeof *entry);
    stentor__v1__vendor_credential__init(entry);
    entry->tenant = pb_borrow(tenant);
    entry->vendor = pb_borrow(vendor);
    entry->name = pb_borrow(name);
    entry->reference = pb_borrow("env:KEY");
    entry->state = STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_ACTIVE;
    return entry;
}

static void add_setting(World *world, CredentialEntry *entry, const char *name, const char *value)
{
    enum { MOST = 4 };
    Stentor__V1__VendorSetting *setting = arena_alloc(world->arena, sizeof *setting);
    stentor__v1__vendor_setting__init(setting);
    setting->name = pb_borrow(name);
    setting->value = pb_borrow(value);
    if (entry->settings == NULL) {
        entry->settings = arena_array(world->arena, MOST, sizeof(Stentor__V1__VendorSetting *));
    }
    assert_true(entry->n_settings < MOST);
    entry->settings[entry->n_settings++] = setting;
}

static void put_credential(World *world, const CredentialEntry *entry)
{
    Str payload;
    Error err = {0};
    const char *key = arena_printf(world->arena, "%s.%s", entry->vendor, entry->name);
    assert_true(event_pack(&entry->base, world->arena, &payload, NULL));
    if (!routes_credential_changed(
            world->routes, str_from(entry->tenant), str_from(key), payload, &err)) {
        fail_msg("%s", err.text);
    }
}

static void put_active(World *world, const char *tenant, const char *vendor, int64_t changed_at_us)
{
    CredentialEntry *entry = new_credential(
        world, tenant, vendor, arena_printf(world->arena, "at-%d", (int)changed_at_us));
    entry->changed_at_us = changed_at_us;
    put_credential(world, entry);
}

static void an_sms_without_a_route_goes_to_whom_there_is_a_credential_for(void **state)
{
    World *world = *state;
    RouteQuestion question = {
        .tenant = STR("acme"),
        .channel = CHANNEL_SMS,
        .notification_id = STR("ntf_01M82XS89VEV77VD8AS0MCMH0B")};
    RouteChoice choice;
    routes_choose(world->routes, &question, &choice);
    assert_true(choice.route == NULL && choice.implied && choice.count == 0);
    ChannelSet inbox = 1U << CHANNEL_INAPP; // always there
    assert_int_equal(
        routes_channels(world->routes, STR("acme"), 1U << CHANNEL_EMAIL),
        1U << CHANNEL_EMAIL | inbox);
    CredentialEntry *twilio = new_credential(world, "platform", "twilio", "main");
    twilio->key_id = pb_borrow("AC01");
    put_credential(world, twilio);
    put_active(world, "acme", "sendgrid", 1);
    routes_choose(world->routes, &question, &choice);
    assert_int_equal(choice.count, 1);
    assert_true(str_eq(choice.picks[0].vendor, STR("twilio")));
    assert_string_equal(choice.picks[0].credential->tenant, "platform");
    ChannelSet both = 1U << CHANNEL_EMAIL | 1U << CHANNEL_SMS | inbox;
    assert_int_equal(routes_channels(world->routes, STR("acme"), 0), both);
    assert_int_equal(routes_channels(world->routes, STR("other"), 0), 1U << CHANNEL_SMS | inbox);
    assert_int_equal(routes_channels(NULL, STR("other"), 2), 2 | inbox);
    question.channel = CHANNEL_EMAIL;
    routes_choose(world->routes, &question, &choice);
    assert_true(!choice.implied && choice.count == 0);
}

static const char *push_vendor(World *world, const char *address)
{
    RouteQuestion question = {
        .tenant = TENANT,
        .channel = CHANNEL_PUSH,
        .address = str_from(address),
        .notification_id = STR("ntf_01M82XS89VEV77VD8AS0MCMH0B")};
    RouteChoice choice;
    routes_choose(world->routes, &question, &choice);
    assert_true(choice.count <= 1);
    return choice.count == 0 ? "" : arena_cstr(world->arena, choice.picks[0].vendor);
}

static void a_push_goes_to_the_vendor_of_its_address_only(void **state)
{
    World *world = *state;
    static const char device[] = "00ffaa11223344556677889900112233445566778899aabbccddeeff00112233";
    put_credential(world, new_credential(world, "acme", "fcm", "main"));
    assert_string_equal(push_vendor(world, "token:of-an-app"), "fcm");
    assert_string_equal(push_vendor(world, device), "");
    char reason[ROUTES_REASON_SIZE];
    Str app = STR("token:of-an-app");
    assert_true(routes_takes(world->routes, TENANT, CHANNEL_PUSH, app, reason));
    assert_false(routes_takes(world->routes, TENANT, CHANNEL_PUSH, str_from(device), reason));
    assert_string_equal(reason, "not an address of fcm (a registration token)");
    CredentialEntry *apns = new_credential(world, "acme", "apns", "main");
    apns->key_id = pb_borrow("KEY1234567");
    add_setting(world, apns, "team_id", "TEAM123456");
    add_setting(world, apns, "topic", "com.example.App");
    put_credential(world, apns);
    assert_string_equal(push_vendor(world, device), "apns");
    RouteEntry *route = new_route(world, "acme", "push");
    route->channel = STENTOR__V1__CHANNEL__CHANNEL_PUSH;
    add(world, route, "fcm", 0, 0);
    add(world, route, "apns", 1, 0);
    put_good(world, route);
    assert_string_equal(push_vendor(world, device), "apns");
    assert_string_equal(push_vendor(world, "token:of-an-app"), "fcm");
    assert_string_equal(push_vendor(world, "{\"endpoint\":\"https://a.example\"}"), "");
}

static void put_service(World *world, const char *vendor)
{
    CredentialEntry *entry = new_credential(world, "acme", vendor, "main");
    entry->reference = pb_borrow("");
    put_credential(world, entry);
}

static void a_chat_message_goes_to_the_service_of_its_address(void **state)
{
    World *world = *state;
    char reason[ROUTES_REASON_SIZE];
    RouteChoice choice;
    RouteQuestion question = {
        .tenant = TENANT,
        .channel = CHANNEL_WEBHOOK,
        .address = STR("https://discord.com/api/webhooks/1/x"),
        .notification_id = STR("ntf_01M82XS89VEV77VD8AS0MCMH0B")};
    put_service(world, "slack");
    put_service(world, "teams");
    routes_choose(world->routes, &question, &choice);
    assert_true(choice.implied && choice.count == 0);
    assert_false(routes_takes(world->routes, TENANT, CHANNEL_WEBHOOK, question.address, reason));
    assert_string_equal(
        reason, "not an address of slack (hooks.slack.com/services), teams "
                "(*.logic.azure.com, *.environment.api.powerplatform.com)");
    put_service(world, "discord");
    routes_choose(world->routes, &question, &choice);
    assert_int_equal(choice.count, 1);
    assert_true(str_eq(choice.picks[0].vendor, STR("discord")));
    assert_true(routes_takes(world->routes, TENANT, CHANNEL_WEBHOOK, question.address, reason));
    assert_true(routes_takes(world->routes, TENANT, CHANNEL_SMS, STR("+491511234567"), reason));
}

static void the_credential_promoted_last_is_the_active_one(void **state)
{
    World *world = *state;
    put_active(world, "acme", "sendgrid", 1);
    put_active(world, "acme", "sendgrid", 3);
    put_active(world, "acme", "sendgrid", 2);
    put_active(world, "acme", "postmark", 9);
    CredentialEntry *staged = new_credential(world, "acme", "sendgrid", "staged");
    staged->state = STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_STAGED;
    staged->changed_at_us = 8;
    put_credential(world, staged);
    const CredentialEntry *active = routes_account(world->routes, TENANT, STR("sendgrid"), STR(""));
    assert_string_equal(active->name, "at-3");
    assert_string_equal(routes_predecessor(world->routes, active)->name, "at-2");
    const CredentialEntry *older =
        routes_account(world->routes, TENANT, STR("sendgrid"), STR("at-1")); // by its name
    assert_int_equal(
        routes_credential_state(world->routes, older),
        STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_SUPERSEDED);
    assert_int_equal(
        routes_credential_state(world->routes, active),
        STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_ACTIVE);
    assert_null(routes_account(world->routes, TENANT, STR("sendgrid"), STR("staged")));
    assert_null(routes_account(world->routes, TENANT, STR("sendgrid"), STR("absent")));
}

static void the_tenant_s_own_credential_comes_before_the_platform_s(void **state)
{
    World *world = *state;
    put_active(world, "platform", "sendgrid", 9);
    assert_string_equal(
        routes_account(world->routes, TENANT, STR("sendgrid"), STR(""))->tenant, "platform");
    put_active(world, "acme", "sendgrid", 1);
    assert_string_equal(
        routes_account(world->routes, TENANT, STR("sendgrid"), STR(""))->tenant, "acme");
    assert_string_equal(
        routes_account(world->routes, STR("other"), STR("sendgrid"), STR(""))->tenant, "platform");
}

static void put_three(World *world, uint32_t sendgrid, uint32_t postmark)
{
    RouteEntry *route = new_route(world, "acme", "mixed");
    add(world, route, "smtp", 1, 0);
    add(world, route, "sendgrid", 0, sendgrid);
    add(world, route, "postmark", 0, postmark);
    route->max_vendors = 3;
    put_good(world, route);
    put_active(world, "acme", "sendgrid", 1);
    put_active(world, "acme", "postmark", 1);
}

static Str ntf(World *world, int n)
{
    return str_from(arena_printf(world->arena, "ntf_%026d", n));
}

static void weights_share_the_mails_of_a_step_and_each_mail_keeps_its_order(void **state)
{
    World *world = *state;
    put_three(world, 9, 1);
    int first = 0;
    for (int n = 0; n < 4000; n++) {
        RouteQuestion question = {.notification_id = ntf(world, n)};
        RouteChoice choice = choose(world, &question);
        RouteChoice again = choose(world, &question);
        assert_int_equal(choice.count, 3);
        assert_true(str_eq(choice.picks[0].vendor, again.picks[0].vendor));
        assert_true(str_eq(choice.picks[2].vendor, STR("smtp"))); // its step is the last
        first += str_eq(choice.picks[0].vendor, STR("sendgrid")) ? 1 : 0;
    }
    assert_in_range(first, 3500, 3700); // 3600 +- 5 sigma
}

static VendorStanding stand_by(
    void *ctx, Str vendor, const CredentialEntry *credential, uint32_t *ret_points)
{
    *ret_points = 10;
    const VendorStanding *of = ctx; // sendgrid, postmark, smtp
    assert_true((credential == NULL) == str_eq(vendor, STR("smtp")));
    return of[str_eq(vendor, STR("sendgrid")) ? 0 : str_eq(vendor, STR("postmark")) ? 1 : 2];
}

static const char *picked(World *world, const Str *avoid, size_t avoid_count, VendorStanding of[3])
{
    RouteChoice choice = choose(
        world, &(RouteQuestion){
                   .avoid = avoid, .avoid_count = avoid_count, .standing = stand_by, .ctx = of});
    Buf out;
    buf_init(&out, 256);
    for (size_t i = 0; i < choice.count; i++) {
        buf_printf(&out, "%s" STR_FMT, i > 0 ? " " : "", STR_ARG(choice.picks[i].vendor));
    }
    buf_cstr(&out, choice.waits ? " waits" : "");
    const char *text = arena_cstr(world->arena, buf_view(&out));
    buf_done(&out);
    return text;
}

static void avoided_open_and_suspended_vendors_are_left_out(void **state)
{
    World *world = *state;
    put_three(world, 1000, 1); // ntf_1 takes sendgrid first
    VendorStanding up[3] = {STANDING_UP, STANDING_UP, STANDING_UP};
    VendorStanding open[3] = {STANDING_OPEN, STANDING_UP, STANDING_UP};
    VendorStanding off[3] = {STANDING_UP, STANDING_DISABLED, STANDING_UP};
    VendorStanding shut[3] = {STANDING_OPEN, STANDING_DISABLED, STANDING_OPEN};
    Str sendgrid = STR("sendgrid");
    assert_string_equal(picked(world, NULL, 0, up), "sendgrid postmark smtp");
    assert_string_equal(picked(world, &sendgrid, 1, up), "postmark smtp");
    assert_string_equal(picked(world, NULL, 0, open), "postmark smtp");
    assert_string_equal(picked(world, NULL, 0, off), "sendgrid smtp");
    RouteChoice choice = choose(world, &(RouteQuestion){.standing = stand_by, .ctx = off});
    assert_int_equal(choice.all, 3); // it is still known which one is left out
    assert_true(str_eq(choice.picks[2].vendor, STR("postmark")));
    assert_string_equal(picked(world, NULL, 0, shut), "sendgrid postmark smtp waits");
    assert_true(
        routes_credential_changed(world->routes, TENANT, STR("postmark.at-1"), STR_EMPTY, NULL));
    assert_string_equal(picked(world, NULL, 0, up), "sendgrid smtp");
}

static void a_route_that_does_not_fall_back_on_open_waits_for_its_first_vendor(void **state)
{
    World *world = *state;
    VendorStanding open[3] = {STANDING_OPEN, STANDING_UP, STANDING_UP};
    RouteEntry *route = new_route(world, "acme", "strict");
    char *on[] = {pb_borrow("unsent")};
    route->fallback_on = on;
    route->n_fallback_on = 1;
    add(world, route, "sendgrid", 0, 0);
    add(world, route, "smtp", 1, 0);
    put_good(world, route);
    put_active(world, "acme", "sendgrid", 1);
    assert_string_equal(picked(world, NULL, 0, open), "sendgrid smtp waits");
}

static void at_most_max_vendors_meet_one_mail(void **state)
{
    World *world = *state;
    VendorStanding up[3] = {STANDING_UP, STANDING_UP, STANDING_UP};
    Str refused[] = {STR("sendgrid"), STR("mailgun")};
    RouteEntry *route = new_route(world, "acme", "three");
    add(world, route, "sendgrid", 0, 0);
    add(world, route, "postmark", 1, 0);
    add(world, route, "smtp", 2, 0);
    put_good(world, route);
    put_active(world, "acme", "sendgrid", 1);
    put_active(world, "acme", "postmark", 1);
    assert_string_equal(picked(world, NULL, 0, up), "sendgrid postmark");
    assert_string_equal(picked(world, refused, 1, up), "postmark");
    assert_string_equal(picked(world, refused, 2, up), "");
}

static void a_degraded_vendor_loses_points_of_its_share_or_goes_last(void **state)
{
    World *world = *state;
    VendorStanding degraded[3] = {STANDING_DEGRADED, STANDING_UP, STANDING_UP};
    put_three(world, 1, 1);
    int first = 0;
    for (int n = 0; n < 4000; n++) {
        RouteQuestion question = {
            .notification_id = ntf(world, n), .standing = stand_by, .ctx = degraded};
        RouteChoice choice = choose(world, &question);
        first += str_eq(choice.picks[0].vendor, STR("sendgrid")) ? 1 : 0;
    }
    assert_in_range(first, 1480, 1720); // 40 of 100, in the place of 50
    RouteEntry *route = new_route(world, "acme", "a");
    char *on[] = {pb_borrow("degraded")};
    route->fallback_on = on;
    route->n_fallback_on = 1;
    add(world, route, "sendgrid", 0, 0);
    add(world, route, "smtp", 1, 0);
    put_good(world, route);
    assert_string_equal(picked(world, NULL, 0, degraded), "smtp sendgrid");
}

static bool takes_setting(
    World *world, const char *vendor, const char *name, const char *value, Error *err)
{
    Stentor__V1__VendorSetting setting;
    Stentor__V1__VendorSetting *settings[] = {&setting};
    stentor__v1__vendor_setting__init(&setting);
    setting.name = pb_borrow(name);
    setting.value = pb_borrow(value);
    CredentialEntry *entry = new_credential(world, "acme", vendor, "main");
    entry->settings = settings;
    entry->n_settings = 1;
    return credential_entry_check(entry, err);
}

static void a_secret_goes_to_no_host_in_clear(void **state)
{
    World *world = *state;
    Error err = {0};
    static const char *const good[] = {
        "https://api.example.com", "https://10.1.2.3:8443", "http://127.0.0.1:8080",
        "http://localhost/x"};
    static const char *const bad[] = {
        "http://api.example.com",
        "http://127.0.0.1.example.com",
        "http://127.0.0.1:80@a.example",
        "https://",
        "ftp://localhost/",
        "https://169.254.169.254/latest"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(takes_setting(world, "sendgrid", "base_url", good[i], &err));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(takes_setting(world, "sendgrid", "base_url", bad[i], &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(err.text, "settings.base_url: "));
    }
}

static void a_setting_of_another_vendor_is_refused_with_those_of_its_own(void **state)
{
    World *world = *state;
    static const struct {
        const char *vendor, *name, *says;
    } rows[] = {
        {"postmark", "message_stream", ""},
        {"postmark", "base_url", ""},
        {"postmark", "region",
         "settings.region: postmark has no such setting; it has base_url, message_stream"},
        {"resend", "subaccount",
         "settings.subaccount: resend has no such setting; it has base_url"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Error err = {0};
        bool good = takes_setting(world, rows[i].vendor, rows[i].name, "https://localhost", &err);
        assert_int_equal(good, rows[i].says[0] == '\0');
        assert_string_equal(err.text, rows[i].says);
    }
}

static void a_wrong_credential_is_refused_with_its_field(void **state)
{
    World *world = *state;
    static const struct {
        const char *vendor, *name, *key_id, *says;
    } rows[] = {
        {"pigeon", "main", "", "vendor: 'pigeon'"},
        {"smtp", "main", "", "STENTOR_SMTP_PASSWORD_FILE"},
        {"sendgrid", "Main", "", "name:"},
        {"sendgrid", "main", "a\nb", "key_id:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Error err = {0};
        CredentialEntry *entry = new_credential(world, "acme", rows[i].vendor, rows[i].name);
        entry->key_id = pb_borrow(rows[i].key_id);
        assert_false(credential_entry_check(entry, &err));
        if (strstr(err.text, rows[i].says) == NULL) {
            fail_msg("%s", err.text);
        }
    }
}

// ---- what is wrong in an entry ----

static void refuse(World *world, RouteEntry *route, const char *text)
{
    Error err = {0};
    assert_false(put(world, route, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, text) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, text);
    }
}

static void a_wrong_route_is_refused_with_its_field_and_the_earlier_one_stays(void **state)
{
    World *world = *state;
    put_smtp(world, "acme", "r", 3);
    refuse(world, new_route(world, "acme", "r"), "vendors: required");
    RouteEntry *route = new_route(world, "acme", "r");
    add(world, route, "pigeon", 0, 0);
    refuse(world, route, "vendors[0].vendor: 'pigeon'");
    route = new_route(world, "acme", "r");
    add(world, route, "smtp", 0, 0);
    add(world, route, "smtp", 1, 0);
    refuse(world, route, "vendors[1]: the same");
    route = new_route(world, "acme", "r");
    route->channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    add(world, route, "smtp", 0, 0);
    refuse(world, route, "carries no sms");
    route = new_route(world, "acme", "r");
    add(world, route, "smtp", 0, 1001);
    refuse(world, route, "weight is 0 to 1000");
    const struct {
        const char *domain, *country, *unknown, *text;
        uint32_t max_vendors, settle_ms;
    } rows[] = {
        {"Example.com", "", "", "domain:", 0, 0}, {"com", "", "", "domain:", 0, 0},
        {"*.*.com", "", "", "domain:", 0, 0},     {"a..b", "", "", "domain:", 0, 0},
        {"", "de", "", "country:", 0, 0},         {"", "DEU", "", "country:", 0, 0},
        {"", "", "twice", "unknown:", 0, 0},      {"", "", "", "max_vendors:", 9, 0},
        {"", "", "", "settle_ms:", 0, 3600001},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        route = new_route(world, "acme", "r");
        add(world, route, "smtp", 0, 0);
        route->domain = pb_borrow(rows[i].domain);
        route->country = pb_borrow(rows[i].country);
        route->unknown = pb_borrow(rows[i].unknown);
        route->max_vendors = rows[i].max_vendors;
        route->settle_ms = rows[i].settle_ms;
        refuse(world, route, rows[i].text);
    }
    assert_int_equal(routes_get(world->routes, TENANT, STR("r"))->position, 3);
    Error err = {0};
    assert_false(routes_changed(world->routes, TENANT, STR("r"), STR("\xff\xff"), &err));
    assert_non_null(routes_get(world->routes, TENANT, STR("r")));
}

static void in_app_has_the_inbox_without_route_and_credential(void **state)
{
    World *world = *state;
    RouteChoice choice;
    RouteQuestion question = {
        .tenant = TENANT,
        .channel = CHANNEL_INAPP,
        .category = CATEGORY_TRANSACTIONAL,
        .notification_id = STR("ntf_1"),
    };
    assert_true(channel_set_has(routes_channels(world->routes, TENANT, 0), CHANNEL_INAPP));
    routes_choose(world->routes, &question, &choice);
    assert_true(choice.implied && choice.count == 1 && choice.picks[0].credential == NULL);
    assert_true(str_eq(choice.picks[0].vendor, STR("inapp")));
    assert_int_equal(choice.rules.unknown, ROUTING_RESEND);
    RouteEntry *route = new_route(world, "acme", "inbox");
    route->channel = STENTOR__V1__CHANNEL__CHANNEL_INAPP;
    add(world, route, "inapp", 0, 0);
    put_good(world, route);
    routes_choose(world->routes, &question, &choice);
    assert_true(choice.route != NULL && choice.count == 1);
    question.channel = CHANNEL_PUSH;
    routes_choose(world->routes, &question, &choice);
    assert_int_equal(choice.count, 0);
    route->vendors[0]->credential = pb_borrow("main");
    refuse(world, route, "vendors[0].credential: inapp has none");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_tenant_s_own_routes_come_first_then_by_position_then_by_key),
        TEST(a_route_fits_by_category_domain_and_country),
        TEST(without_a_route_nothing_is_picked_and_the_defaults_hold),
        TEST(a_route_s_rules_are_those_of_the_mail),
        TEST(an_sms_without_a_route_goes_to_whom_there_is_a_credential_for),
        TEST(a_push_goes_to_the_vendor_of_its_address_only),
        TEST(in_app_has_the_inbox_without_route_and_credential),
        TEST(a_chat_message_goes_to_the_service_of_its_address),
        TEST(the_credential_promoted_last_is_the_active_one),
        TEST(the_tenant_s_own_credential_comes_before_the_platform_s),
        TEST(weights_share_the_mails_of_a_step_and_each_mail_keeps_its_order),
        TEST(avoided_open_and_suspended_vendors_are_left_out),
        TEST(a_route_that_does_not_fall_back_on_open_waits_for_its_first_vendor),
        TEST(at_most_max_vendors_meet_one_mail),
        TEST(a_degraded_vendor_loses_points_of_its_share_or_goes_last),
        TEST(a_secret_goes_to_no_host_in_clear),
        TEST(a_setting_of_another_vendor_is_refused_with_those_of_its_own),
        TEST(a_wrong_credential_is_refused_with_its_field),
        TEST(a_wrong_route_is_refused_with_its_field_and_the_earlier_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
