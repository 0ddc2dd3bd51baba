// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/render/digest_lines.h"

static char *copy(Arena *arena, const char *text)
{
    return arena_cstr(arena, str_from(text));
}

static void put(TemplateCache *cache, Arena *arena, const char *key, const char *subject)
{
    Stentor__V1__LocaleVariant english, dari;
    stentor__v1__locale_variant__init(&english);
    english.locale = copy(arena, "en");
    english.subject = copy(arena, subject);
    english.text = copy(arena, "-");
    dari = english;
    dari.locale = copy(arena, "fa");
    dari.subject = arena_printf(arena, "fa: %s", subject);
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.tenant = copy(arena, "acme");
    version.key = copy(arena, key);
    version.version = copy(arena, "1.0.0");
    version.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    version.locales = (Stentor__V1__LocaleVariant *[]){&english, &dari};
    version.n_locales = 2;
    Str bytes = STR_EMPTY;
    Error err = {0};
    assert_true(event_pack(&version.base, arena, &bytes, &err));
    assert_true(template_cache_put(
        cache, STR("acme"), str_from(arena_printf(arena, "%s.1_0_0", key)), bytes, 0, &err));
}

static int64_t late(void)
{
    static int64_t now_us;
    return now_us += 1000000;
}

// The lines of a digest of `list` for a reader of `locale`; each item's template is its "template".
static json_t *lines_of(json_t *list, const char *locale, TemplateMeter *meter)
{
    Arena *arena = arena_new(0);
    TemplateCache *cache = template_cache_new(8);
    put(cache, arena, "grade", "{{subject}} of {{tenant.name}}: {{grade}}");
    put(cache, arena, "slow", "{{#each numbers}}{{#each ../numbers}}{{/each}}{{/each}}done");
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.tenant = copy(arena, "acme");
    Request request;
    stentor__v1__notification_request__init(&request);
    request.meta = &meta;
    request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    request.locale = copy(arena, locale);
    request.n_digest_items = json_array_size(list);
    request.digest_items = arena_array(arena, request.n_digest_items, sizeof *request.digest_items);
    for (size_t i = 0; i < request.n_digest_items; i++) {
        Stentor__V1__DigestItem *item = arena_alloc(arena, sizeof *item);
        stentor__v1__digest_item__init(item);
        item->template_ =
            copy(arena, json_string_value(json_object_get(json_array_get(list, i), "template")));
        item->template_version = copy(arena, "1.0.0");
        request.digest_items[i] = item;
    }
    Job job = {.request = &request, .arena = arena};
    Sender sender = {.locale = copy(arena, "fa"), .names = json_pack("{s:s}", "name", "Acme")};
    ContentContext context = {.meter = meter};
    json_t *variables = json_pack("{s:o}", "list", list);
    digest_subject_lines(cache, &job, &sender, &context, variables);
    json_decref(sender.names);
    template_cache_free(cache);
    arena_free(arena);
    return variables;
}

static const char *line(const json_t *variables, size_t i)
{
    const json_t *item = json_array_get(json_object_get(variables, "list"), i);
    return json_string_value(json_object_get(item, "subject_line"));
}

static void assert_line(const json_t *variables, size_t i, const char *wanted)
{
    assert_non_null(line(variables, i));
    assert_string_equal(line(variables, i), wanted);
}

static json_t *grade(const char *template)
{
    return json_pack("{s:s,s:s,s:i}", "template", template, "subject", "Art\n", "grade", 20);
}

static void each_item_has_its_own_subject_on_one_line(void **state)
{
    (void)state;
    json_t *own = grade("grade");
    (void)json_object_set_new(own, "subject_line", json_string("mine"));
    json_t *made = lines_of(json_pack("[o,o,o]", grade("grade"), grade("gone"), own), "en", NULL);
    assert_line(made, 0, "Art  of Acme: 20");
    assert_null(line(made, 1)); // its version is not there
    assert_line(made, 2, "mine");
    const json_t *first = json_array_get(json_object_get(made, "list"), 0);
    assert_null(json_object_get(first, "tenant")); // what the subject may use is not the item's
    json_decref(made);
}

static void the_subject_is_in_the_readers_language(void **state)
{
    (void)state;
    json_t *made = lines_of(json_pack("[o]", grade("grade")), "fa-AF", NULL);
    assert_line(made, 0, "fa: Art  of Acme: 20");
    json_decref(made);
    made = lines_of(json_pack("[o]", grade("grade")), "", NULL); // the tenant's
    assert_line(made, 0, "fa: Art  of Acme: 20");
    json_decref(made);
}

static json_t *slow(void)
{
    json_t *item = json_pack("{s:s,s:[]}", "template", "slow", "numbers");
    for (int i = 0; i < 90; i++) {
        (void)json_array_append_new(json_object_get(item, "numbers"), json_integer(1));
    }
    return item;
}

static void subjects_that_take_too_long_are_left_out(void **state)
{
    (void)state;
    json_t *made = lines_of(json_pack("[o]", slow()), "en", NULL);
    assert_line(made, 0, "done");
    json_decref(made);
    TemplateMeter meter = {.cpu_us = late, .max_us = 1};
    made = lines_of(json_pack("[o]", slow()), "en", &meter);
    assert_null(line(made, 0));
    json_decref(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_has_its_own_subject_on_one_line),
        cmocka_unit_test(the_subject_is_in_the_readers_language),
        cmocka_unit_test(subjects_that_take_too_long_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
