// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/render/template_cache.h"

typedef struct Sample {
    const char *tenant;
    const char *key;
    const char *version;
    const char *html;
    Stentor__V1__Channel channel;
    Stentor__V1__TemplateStatus status;
    int64_t stored_at_us;
} Sample;

static char *copy(Arena *arena, const char *text)
{
    return arena_cstr(arena, str_from(text));
}

// One locale, "en"; packed in `arena`.
static Str pack(Arena *arena, const Sample *sample)
{
    Stentor__V1__LocaleVariant locale;
    stentor__v1__locale_variant__init(&locale);
    locale.locale = copy(arena, "en");
    locale.subject = copy(arena, "Hi {{name}}");
    locale.html = copy(arena, sample->html);
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.tenant = copy(arena, sample->tenant);
    version.key = copy(arena, sample->key);
    version.version = copy(arena, sample->version);
    version.channel = sample->channel;
    version.status = sample->status;
    version.locales = (Stentor__V1__LocaleVariant *[]){&locale};
    version.n_locales = 1;
    Str bytes = STR_EMPTY;
    Error err = {0};
    assert_true(event_pack(&version.base, arena, &bytes, &err));
    return bytes;
}

static bool put(TemplateCache *cache, const char *subject_key, const Sample *sample, Error *err)
{
    Arena *arena = arena_new(0);
    bool ok = template_cache_put(
        cache, str_from(sample->tenant), str_from(subject_key), pack(arena, sample),
        sample->stored_at_us, err);
    arena_free(arena);
    return ok;
}

static Sample sample_of(const char *tenant, const char *html)
{
    return (Sample){
        .tenant = tenant,
        .key = "welcome",
        .version = "1.2.0",
        .html = html,
        .channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL};
}

static const CompiledVersion *get(TemplateCache *cache, const char *tenant)
{
    const TemplateName wanted = {str_from(tenant), STR("welcome"), CHANNEL_EMAIL, STR("1.2.0"), 0};
    return template_cache_get(cache, &wanted);
}

static const CompiledVersion *get_for(TemplateCache *cache, Channel channel, const char *version)
{
    const TemplateName wanted = {STR("acme"), STR("welcome"), channel, str_from(version), 0};
    return template_cache_get(cache, &wanted);
}

static void a_version_is_found_by_tenant_key_and_version(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Sample sample = sample_of("acme", "<p>");
    Error err = {0};
    assert_true(put(cache, "welcome.1_2_0", &sample, &err));
    assert_int_equal(template_cache_count(cache), 1);
    assert_int_equal(template_cache_compiled(cache), 0);
    const CompiledVersion *version = get(cache, "acme");
    assert_non_null(version);
    assert_int_equal(version->broken.kind, ERROR_NONE);
    assert_string_equal(version->source->version, "1.2.0");
    assert_int_equal(template_cache_compiled(cache), 1);
    assert_ptr_equal(get(cache, "acme"), version);
    assert_null(get(cache, "other"));
    assert_null(get_for(cache, CHANNEL_EMAIL, "1.2.1"));
    assert_null(get_for(cache, CHANNEL_EMAIL, ""));
    assert_null(get_for(cache, CHANNEL_SMS, "1.2.0"));
    template_cache_free(cache);
}

static const char *html_for(TemplateCache *cache, Channel channel)
{
    const CompiledVersion *version = get_for(cache, channel, "1.2.0");
    return version == NULL ? "-" : version->source->locales[0]->html;
}

static void remove_at(TemplateCache *cache, const char *subject_key)
{
    Error err = {0};
    assert_true(template_cache_put(cache, STR("acme"), str_from(subject_key), STR_EMPTY, 0, &err));
}

static void a_key_has_a_version_of_the_same_number_on_each_channel(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Sample mail = sample_of("acme", "<p>mail</p>");
    Sample sms = sample_of("acme", "<p>sms</p>");
    sms.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    Error err = {0};
    assert_true(put(cache, "welcome.email.1_2_0", &mail, &err));
    assert_true(put(cache, "welcome.sms.1_2_0", &sms, &err));
    assert_string_equal(html_for(cache, CHANNEL_EMAIL), "<p>mail</p>");
    assert_string_equal(html_for(cache, CHANNEL_SMS), "<p>sms</p>");
    remove_at(cache, "welcome.sms.1_2_0");
    assert_string_equal(html_for(cache, CHANNEL_SMS), "-");
    assert_string_equal(html_for(cache, CHANNEL_EMAIL), "<p>mail</p>");
    assert_false(put(cache, "welcome.push.1_2_0", &sms, &err));
    template_cache_free(cache);
}

// As it was stored before the subjects had a channel; and both, in either order.
static void an_entry_without_a_channel_in_its_subject_is_read_as_before(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Sample old = sample_of("acme", "<p>old</p>");
    Sample placed = sample_of("acme", "<p>placed</p>");
    Error err = {0};
    for (int turn = 0; turn < 2; turn++) {
        assert_true(
            put(cache, turn == 0 ? "welcome.1_2_0" : "welcome.email.1_2_0",
                turn == 0 ? &old : &placed, &err));
        assert_string_equal(
            html_for(cache, CHANNEL_EMAIL), turn == 0 ? "<p>old</p>" : "<p>placed</p>");
        assert_string_equal(html_for(cache, CHANNEL_SMS), "-");
        assert_true(
            put(cache, turn == 1 ? "welcome.1_2_0" : "welcome.email.1_2_0",
                turn == 1 ? &old : &placed, &err));
        assert_string_equal(html_for(cache, CHANNEL_EMAIL), "<p>placed</p>");
        remove_at(cache, "welcome.email.1_2_0");
        assert_string_equal(html_for(cache, CHANNEL_EMAIL), "<p>old</p>");
        remove_at(cache, "welcome.1_2_0");
        assert_string_equal(html_for(cache, CHANNEL_EMAIL), "-");
    }
    template_cache_free(cache);
}

static void the_platform_stands_in_for_a_tenant_without_one(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Sample shared = sample_of("platform", "<p>shared</p>");
    Sample own = sample_of("acme", "<p>own</p>");
    Error err = {0};
    assert_true(put(cache, "welcome.1_2_0", &shared, &err));
    assert_string_equal(get(cache, "acme")->source->tenant, "platform");
    assert_true(put(cache, "welcome.1_2_0", &own, &err));
    assert_string_equal(get(cache, "acme")->source->tenant, "acme");
    assert_string_equal(get(cache, "other")->source->tenant, "platform");
    template_cache_free(cache);
}

// An unapproved text of the tenant's must not go out under the number of the platform's version.
static void a_tenants_draft_does_not_stand_before_the_platforms_version(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Sample shared = sample_of("platform", "<p>shared</p>");
    Sample draft = sample_of("acme", "<p>draft</p>");
    Error err = {0};
    draft.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT;
    assert_true(put(cache, "welcome.1_2_0", &draft, &err));
    assert_string_equal(get(cache, "acme")->source->tenant, "acme"); // a test of the draft
    assert_true(put(cache, "welcome.1_2_0", &shared, &err));
    assert_string_equal(get(cache, "acme")->source->tenant, "platform");
    draft.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    assert_true(put(cache, "welcome.1_2_0", &draft, &err));
    assert_string_equal(get(cache, "acme")->source->tenant, "acme");
    template_cache_free(cache);
}

static const char *owner_at(TemplateCache *cache, int64_t asked_at_us)
{
    const TemplateName wanted = {
        STR("acme"), STR("welcome"), CHANNEL_EMAIL, STR("1.2.0"), asked_at_us};
    return template_cache_get(cache, &wanted)->source->tenant;
}

// A tenant goes back to the platform's texts, which may have the same number.
static void what_a_tenant_archived_gives_way_to_the_platforms_for_later_requests(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Sample shared = sample_of("platform", "<p>shared</p>");
    Sample own = sample_of("acme", "<p>own</p>");
    Error err = {0};
    own.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED;
    own.stored_at_us = 1000;
    assert_true(put(cache, "welcome.1_2_0", &own, &err));
    assert_string_equal(owner_at(cache, 2000), "acme"); // there is no other
    shared.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT;
    assert_true(put(cache, "welcome.1_2_0", &shared, &err));
    assert_string_equal(owner_at(cache, 2000), "acme");
    shared.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    assert_true(put(cache, "welcome.1_2_0", &shared, &err));
    assert_string_equal(owner_at(cache, 2000), "platform");
    assert_string_equal(owner_at(cache, 1000), "platform");
    assert_string_equal(owner_at(cache, 999), "acme"); // frozen to it while it was in force
    template_cache_free(cache);
}

static void a_newer_entry_replaces_what_was_compiled(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Sample first = sample_of("acme", "<p>1</p>");
    Sample second = sample_of("acme", "<p>2</p>");
    Error err = {0};
    assert_true(put(cache, "welcome.1_2_0", &first, &err));
    assert_string_equal(get(cache, "acme")->source->locales[0]->html, "<p>1</p>");
    assert_true(put(cache, "welcome.1_2_0", &second, &err));
    assert_int_equal(template_cache_compiled(cache), 0);
    assert_string_equal(get(cache, "acme")->source->locales[0]->html, "<p>2</p>");
    assert_true(template_cache_put(cache, STR("acme"), STR("welcome.1_2_0"), STR(""), 0, &err));
    assert_null(get(cache, "acme"));
    assert_int_equal(template_cache_count(cache), 0);
    template_cache_free(cache);
}

static void only_the_most_recently_used_stay_compiled(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(3);
    Error err = {0};
    char tenant[16];
    for (int i = 0; i < 10; i++) {
        (void)snprintf(tenant, sizeof tenant, "t%d", i);
        Sample sample = sample_of(tenant, "<p>");
        assert_true(put(cache, "welcome.1_2_0", &sample, &err));
    }
    for (int i = 0; i < 30; i++) {
        (void)snprintf(tenant, sizeof tenant, "t%d", i * 7 % 10);
        const CompiledVersion *version = get(cache, tenant);
        assert_string_equal(version->source->tenant, tenant);
        assert_true(template_cache_compiled(cache) <= 3);
    }
    assert_int_equal(template_cache_count(cache), 10);
    template_cache_free(cache);
}

static void an_entry_must_be_what_its_subject_says(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(3);
    Sample sample = sample_of("acme", "<p>");
    Error err = {0};
    assert_false(put(cache, "goodbye.1_2_0", &sample, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    Arena *arena = arena_new(0);
    Str bytes = pack(arena, &sample);
    assert_false(template_cache_put(cache, STR("evil"), STR("welcome.1_2_0"), bytes, 0, &err));
    assert_string_equal(err.text, "the entry's tenant 'acme' is not the subject's 'evil'");
    assert_false(
        template_cache_put(cache, STR("acme"), STR("welcome.1_2_0"), STR("\xff\xff"), 0, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_int_equal(template_cache_count(cache), 0);
    arena_free(arena);
    template_cache_free(cache);
}

static void a_version_that_does_not_compile_says_why(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(3);
    Sample broken = sample_of("acme", "<p>{{#if x}}");
    Sample empty = sample_of("bare", "");
    Sample sms = sample_of("short", "<p>");
    sms.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    Error err = {0};
    assert_true(put(cache, "welcome.1_2_0", &broken, &err));
    assert_true(put(cache, "welcome.1_2_0", &empty, &err));
    assert_true(put(cache, "welcome.1_2_0", &sms, &err));
    assert_string_equal(
        get(cache, "acme")->broken.text,
        "locale 'en': html: line 1, column 4: '{{#if' is never closed; add '{{/if}}'");
    assert_string_equal(get(cache, "bare")->broken.text, "locale 'en' has neither html nor text");
    const TemplateName short_one = {STR("short"), STR("welcome"), CHANNEL_SMS, STR("1.2.0"), 0};
    assert_string_equal(
        template_cache_get(cache, &short_one)->broken.text, "locale 'en' has no text");
    template_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_found_by_tenant_key_and_version),
        cmocka_unit_test(a_key_has_a_version_of_the_same_number_on_each_channel),
        cmocka_unit_test(an_entry_without_a_channel_in_its_subject_is_read_as_before),
        cmocka_unit_test(the_platform_stands_in_for_a_tenant_without_one),
        cmocka_unit_test(a_tenants_draft_does_not_stand_before_the_platforms_version),
        cmocka_unit_test(what_a_tenant_archived_gives_way_to_the_platforms_for_later_requests),
        cmocka_unit_test(a_newer_entry_replaces_what_was_compiled),
        cmocka_unit_test(only_the_most_recently_used_stay_compiled),
        cmocka_unit_test(an_entry_must_be_what_its_subject_says),
        cmocka_unit_test(a_version_that_does_not_compile_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
