// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/topology/nats_rights.h"
#include "common/bus/topology/topology.h"

static void each_subject_is_spelled_as_documented(void **state)
{
    (void)state;
    char out[SUBJECT_SIZE];
    subject_request(out, PRIORITY_NORMAL, STR("acme"));
    assert_string_equal(out, "ntf.request.normal.acme");
    subject_rendered(out, PRIORITY_CRITICAL, STR("acme"));
    assert_string_equal(out, "ntf.rendered.critical.acme");
    subject_status(out, STR("acme"), CHANNEL_EMAIL, STATUS_SENT);
    assert_string_equal(out, "ntf.status.acme.email.sent");
    subject_deferred(out, "retry", STR("acme"));
    assert_string_equal(out, "ntf.deferred.retry.acme");
    subject_inbound(out, "sendgrid");
    assert_string_equal(out, "ntf.inbound.sendgrid");
    subject_hook(out, STR("acme"));
    assert_string_equal(out, "ntf.hook.acme");
    subject_people(out, STR("acme"));
    assert_string_equal(out, "ppl.acme");
    subject_dead(out, "renderer", STR("acme"));
    assert_string_equal(out, "ntf.dead.renderer.acme");
    subject_in_hand(out, "stentor-renderer", "01kabc");
    assert_string_equal(out, "ntf.inhand.renderer.01kabc");
    subject_in_hand(out, "stentor-renderer", "*");
    assert_string_equal(out, "ntf.inhand.renderer.*");
    subject_audit(out, STR("acme"), STR("erasure"));
    assert_string_equal(out, "aud.acme.erasure");
    subject_config(out, "template", STR("acme"), STR("welcome.1_0_0"));
    assert_string_equal(out, "cfg.template.acme.welcome.1_0_0");
}

static void an_event_type_is_tokens(void **state)
{
    (void)state;
    char out[SUBJECT_SIZE];
    subject_event(out, STR("acme"), STR("memo.created_v1"));
    assert_string_equal(out, "evt.acme.memo.created_v1");
    const char *bad[] = {"", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(event_type_fits(str_from(bad[i])));
        subject_event(out, STR("acme"), str_from(bad[i]));
        assert_string_equal(out, "evt.acme.unknown");
    }
    char longest[97];
    memset(longest, 'a', sizeof longest);
    assert_true(event_type_fits(str_of(longest, 96)));
    assert_false(event_type_fits(str_of(longest, 97)));
}

static void what_is_no_token_never_becomes_part_of_a_subject(void **state)
{
    (void)state;
    char out[SUBJECT_SIZE];
    static const char *const bad[] = {"", "a.b", "*", ">", "a b", "a\r\nPUB x", "UPPER"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        subject_dead(out, "renderer", str_from(bad[i]));
        assert_string_equal(out, "ntf.dead.renderer.unknown");
        subject_inbound(out, bad[i]);
        assert_string_equal(out, "ntf.inbound.unknown");
    }
    subject_request(out, (Priority)99, STR("acme"));
    assert_string_equal(out, "ntf.request.unknown.acme");
    subject_config(out, "template", STR("acme"), STR("a *>\r\nb"));
    assert_string_equal(out, "cfg.template.acme.a_____b");
    subject_config(out, "template", STR("acme"), STR(".a..b."));
    assert_string_equal(out, "cfg.template.acme._a._b_");
}

static void a_subject_always_fits(void **state)
{
    (void)state;
    char out[SUBJECT_SIZE], key[500];
    memset(key, 'k', sizeof key);
    subject_config(out, "template", STR("acme"), str_of(key, sizeof key));
    assert_true(strlen(out) < SUBJECT_SIZE);
    assert_int_equal(strlen(out), strlen("cfg.template.acme.") + CONFIG_KEY_MAX);
}

static void the_lanes_have_their_streams(void **state)
{
    (void)state;
    assert_string_equal(topology_lane_stream("REQUEST", PRIORITY_LOW), "REQUEST_LOW");
    assert_string_equal(topology_lane_stream("RENDERED", PRIORITY_CRITICAL), "RENDERED_CRITICAL");
    assert_string_equal(topology_lane_stream("NOTHING", PRIORITY_LOW), "");
}

static void each_stream_has_limits(void **state)
{
    (void)state;
    size_t count;
    const StreamSpec *streams = topology_streams(&count);
    assert_int_equal(count, 21);
    for (size_t i = 0; i < count; i++) {
        assert_true(streams[i].max_bytes > 0);
        bool for_ever =
            strcmp(streams[i].name, "CONFIG") == 0 || strcmp(streams[i].name, "PEOPLE") == 0;
        assert_true(for_ever == (streams[i].max_age_s == 0));
        assert_non_null(streams[i].subjects);
        assert_ptr_equal(topology_stream(streams[i].name), &streams[i]);
    }
    assert_null(topology_stream("NOTHING"));
}

static Str next_word(Str *rest)
{
    Str word = STR_EMPTY;
    str_split(rest, ' ', &word);
    return word;
}

static const StreamSpec *stream_of(Str word)
{
    char name[64];
    return str_to_c(word, name, sizeof name) ? topology_stream(name) : NULL;
}

static void the_three_tables_agree(void **state)
{
    (void)state;
    size_t count, consumer_count;
    const NatsRights *access = nats_rights(&count);
    size_t consumed = 0;
    for (size_t i = 0; i < count; i++) {
        for (Str rest = str_from(access[i].consumes); rest.len > 0;) {
            const StreamSpec *stream = stream_of(next_word(&rest));
            assert_non_null(stream);
            assert_non_null(topology_consumer(access[i].service, stream->name));
            consumed++;
        }
        for (Str rest = str_from(access[i].reads); rest.len > 0;) {
            assert_non_null(stream_of(next_word(&rest)));
        }
    }
    const ConsumerSpec *consumers = topology_consumers(&consumer_count);
    assert_int_equal(consumed, consumer_count);
    for (size_t i = 0; i < consumer_count; i++) {
        assert_non_null(topology_stream(consumers[i].stream));
        assert_ptr_equal(topology_consumer(consumers[i].name, consumers[i].stream), &consumers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_subject_is_spelled_as_documented),
        cmocka_unit_test(an_event_type_is_tokens),
        cmocka_unit_test(what_is_no_token_never_becomes_part_of_a_subject),
        cmocka_unit_test(a_subject_always_fits),
        cmocka_unit_test(the_lanes_have_their_streams),
        cmocka_unit_test(each_stream_has_limits),
        cmocka_unit_test(the_three_tables_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
