// SPDX-License-Identifier: Apache-2.0
// A batch posted to a real NATS: what is stored, in which order, and what is left.
#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/outbox-relay/publish/post.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { POSTS_MAX = 400 };

static Rig rig;
static Arena *arena;
static Post posts[POSTS_MAX];

static int set_up(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, 0);
    arena = arena_new(0);
    memset(posts, 0, sizeof posts);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(arena);
    rig_close(&rig);
    return 0;
}

static void make_post(size_t at, const char *key)
{
    posts[at] = (Post){
        .out =
            {.subject = "evt.acme.OrderPlaced",
             .event_id = str_from(arena_printf(arena, "post-%zu", at)),
             .payload = str_from(arena_printf(arena, "%s/%zu", key, at))},
        .ordering_key = key[0] == '\0' ? (Str){NULL, 0} : str_from(key)};
}

static void run(size_t count, int64_t until_us)
{
    rig.done = false;
    PostRun all = {
        .bus = rig.bus,
        .arena = arena,
        .posts = posts,
        .count = count,
        .until_us = &until_us,
        .on_done = on_rig_done,
        .ctx = &rig};
    post_all(&all);
    assert_false(rig.done); // never from inside the call
    WAIT_FLAG(&rig, rig.done);
}

static int64_t soon_us(void)
{
    return clock_mono_us() + INT64_C(30000000);
}

// Which post the message at that sequence of EVENTS is.
static size_t stored_post(long sequence)
{
    static const char tag[] = "\"data\":\"";
    char body[32];
    uint8_t payload[64];
    size_t len = 0;
    int64_t at = -1;
    snprintf(body, sizeof body, "{\"seq\":%ld}", sequence);
    const char *data = strstr(rig_ask(&rig, "$JS.API.STREAM.MSG.GET.EVENTS", body), tag);
    assert_non_null(data);
    data += sizeof tag - 1;
    assert_true(base64_decode(str_of(data, strcspn(data, "\"")), payload, sizeof payload, &len));
    Str text = str_of(payload, len);
    assert_true(str_to_i64(str_slice(text, (size_t)str_find(text, '/') + 1, len), &at));
    return (size_t)at;
}

static void rows_of_one_key_are_stored_in_their_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < POSTS_MAX; i++) {
        make_post(i, i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "");
    }
    run(POSTS_MAX, soon_us());
    assert_int_equal(rig_count(&rig, "EVENTS"), POSTS_MAX);
    size_t last[2] = {0, 0};
    size_t met = 0;
    for (long sequence = 1; sequence <= POSTS_MAX; sequence++) {
        size_t at = stored_post(sequence);
        met += at;
        if (at % 3 < 2) {
            assert_true(at == at % 3 || at == last[at % 3] + 3); // the next of its key
            last[at % 3] = at;
        }
    }
    assert_int_equal(met, POSTS_MAX * (POSTS_MAX - 1) / 2);
    for (size_t i = 0; i < POSTS_MAX; i++) {
        assert_int_equal(posts[i].fate, POST_STORED);
    }
}

static void one_that_does_not_fit_is_passed_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        make_post(i, "a");
    }
    posts[1].fate = POST_REFUSED;
    posts[1].reason = STR("field 'tenant' is missing");
    posts[2].out.subject = "no subject"; // NATS would not take it
    run(4, soon_us());
    assert_int_equal(posts[0].fate, POST_STORED);
    assert_int_equal(posts[1].fate, POST_REFUSED);
    assert_int_equal(posts[2].fate, POST_REFUSED);
    assert_true(posts[2].reason.len > 0);
    assert_int_equal(posts[3].fate, POST_STORED);
    assert_int_equal(rig_count(&rig, "EVENTS"), 2);
    assert_int_equal(stored_post(1), 0);
    assert_int_equal(stored_post(2), 3);
}

static void a_batch_of_which_nothing_fits_ends_too(void **state)
{
    (void)state;
    make_post(0, "");
    posts[0].fate = POST_REFUSED;
    run(1, soon_us());
    run(0, soon_us());
    assert_int_equal(rig_count(&rig, "EVENTS"), 0);
}

static void nothing_goes_out_after_the_claim_has_ended(void **state)
{
    (void)state;
    make_post(0, "a");
    make_post(1, "a");
    make_post(2, "");
    run(3, clock_mono_us() - 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(posts[i].fate, POST_LEFT);
        assert_true(posts[i].reason.len > 0);
    }
    assert_int_equal(rig_count(&rig, "EVENTS"), 0);
}

// More than the bus lets be in the air at once is no failure.
static void more_than_a_window_goes_out_piece_by_piece(void **state)
{
    (void)state;
    enum { BYTES = 800 * 1024, COUNT = 20 };
    char *payload = malloc(BYTES);
    memset(payload, 'x', BYTES);
    for (size_t i = 0; i < COUNT; i++) {
        make_post(i, "");
        posts[i].out.payload = str_of(payload, BYTES);
    }
    run(COUNT, soon_us());
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(posts[i].fate, POST_STORED);
    }
    free(payload);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_of_one_key_are_stored_in_their_order),
        TEST(one_that_does_not_fit_is_passed_over),
        TEST(a_batch_of_which_nothing_fits_ends_too),
        TEST(more_than_a_window_goes_out_piece_by_piece),
        TEST(nothing_goes_out_after_the_claim_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
