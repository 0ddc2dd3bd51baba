// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/api/auth.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/config.pb-c.h"

#define GOOD_KEY "stn_k1.s3cret"

typedef struct KeySpec {
    int64_t revoked_at_us;
    int64_t expires_at_us;
    const char *scope; // NULL: none, as before there were any
    int64_t created_at_us;
    bool revoked;
} KeySpec;

static void put_spec(Auth *auth, const char *key_id, const KeySpec *spec)
{
    uint8_t hash[SHA256_LEN];
    sha256(STR(GOOD_KEY), hash);
    Arena *arena = arena_new(0);
    Stentor__V1__ApiKey key;
    stentor__v1__api_key__init(&key);
    key.key_id = arena_cstr(arena, str_from(key_id));
    key.tenant = arena_cstr(arena, STR("acme"));
    key.secret_hash = pb_data(str_of(hash, sizeof hash));
    key.created_at_us = spec->created_at_us;
    key.revoked_at_us = spec->revoked_at_us;
    key.expires_at_us = spec->expires_at_us;
    key.revoked = spec->revoked;
    char *scopes[] = {arena_cstr(arena, str_from(spec->scope))};
    key.scopes = scopes;
    key.n_scopes = spec->scope != NULL ? 1 : 0;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&key.base, arena, &bytes, NULL));
    assert_true(auth_changed(auth, STR("acme"), str_from(key_id), bytes, NULL));
    arena_free(arena);
}

static void put(Auth *auth, const char *key_id, int64_t revoked_at_us)
{
    put_spec(auth, key_id, &(KeySpec){.revoked_at_us = revoked_at_us});
}

static bool check(const Auth *auth, const char *header)
{
    AuthCaller caller = {.key_id = STR_EMPTY};
    bool ok = auth_check(auth, str_from(header), 1000, &caller) == AUTH_OK;
    assert_true(str_eq(caller.key_id, ok ? STR("k1") : STR_EMPTY));
    assert_string_equal(caller.tenant, ok ? "acme" : "");
    return ok;
}

static void only_the_whole_right_key_is_let_in(void **state)
{
    (void)state;
    Auth *auth = auth_new();
    assert_false(check(auth, "Bearer " GOOD_KEY));
    put(auth, "k1", 0);
    assert_true(check(auth, "Bearer " GOOD_KEY));
    assert_true(check(auth, "bearer  " GOOD_KEY " "));
    static const char *const BAD[] = {
        "",
        "Bearer",
        "Bearer ",
        GOOD_KEY,
        ("Basic " GOOD_KEY),
        "Bearer stn_k1.s3cret2",
        "Bearer stn_k1.",
        "Bearer stn_k1",
        "Bearer k1.s3cret",
        "Bearer stn_k2.s3cret",
        "Bearer .",
        "Bearer stn_.",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        if (check(auth, BAD[i])) {
            fail_msg("let in: '%s'", BAD[i]);
        }
    }
    auth_free(auth);
}

static void a_key_id_is_the_same_with_and_without_its_prefix(void **state)
{
    (void)state;
    Auth *auth = auth_new();
    put(auth, "stn_k1", 0);
    assert_true(check(auth, "Bearer " GOOD_KEY));
    auth_free(auth);
}

static void a_revoked_or_removed_key_is_not_let_in(void **state)
{
    (void)state;
    Auth *auth = auth_new();
    put(auth, "k1", 999);
    assert_false(check(auth, "Bearer " GOOD_KEY));
    put(auth, "k1", 0);
    assert_true(check(auth, "Bearer " GOOD_KEY));
    assert_true(
        auth_changed(auth, STR("other"), STR("k1"), STR_EMPTY, NULL)); // not theirs to remove
    assert_true(check(auth, "Bearer " GOOD_KEY));
    assert_true(auth_changed(auth, STR("acme"), STR("k1"), STR_EMPTY, NULL));
    assert_false(check(auth, "Bearer " GOOD_KEY));
    auth_free(auth);
}

static void a_key_that_cannot_be_read_is_refused(void **state)
{
    (void)state;
    Auth *auth = auth_new();
    Error err = {0};
    assert_false(auth_changed(auth, STR("acme"), STR("k1"), STR("\x0a"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_false(auth_changed(
        auth, STR("acme"), STR("k1"),
        STR("\x0a\x02k1\x12\x04"
            "acme"),
        &err)); // no hash
    assert_int_equal(err.kind, ERROR_PERMANENT);
    auth_free(auth);
}

static AuthVerdict verdict_of(const KeySpec *spec, const char *key, ScopeSet *ret_scopes)
{
    Auth *auth = auth_new();
    AuthCaller caller = {.key_id = STR_EMPTY};
    put_spec(auth, "k1", spec);
    AuthVerdict verdict = auth_check(auth, str_from(key), 1000, &caller);
    *ret_scopes = caller.scopes;
    auth_free(auth);
    return verdict;
}

static void finding_11_a_key_ends_at_its_time_and_only_who_knows_it_hears_why(void **state)
{
    (void)state;
    ScopeSet scopes = 0;
    const char *good = "Bearer " GOOD_KEY;
    const char *wrong = "Bearer stn_k1.other";
    assert_int_equal(verdict_of(&(KeySpec){.expires_at_us = 1001}, good, &scopes), AUTH_OK);
    assert_int_equal(verdict_of(&(KeySpec){.expires_at_us = 1000}, good, &scopes), AUTH_EXPIRED);
    assert_int_equal(verdict_of(&(KeySpec){.expires_at_us = 1000}, wrong, &scopes), AUTH_UNKNOWN);
    assert_int_equal(verdict_of(&(KeySpec){.revoked_at_us = 1001}, good, &scopes), AUTH_OK);
    assert_int_equal(verdict_of(&(KeySpec){.revoked_at_us = 1000}, good, &scopes), AUTH_REVOKED);
    assert_int_equal(verdict_of(&(KeySpec){.revoked_at_us = 1000}, wrong, &scopes), AUTH_UNKNOWN);
}

static void a_key_that_was_ended_at_once_is_refused_by_who_has_an_earlier_clock(void **state)
{
    (void)state;
    ScopeSet scopes = 0;
    KeySpec ended = {.revoked_at_us = 1000 + INT64_C(3600000000), .revoked = true};
    assert_int_equal(verdict_of(&ended, "Bearer " GOOD_KEY, &scopes), AUTH_REVOKED);
    assert_int_equal(verdict_of(&ended, "Bearer stn_k1.other", &scopes), AUTH_UNKNOWN);
}

static void finding_11_a_key_may_what_its_scopes_say_and_one_without_any_what_it_could(void **state)
{
    (void)state;
    ScopeSet scopes = 0;
    const char *good = "Bearer " GOOD_KEY;
    assert_int_equal(verdict_of(&(KeySpec){.scope = NULL}, good, &scopes), AUTH_OK);
    assert_int_equal(scopes, SCOPE_ALL);
    assert_int_equal(verdict_of(&(KeySpec){.scope = "recipients:read"}, good, &scopes), AUTH_OK);
    assert_int_equal(scopes, SCOPE_BIT(SCOPE_RECIPIENTS_READ));
    // of a newer version: known to be a scope, but not here
    assert_int_equal(verdict_of(&(KeySpec){.scope = "moon:land"}, good, &scopes), AUTH_OK);
    assert_int_equal(scopes, 0);
}

static void put_ranges(Auth *auth, char **ranges, size_t count, bool good)
{
    uint8_t hash[SHA256_LEN];
    static char id[] = "k1", tenant[] = "acme";
    Error err = {0};
    Arena *arena = arena_new(0);
    Stentor__V1__ApiKey key;
    stentor__v1__api_key__init(&key);
    sha256(STR(GOOD_KEY), hash);
    key.key_id = id;
    key.tenant = tenant;
    key.secret_hash = pb_data(str_of(hash, sizeof hash));
    key.allowed_cidrs = ranges;
    key.n_allowed_cidrs = count;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&key.base, arena, &bytes, NULL));
    assert_int_equal(auth_changed(auth, STR("acme"), STR("k1"), bytes, &err), good);
    arena_free(arena);
}

static bool allows(const Auth *auth, const char *address)
{
    AuthCaller caller = {.key_id = STR_EMPTY};
    Error err;
    HttpProxies one;
    assert_int_equal(auth_check(auth, STR("Bearer " GOOD_KEY), 1000, &caller), AUTH_OK);
    assert_true(http_proxies_parse(str_from(address), &one, &err));
    return caller.from == NULL || http_ranges_have(caller.from, &one.ranges[0].address);
}

static void a_key_is_good_from_its_addresses_only_and_one_without_any_from_everywhere(void **state)
{
    (void)state;
    static char net[] = "10.1.0.0/16", host[] = "192.0.2.7", v6[] = "2001:db8::/32";
    static char wrong[] = "ten.one";
    Auth *auth = auth_new();
    put_ranges(auth, NULL, 0, true);
    assert_true(allows(auth, "203.0.113.9"));
    put_ranges(auth, (char *[]){net, host, v6}, 3, true);
    assert_true(allows(auth, "10.1.255.1"));
    assert_true(allows(auth, "192.0.2.7"));
    assert_true(allows(auth, "2001:db8:7::1"));
    assert_false(allows(auth, "10.2.0.1"));
    assert_false(allows(auth, "192.0.2.8"));
    assert_false(allows(auth, "2001:db9::1"));
    put_ranges(auth, (char *[]){net, wrong}, 2, false); // would be allowed from anywhere else
    assert_false(allows(auth, "10.2.0.1"));
    auth_free(auth);
}

static ScopeSet scopes_of(const char *tenant, const char *name)
{
    char *scopes[] = {(char *)(uintptr_t)name};
    Stentor__V1__ApiKey key;
    stentor__v1__api_key__init(&key);
    key.tenant = (char *)(uintptr_t)tenant;
    key.scopes = scopes;
    key.n_scopes = name != NULL ? 1 : 0;
    return auth_scopes(&key);
}

static void only_a_key_of_the_platform_that_names_it_is_an_operators(void **state)
{
    (void)state;
    const ScopeSet operates = SCOPE_BIT(SCOPE_TENANTS_OPERATE);
    assert_true((scopes_of("platform", "operator") & operates) != 0);
    assert_true((scopes_of("platform", "tenants:operate") & operates) != 0);
    static const char *const others[][2] = {{"acme", "operator"},  {"acme", "tenants:operate"},
                                            {"acme", "admin"},     {"acme", NULL},
                                            {"platform", "admin"}, {"platform", "keys:manage"},
                                            {"platform", NULL},    {"platform2", "operator"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(scopes_of(others[i][0], others[i][1]) & operates, 0);
    }
    // what an installation's keys of before could is what they can
    assert_int_equal(scopes_of("acme", NULL) & SCOPE_BIT(SCOPE_KEYS_MANAGE), 0);
    assert_int_equal(scopes_of("acme", "admin") & SCOPE_BIT(SCOPE_KEYS_MANAGE), 0);
    assert_true((scopes_of("acme", "operator") & SCOPE_BIT(SCOPE_KEYS_MANAGE)) != 0);
}

static void keys_that_expire_soon_are_counted(void **state)
{
    (void)state;
    enum { NOW = 1000, WITHIN = 100 };
    Auth *auth = auth_new();
    AuthEnding none = auth_ending(auth, NOW, WITHIN);
    assert_true(none.soon == 0 && none.first_us == INT64_MAX);
    put_spec(auth, "never", &(KeySpec){0});
    put_spec(auth, "later", &(KeySpec){.expires_at_us = NOW + WITHIN + 1});
    AuthEnding later = auth_ending(auth, NOW, WITHIN);
    assert_true(later.soon == 0 && later.first_us == NOW + WITHIN + 1);
    put_spec(auth, "soon", &(KeySpec){.expires_at_us = NOW + WITHIN});
    put_spec(auth, "sooner", &(KeySpec){.expires_at_us = NOW + 2});
    AuthEnding soon = auth_ending(auth, NOW, WITHIN);
    assert_true(soon.soon == 2 && soon.first_us == NOW + 2);
    auth_free(auth);
}

static void keys_whose_end_is_meant_are_not_counted(void **state)
{
    (void)state;
    enum { NOW = 1000, WITHIN = 100 };
    Auth *auth = auth_new();
    put_spec(auth, "expired", &(KeySpec){.expires_at_us = NOW});
    put_spec(auth, "rotated", &(KeySpec){.expires_at_us = NOW + 2, .revoked_at_us = NOW + 1});
    put_spec(auth, "short", &(KeySpec){.expires_at_us = NOW + 2, .created_at_us = NOW - 98});
    AuthEnding ending = auth_ending(auth, NOW, WITHIN);
    assert_true(ending.soon == 0 && ending.first_us == INT64_MAX);
    put_spec(auth, "longer", &(KeySpec){.expires_at_us = NOW + 3, .created_at_us = NOW - 98});
    assert_true(auth_ending(auth, NOW, WITHIN).soon == 1);
    auth_free(auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_whole_right_key_is_let_in),
        cmocka_unit_test(a_key_is_good_from_its_addresses_only_and_one_without_any_from_everywhere),
        cmocka_unit_test(only_a_key_of_the_platform_that_names_it_is_an_operators),
        cmocka_unit_test(a_key_id_is_the_same_with_and_without_its_prefix),
        cmocka_unit_test(a_revoked_or_removed_key_is_not_let_in),
        cmocka_unit_test(a_key_that_cannot_be_read_is_refused),
        cmocka_unit_test(a_key_that_was_ended_at_once_is_refused_by_who_has_an_earlier_clock),
        cmocka_unit_test(finding_11_a_key_ends_at_its_time_and_only_who_knows_it_hears_why),
        cmocka_unit_test(
            finding_11_a_key_may_what_its_scopes_say_and_one_without_any_what_it_could),
        cmocka_unit_test(keys_that_expire_soon_are_counted),
        cmocka_unit_test(keys_whose_end_is_meant_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
