// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/meta/meta_split.h"

#include "common/base/buf.h"
#include "tests/unit/common/vendor/callbacks.h"

static void add_change(Buf *body, int first, int count)
{
    buf_printf(
        body,
        "%s{\"value\":{\"contacts\":[{\"wa_id\":\"x\"}],\"metadata\":{\"phone_number_id\":\"%d\"}, "
        "\"statuses\" : [",
        first > 0 ? "," : "", first);
    for (int i = 0; i < count; i++) {
        buf_printf(
            body, "%s{\"id\":\"wamid.%d\",\"status\":\"delivered\",\"note\":\"]}\\\"[{\"}\n",
            i > 0 ? "," : "", first + i);
    }
    buf_cstr(body, "]},\"field\":\"messages\"}");
}

// Two entries, each with changes of `each` statuses.
static void make_body(Buf *body, int changes, int each)
{
    buf_init(body, 8 << 20);
    buf_cstr(body, "{\"entry\":[{\"changes\":[],\"id\":\"0\"},{\"id\":\"1\",\"changes\":[");
    for (int i = 0; i < changes; i++) {
        add_change(body, i * each, each);
    }
    buf_cstr(body, "]}],\"object\":\"whatsapp_business_account\"}");
}

static void the_parts_have_all_events_once(void **state)
{
    (void)state;
    static const int shapes[][2] = {{1, 200}, {200, 1}, {13, 17}};
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        Arena *arena = arena_new(0);
        Str *parts = NULL;
        size_t count = 0;
        int seen = 0;
        Buf body;
        Error err = {0};
        make_body(&body, shapes[n][0], shapes[n][1]);
        assert_true(meta_split(buf_view(&body), 4000, arena, &parts, &count, &err));
        assert_true(count > 2);
        for (size_t i = 0; i < count; i++) {
            CallbackBatch batch = {0};
            assert_true(parts[i].len <= 4000);
            assert_true(meta_callback.events(parts[i], arena, &batch, &err));
            for (size_t k = 0; k < batch.count; k++, seen++) {
                const char *id = arena_printf(arena, "wamid.%d", seen);
                const char *account = arena_printf(arena, "%d", seen / shapes[n][1] * shapes[n][1]);
                assert_true(str_eq(batch.events[k].message_id, str_from(id)));
                assert_true(str_eq(batch.events[k].account, str_from(account)));
            }
        }
        assert_int_equal(seen, shapes[n][0] * shapes[n][1]);
        buf_done(&body);
        arena_free(arena);
    }
}

static void what_cannot_be_split_is_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "[]",
        "{",
        "{\"entry\":{}}",
        "{\"entry\":[{\"changes\":[{\"value\":{\"statuses\":{}}}]}]}",
        "{\"entry\":[{\"changes\":[{\"value\":{\"statuses\":[{]}}]}]}",
        "{\"entry\":[{\"changes\":[{\"value\":\"x]}]}"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        Arena *arena = arena_new(0);
        Str *parts = NULL;
        size_t count = 0;
        Error err = {0};
        if (meta_split(str_from(bodies[i]), 4000, arena, &parts, &count, &err)) {
            fail_msg("taken: %s", bodies[i]);
        }
        assert_int_equal(err.kind, ERROR_PERMANENT);
        arena_free(arena);
    }
    Arena *arena = arena_new(0);
    Str *parts = NULL;
    size_t count = 0;
    Error err = {0};
    Buf body;
    make_body(&body, 1, 10000);
    assert_false(meta_split(buf_view(&body), 1000, arena, &parts, &count, &err));
    assert_string_equal(
        err.text, "one of the callback's events is longer than 1000 bytes, or they are too many");
    assert_false(meta_split(buf_view(&body), 100, arena, &parts, &count, &err));
    assert_true(meta_split(
        STR("{\"object\":\"whatsapp_business_account\",\"entry\":[]}"), 100, arena, &parts, &count,
        &err));
    assert_int_equal(count, 0);
    buf_done(&body);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_have_all_events_once),
        cmocka_unit_test(what_cannot_be_split_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
