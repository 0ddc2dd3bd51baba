// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/render/assets.h"
#include "common/render/content.h"

#define HEX_OF(pair) pair pair pair pair pair pair pair pair
#define HEX_1 HEX_OF("01010101")
#define HEX_2 HEX_OF("02020202")

typedef struct Set {
    Arena *arena;
    Assets *assets;
} Set;

static int make(void **state)
{
    Set *set = xcalloc(1, sizeof *set);
    set->arena = arena_new(0);
    set->assets = assets_new();
    *state = set;
    return 0;
}

static int drop(void **state)
{
    Set *set = *state;
    assets_free(set->assets);
    arena_free(set->arena);
    free(set);
    return 0;
}

// An asset whose hash is 32 times `byte`, of the tenant in its entry.
static bool put_as(Set *set, const char *tenant, const char *owner, const char *name, int byte)
{
    uint8_t hash[32];
    Error err = {0};
    Str payload = STR_EMPTY;
    Stentor__V1__TemplateAsset entry;
    memset(hash, byte, sizeof hash);
    stentor__v1__template_asset__init(&entry);
    entry.tenant = arena_cstr(set->arena, str_from(owner));
    entry.name = arena_cstr(set->arena, str_from(name));
    entry.sha256 = (ProtobufCBinaryData){sizeof hash, hash};
    entry.content_type = arena_cstr(set->arena, STR("image/png"));
    entry.size_bytes = 70;
    entry.updated_by = arena_cstr(set->arena, STR("key1"));
    assert_true(event_pack(&entry.base, set->arena, &payload, &err));
    return assets_put(set->assets, str_from(tenant), str_from(name), payload, 7, &err);
}

static void put(Set *set, const char *tenant, const char *name, int byte)
{
    assert_true(put_as(set, tenant, tenant, name, byte));
}

static bool find(
    Set *set, const char *tenant, const char *url, const char *name, Buf *out, Error *err)
{
    AssetLookup lookup = {
        .assets = set->assets, .tenant = str_from(tenant), .public_url = str_from(url)};
    buf_clear(out);
    return asset_find_address(&lookup, str_from(name), out, err);
}

static void the_tenants_own_asset_wins_over_the_platforms(void **state)
{
    Set *set = *state;
    Error err = {0};
    Buf out;
    buf_init(&out, 1024);
    put(set, "platform", "logo.png", 1);
    assert_true(find(set, "acme", "https://x.test", "logo.png", &out, &err));
    assert_string_equal(buf_c(&out), "https://x.test/v1/assets/platform/" HEX_1 ".png");
    put(set, "acme", "logo.png", 2);
    assert_true(find(set, "acme", "https://x.test", "logo.png", &out, &err));
    assert_string_equal(buf_c(&out), "https://x.test/v1/assets/acme/" HEX_2 ".png");
    assert_true(find(set, "other", "https://x.test", "logo.png", &out, &err));
    assert_string_equal(buf_c(&out), "https://x.test/v1/assets/platform/" HEX_1 ".png");
    assert_true(assets_put(set->assets, STR("acme"), STR("logo.png"), STR_EMPTY, 8, &err));
    assert_true(find(set, "acme", "https://x.test", "logo.png", &out, &err));
    assert_string_equal(buf_c(&out), "https://x.test/v1/assets/platform/" HEX_1 ".png");
    buf_done(&out);
}

static void what_has_no_address_is_named(void **state)
{
    Set *set = *state;
    Error err = {0};
    Buf out;
    buf_init(&out, 1024);
    put(set, "acme", "logo.png", 1);
    assert_false(find(set, "other", "https://x.test", "logo.png", &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "there is no asset 'logo.png'"));
    assert_false(find(set, "acme", "", "logo.png", &out, &err));
    assert_non_null(strstr(err.text, "'logo.png' has no address: STENTOR_RENDERER_PUBLIC_URL"));
    buf_done(&out);
}

static void another_tenants_entry_is_refused_and_the_one_before_stays(void **state)
{
    Set *set = *state;
    Error err = {0};
    put(set, "acme", "logo.png", 1);
    assert_false(put_as(set, "acme", "evil", "logo.png", 2));
    assert_false(assets_put(set->assets, STR("acme"), STR("logo.png"), STR("\xff"), 9, &err));
    assert_string_equal(assets_own(set->assets, STR("acme"), STR("logo.png"))->hex, HEX_1);
    assert_true(assets_name(set->assets, STR("acme"), STR(HEX_1)));
    assert_false(assets_name(set->assets, STR("acme"), STR(HEX_2)));
    assert_false(assets_name(set->assets, STR("evil"), STR(HEX_1)));
}

static void a_list_goes_on_behind_a_name(void **state)
{
    Set *set = *state;
    const Asset **found = NULL;
    put(set, "acme", "b.png", 1);
    put(set, "acme", "c.png", 1);
    put(set, "acme", "a.png", 1);
    assert_int_equal(assets_list(set->assets, STR("acme"), STR_EMPTY, 2, set->arena, &found), 2);
    assert_string_equal(found[0]->name, "a.png");
    assert_string_equal(found[1]->name, "b.png");
    assert_int_equal(assets_list(set->assets, STR("acme"), STR("b.png"), 9, set->arena, &found), 1);
    assert_string_equal(found[0]->name, "c.png");
    assert_int_equal(assets_list(set->assets, STR("other"), STR_EMPTY, 9, set->arena, &found), 0);
    assert_int_equal(assets_count(set->assets, STR("acme")), 3);
}

static CompiledVersion *compile(Set *set, const char *html, const char *partial)
{
    Error err = {0};
    Str packed = STR_EMPTY;
    Stentor__V1__TemplateVersion version;
    Stentor__V1__LocaleVariant locale;
    Stentor__V1__TemplatePartial head;
    stentor__v1__template_version__init(&version);
    stentor__v1__locale_variant__init(&locale);
    stentor__v1__template_partial__init(&head);
    version.key = arena_cstr(set->arena, STR("welcome"));
    locale.locale = arena_cstr(set->arena, STR("en-US"));
    locale.subject = arena_cstr(set->arena, STR("Hello"));
    locale.html = arena_cstr(set->arena, str_from(html));
    head.name = arena_cstr(set->arena, STR("head"));
    head.source = arena_cstr(set->arena, str_from(partial));
    version.n_locales = 1;
    version.locales = (Stentor__V1__LocaleVariant *[]){&locale};
    version.n_partials = 1;
    version.partials = (Stentor__V1__TemplatePartial *[]){&head};
    assert_true(event_pack(&version.base, set->arena, &packed, &err));
    return version_compile(packed);
}

static void a_version_says_which_assets_it_names(void **state)
{
    Set *set = *state;
    Str names[8];
    CompiledVersion *version = compile(
        set,
        "{{> head}}{{#if a}}<img src=\"{{asset 'a.png'}}\">{{/if}}{{asset variable}}"
        "{{#if (eq (asset \"b.png\") c)}}{{asset 'a.png'}}{{/if}}",
        "<img src=\"{{asset 'head.png'}}\">");
    assert_int_equal(version->broken.kind, ERROR_NONE);
    assert_int_equal(version_assets(version, 8, set->arena, names), 3);
    assert_true(str_eq(names[0], STR("head.png"))); // the subject may use the partial too
    assert_true(str_eq(names[1], STR("a.png")));
    assert_true(str_eq(names[2], STR("b.png")));
    assert_int_equal(version_assets(version, 2, set->arena, names), 2);
    version_free(version);
}

static bool render(Set *set, const CompiledVersion *version, Draft *draft, RenderFailure *failure)
{
    AssetLookup lookup = {
        .assets = set->assets, .tenant = STR("acme"), .public_url = STR("https://x.test")};
    TemplateAssets assets = {.find = asset_find_address, .ctx = &lookup};
    ContentContext context = {.assets = &assets};
    json_t *variables = json_object();
    bool ok = render_content(
        version, version_locale(version, STR_EMPTY), variables, &context, draft, failure);
    json_decref(variables);
    return ok;
}

static void a_mail_shows_the_address_and_a_missing_asset_is_its_fault(void **state)
{
    Set *set = *state;
    Draft draft;
    RenderFailure failure = {.code = FAILURE_NONE};
    CompiledVersion *version =
        compile(set, "<p>{{> head}}</p>", "<img src=\"{{asset 'logo.png'}}\">");
    draft_init(&draft);
    assert_false(render(set, version, &draft, &failure));
    assert_int_equal(failure.code, FAILURE_RENDER);
    assert_non_null(strstr(failure.reason, "html: "));
    assert_non_null(strstr(failure.reason, "there is no asset 'logo.png'"));
    put(set, "acme", "logo.png", 1);
    assert_true(render(set, version, &draft, &failure));
    assert_string_equal(
        buf_c(&draft.html), "<p><img src=\"https://x.test/v1/assets/acme/" HEX_1 ".png\"></p>");
    draft_done(&draft);
    version_free(version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_tenants_own_asset_wins_over_the_platforms, make, drop),
        cmocka_unit_test_setup_teardown(what_has_no_address_is_named, make, drop),
        cmocka_unit_test_setup_teardown(
            another_tenants_entry_is_refused_and_the_one_before_stays, make, drop),
        cmocka_unit_test_setup_teardown(a_list_goes_on_behind_a_name, make, drop),
        cmocka_unit_test_setup_teardown(a_version_says_which_assets_it_names, make, drop),
        cmocka_unit_test_setup_teardown(
            a_mail_shows_the_address_and_a_missing_asset_is_its_fault, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
