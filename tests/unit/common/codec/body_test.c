// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "common/base/buf.h"
#include "common/codec/body.h"

typedef struct World {
    Arena *arena;
    Stentor__V1__LocaleVariant locale;
    Stentor__V1__LocaleVariant *locales[1];
    Stentor__V1__TemplatePartial partial;
    Stentor__V1__TemplatePartial *partials[1];
    Stentor__V1__TemplateVersion version;
    char html[4096];
    BodyPrefix *prefix;
    Error err;
} World;

// A template when name is "{{name}}", and else a body rendered from it.
static void fill(char *out, size_t size, const char *name)
{
    uint32_t seed = 7;
    size_t at = 0;
    for (size_t line = 0; at + 80 < size; line++) {
        seed = seed * 1664525u + 1013904223u;
        at += (size_t)snprintf(
            out + at, size - at, "<p class=\"c%u\">dear %s, number %u</p>\n",
            (unsigned)(seed >> 28), line % 8 == 0 ? name : "reader", (unsigned)(seed >> 8));
    }
}

static int make_world(void **state)
{
    static World world;
    memset(&world, 0, sizeof world);
    world.arena = arena_new(0);
    fill(world.html, sizeof world.html, "{{name}}");
    stentor__v1__locale_variant__init(&world.locale);
    world.locale.html = world.html;
    stentor__v1__template_partial__init(&world.partial);
    stentor__v1__template_version__init(&world.version);
    world.locales[0] = &world.locale;
    world.partials[0] = &world.partial;
    world.version.n_locales = 1;
    world.version.locales = world.locales;
    world.version.n_partials = 1;
    world.version.partials = world.partials;
    world.prefix = body_prefix_new(&world.version);
    *state = &world;
    return 0;
}

static int end_world(void **state)
{
    World *world = *state;
    body_prefix_free(world->prefix);
    arena_free(world->arena);
    return 0;
}

static Str pack(World *world, const BodyPrefix *prefix, Str plain)
{
    Str frame = STR_EMPTY;
    assert_true(body_pack(prefix, plain, world->arena, &frame, &world->err));
    return frame;
}

static void assert_refused(World *world, const BodyPrefix *prefix, Str frame, const char *words)
{
    Str plain = STR("untouched");
    error_clear(&world->err);
    assert_false(body_unpack(prefix, frame, world->arena, &plain, &world->err));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(world->err.text, words));
    assert_true(str_eq(plain, STR("untouched")));
}

static void a_body_comes_back_with_and_without_a_prefix(void **state)
{
    World *world = *state;
    static char large[BODY_BYTES_MAX];
    fill(large, sizeof large, "Alice");
    const Str plains[] = {
        STR_EMPTY,
        STR("x"),
        STR("hello, hello"),
        str_of(large, 100000),
        str_of(large, sizeof large),
        str_from(world->html)};
    for (size_t i = 0; i < sizeof plains / sizeof plains[0]; i++) {
        const BodyPrefix *prefixes[] = {NULL, world->prefix};
        for (size_t k = 0; k < 2; k++) {
            Str frame = pack(world, prefixes[k], plains[i]);
            Str back = STR("?");
            assert_true(body_unpack(prefixes[k], frame, world->arena, &back, &world->err));
            assert_true(str_eq(back, plains[i]));
        }
    }
}

static void a_rendered_body_is_small_beside_its_template(void **state)
{
    World *world = *state;
    char body[4096];
    fill(body, sizeof body, "Alice");
    Str frame = pack(world, world->prefix, str_from(body));
    assert_true(frame.len * 8 < strlen(body));
    assert_true(frame.len * 2 < pack(world, NULL, str_from(body)).len);
}

static void every_holder_of_a_version_makes_the_same_prefix(void **state)
{
    World *world = *state;
    BodyPrefix *twin = body_prefix_new(&world->version);
    assert_true(body_prefix_id(twin) == body_prefix_id(world->prefix));
    assert_true(body_prefix_id(twin) != 0);
    assert_true(body_prefix_id(NULL) == 0);
    Str plain = STR_EMPTY;
    Str frame = pack(world, world->prefix, str_from(world->html));
    assert_true(body_unpack(twin, frame, world->arena, &plain, &world->err));
    assert_true(str_eq(plain, str_from(world->html)));
    body_prefix_free(twin);
    body_prefix_free(NULL);
}

static void every_source_of_a_version_counts(void **state)
{
    World *world = *state;
    char word[] = "word";
    char **sources[] = {
        &world->locale.subject, &world->locale.preheader, &world->locale.html, &world->locale.text,
        &world->partial.source};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        char *before = *sources[i];
        *sources[i] = word;
        BodyPrefix *other = body_prefix_new(&world->version);
        assert_true(body_prefix_id(other) != body_prefix_id(world->prefix));
        body_prefix_free(other);
        *sources[i] = before;
    }
}

static void a_version_without_sources_has_a_prefix_too(void **state)
{
    World *world = *state;
    Stentor__V1__TemplateVersion empty;
    stentor__v1__template_version__init(&empty);
    BodyPrefix *prefix = body_prefix_new(&empty);
    assert_true(body_prefix_id(prefix) != 0);
    Str back = STR_EMPTY;
    Str frame = pack(world, prefix, STR("hello"));
    assert_true(body_unpack(prefix, frame, world->arena, &back, &world->err));
    assert_true(str_eq(back, STR("hello")));
    body_prefix_free(prefix);
}

static void another_prefix_is_named_and_refused(void **state)
{
    World *world = *state;
    Str framed = pack(world, world->prefix, STR("hello"));
    assert_refused(world, NULL, framed, "needs prefix");
    assert_refused(world, world->prefix, pack(world, NULL, STR("hello")), "needs prefix");
}

static void a_body_above_the_maximum_is_refused(void **state)
{
    World *world = *state;
    static char large[BODY_BYTES_MAX + 1];
    Str frame = STR_EMPTY;
    assert_false(body_pack(NULL, str_of(large, sizeof large), world->arena, &frame, &world->err));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
}

static void a_bomb_is_refused_by_what_it_states(void **state)
{
    World *world = *state;
    static char zeros[BODY_BYTES_MAX + 1];
    char frame[1000] = {0};
    size_t size = ZSTD_compress(frame + 8, sizeof frame - 8, zeros, sizeof zeros, 1);
    assert_false(ZSTD_isError(size));
    assert_refused(world, NULL, str_of(frame, size + 8), "above");
}

static void a_frame_that_states_no_length_is_refused(void **state)
{
    World *world = *state;
    char frame[1000] = {0};
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    size_t size = ZSTD_compress2(context, frame + 8, sizeof frame - 8, "hello", 5);
    assert_false(ZSTD_isError(size));
    assert_refused(world, NULL, str_of(frame, size + 8), "states no length");
    ZSTD_freeCCtx(context);
}

static void a_cut_frame_is_refused_at_every_length(void **state)
{
    World *world = *state;
    Str frame = pack(world, world->prefix, STR("a body that is not in the template at all"));
    for (size_t length = 0; length < frame.len; length++) {
        assert_refused(world, world->prefix, str_slice(frame, 0, length), "");
    }
}

static void a_second_frame_behind_the_first_is_refused(void **state)
{
    World *world = *state;
    Str frame = pack(world, NULL, STR("hello"));
    Buf two;
    buf_init(&two, 1000);
    buf_str(&two, frame);
    buf_str(&two, str_slice(frame, 8, frame.len));
    assert_refused(world, NULL, buf_view(&two), "damaged");
    buf_done(&two);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_body_comes_back_with_and_without_a_prefix),
        TEST(a_rendered_body_is_small_beside_its_template),
        TEST(every_holder_of_a_version_makes_the_same_prefix),
        TEST(every_source_of_a_version_counts),
        TEST(a_version_without_sources_has_a_prefix_too),
        TEST(another_prefix_is_named_and_refused),
        TEST(a_body_above_the_maximum_is_refused),
        TEST(a_bomb_is_refused_by_what_it_states),
        TEST(a_frame_that_states_no_length_is_refused),
        TEST(a_cut_frame_is_refused_at_every_length),
        TEST(a_second_frame_behind_the_first_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
