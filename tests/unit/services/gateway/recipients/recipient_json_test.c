// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/gateway/recipients/recipient_events.h"
#include "services/gateway/recipients/recipient_json.h"

static const int64_t NOW_US = INT64_C(1795199136000000);

typedef struct Case {
    const char *json;
    const char *field; // NULL: it is right
} Case;

static void assert_problem(const Case *c, const Problem *problem)
{
    if (c->field == NULL) {
        if (problem->status != 0) {
            fail_msg("%s: %s: %s", c->json, problem->field, problem->detail);
        }
        return;
    }
    if (problem->status == 0) {
        fail_msg("taken: %s", c->json);
    }
    assert_string_equal(problem->field, c->field);
    assert_true(problem->detail[0] != '\0');
}

// clang-format off
static const Case RECORDS[] = {
    {"{}", NULL},
    {"{\"name\":\"Zoë\",\"locale\":\"fa-AF\",\"time_zone\":\"Asia/Kabul\",\"minor\":true}", NULL},
    {"{\"time_zone\":\"UTC\"}", NULL},
    {"{\"time_zone\":\"Etc/GMT+3\"}", NULL},
    {"{\"time_zone\":\"BST\"}", "time_zone"},
    {"{\"time_zone\":\"GMT+3\"}", "time_zone"},
    {"{\"time_zone\":\"Europe/Atlantis\"}", "time_zone"},
    {"{\"time_zone\":\"Europe/B\\u00e9rlin\"}", "time_zone"},
    {"{\"locale\":\"en_US\"}", "locale"},
    {"{\"locale\":\"-en\"}", "locale"},
    {"{\"locale\":\"en-\"}", "locale"},
    {"{\"name\":\"a\\nb\"}", "name"},
    {"{\"name\":7}", "name"},
    {"{\"identity_type\":\"user\"}", NULL},
    {"{\"identity_id\":\"7\"}", "identity_type"},
    {"{\"identity_type\":\"robot\",\"identity_id\":\"7\"}", "identity_type"},
    {"{\"quiet_hours\":{\"start\":\"22:00\",\"end\":\"07:00\"}}", NULL},
    {"{\"quiet_hours\":{\"start\":\"24:00\",\"end\":\"07:00\"}}", "quiet_hours.start"},
    {"{\"quiet_hours\":{\"end\":\"07:00\"}}", "quiet_hours.start"},
    {"{\"quiet_hours\":{\"start\":\"22:00\",\"end\":\"07:00\",\"zone\":\"UTC\"}}", "quiet_hours.zone"},
    {"{\"quiet_hours\":[]}", "quiet_hours"},
    {"{\"guardian_id\":\"rcp_01KAGTQ5M0000000000000000A\",\"guardian_routing\":\"copy\"}", NULL},
    {"{\"guardian_id\":\"alice\"}", "guardian_id"},
    {"{\"guardian_routing\":\"both\"}", "guardian_routing"},
    {"{\"addresses\":[]}", NULL},
    {"{\"addresses\":[{\"channel\":\"email\",\"address\":\"a@example.com\",\"address_hash\":\"00\"}]}", NULL},
    {"{\"addresses\":[{\"channel\":\"email\",\"address\":\"a@example.com\",\"address_hash\":7}]}", "addresses[0].address_hash"},
    {"{\"labels\":[\"admin\",\"vip_2\"]}", NULL},
    {"{\"labels\":\"admin\"}", "labels"},
    {"{\"labels\":[\"admin\",7]}", "labels[1]"},
    {"{\"labels\":[\"Admin\"]}", "labels[0]"},
    {"{\"labels\":[\"a b\"]}", "labels[0]"},
    {"{\"labels\":[\"admin\",\"admin\"]}", "labels[1]"},
    {"{\"addresses\":{}}", "addresses"},
    {"{\"addresses\":[7]}", "addresses[0]"},
    {"{\"addresses\":[{\"channel\":\"email\",\"address\":\"a@b.example\",\"status\":\"revoked\",\"verified\":true}]}", NULL},
    {"{\"addresses\":[{\"channel\":\"email\"}]}", "addresses[0].address"},
    {"{\"addresses\":[{\"channel\":\"fax\",\"address\":\"1\"}]}", "addresses[0].channel"},
    {"{\"addresses\":[{\"channel\":\"email\",\"address\":\"a@b.example\",\"status\":\"dead\"}]}", "addresses[0].status"},
    {"{\"addresses\":[{\"channel\":\"email\",\"address\":\"a@b.example\",\"smell\":1}]}", "addresses[0].smell"},
    {"{\"addresses\":[{\"channel\":\"sms\",\"address\":\"+4915100000001\"},{\"channel\":\"sms\",\"address\":\"+49 151 0000 0001\"}]}",
     "addresses[1]"},
    {"{\"addresses\":[{\"channel\":\"sms\",\"address\":\"+4915100000001\"},{\"channel\":\"whatsapp\",\"address\":\"+4915100000001\"}]}", NULL},
    {"{\"addresses\":[{\"channel\":\"email\",\"address\":\"a@b.example\",\"primary\":true},"
     "{\"channel\":\"email\",\"address\":\"c@b.example\",\"primary\":true}]}", "addresses[1]"},
};

static const Case PREFERENCES[] = {
    {"[]", NULL},
    {"[{}]", NULL},
    {"[{\"category\":\"any\",\"channel\":\"any\",\"off\":true}]", NULL},
    {"[{\"category\":\"billing\",\"frequency\":\"daily\",\"at\":\"08:30\"}]", NULL},
    {"[{\"frequency\":\"weekly\",\"weekday\":7}]", NULL},
    {"[{\"frequency\":\"weekly\",\"weekday\":8}]", "preferences[0].weekday"},
    {"[{\"frequency\":\"daily\",\"weekday\":1}]", "preferences[0].weekday"},
    {"[{\"frequency\":\"hourly\",\"at\":\"08:30\"}]", "preferences[0].at"},
    {"[{\"frequency\":\"daily\",\"at\":\"8:30\"}]", "preferences[0].at"},
    {"[{\"frequency\":\"yearly\"}]", "preferences[0].frequency"},
    {"[{\"category\":\"spam\"}]", "preferences[0].category"},
    {"[{},{\"channel\":\"pigeon\"}]", "preferences[1].channel"},
    {"[{},{\"category\":\"any\"}]", "preferences[1].category"},
    {"[7]", "preferences[0]"},
    {"{\"preferences\":7}", "preferences"},
};

static const Case CONSENTS[] = {
    {"[{\"category\":\"marketing\",\"granted\":true,\"source\":\"form\",\"given_at\":\"2026-01-02T03:04:05Z\"}]", NULL},
    {"[{\"category\":\"marketing\"}]", "consents[0].granted"},
    {"[{\"granted\":null}]", "consents[0].granted"},
    {"[{\"granted\":\"yes\"}]", "consents[0].granted"},
    {"[{\"granted\":true,\"given_at\":\"2027-01-02T03:04:05Z\"}]", "consents[0].given_at"},
    {"[{\"granted\":true,\"given_at\":\"yesterday\"}]", "consents[0].given_at"},
};

static const Case LINES[] = {
    {"{\"id\":\"rcp_01KAGTQ5M0000000000000000A\"}", NULL},
    {"{\"identity_type\":\"user\",\"identity_id\":\"7\"}", NULL},
    {"{\"addresses\":[{\"channel\":\"inapp\",\"address\":\"u7\"}]}", NULL},
    {"{\"name\":\"who\"}", "id"},
    {"{\"id\":\"7\"}", "id"},
    {"{\"id\":\"rcp_01KAGTQ5M0000000000000000A\",\"preferences\":[{\"frequency\":\"x\"}]}", "preferences[0].frequency"},
    {"{\"id\":\"rcp_01KAGTQ5M0000000000000000A\",\"consents\":[{}]}", "consents[0].granted"},
    {"{\"id\":\"rcp_01KAGTQ5M0000000000000000A\",\"extra\":1}", "extra"},
    {"{not json", ""},
    {"[]", ""},
};
// clang-format on

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void a_record_is_taken_or_its_wrong_field_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(RECORDS); i++) {
        Arena *arena = arena_new(0);
        ApiBody body;
        PersonRecord record;
        assert_true(person_body_parse(&body, "recipient", str_from(RECORDS[i].json), arena));
        (void)(person_record_read(&body, &record) && api_body_end(&body));
        assert_problem(&RECORDS[i], &body.problem);
        api_body_free(&body);
        arena_free(arena);
    }
}

static void preferences_are_taken_or_the_wrong_field_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(PREFERENCES); i++) {
        Arena *arena = arena_new(0);
        ApiBody body;
        PersonPreference *list = NULL;
        size_t count = 0;
        bool given = false;
        assert_true(person_body_parse(&body, "preferences", str_from(PREFERENCES[i].json), arena));
        (void)(person_preferences_read(&body, &list, &count, &given) && api_body_end(&body));
        assert_problem(&PREFERENCES[i], &body.problem);
        assert_true(given || PREFERENCES[i].field != NULL);
        api_body_free(&body);
        arena_free(arena);
    }
}

static void consents_are_taken_or_the_wrong_field_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(CONSENTS); i++) {
        Arena *arena = arena_new(0);
        ApiBody body;
        PersonConsent *list = NULL;
        size_t count = 0;
        bool given = false;
        assert_true(person_body_parse(&body, "consents", str_from(CONSENTS[i].json), arena));
        (void)(person_consents_read(&body, NOW_US, &list, &count, &given) && api_body_end(&body));
        assert_problem(&CONSENTS[i], &body.problem);
        api_body_free(&body);
        arena_free(arena);
    }
}

static void a_line_of_an_import_is_taken_or_its_wrong_field_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(LINES); i++) {
        Arena *arena = arena_new(0);
        PersonLine line;
        Problem problem = {0};
        bool ok = person_line_read(str_from(LINES[i].json), NOW_US, arena, &line, &problem);
        assert_int_equal(ok, LINES[i].field == NULL);
        assert_problem(&LINES[i], &problem);
        arena_free(arena);
    }
}

static void a_digest_without_a_time_of_day_comes_at_eight(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    ApiBody body;
    PersonPreference *list = NULL;
    size_t count = 0;
    bool given = false;
    Str text =
        STR("[{\"category\":\"billing\",\"frequency\":\"daily\"},{\"frequency\":\"hourly\"}]");
    assert_true(person_body_parse(&body, "preferences", text, arena));
    assert_true(person_preferences_read(&body, &list, &count, &given));
    assert_int_equal(count, 2);
    assert_int_equal(list[0].at_minute, 480);
    assert_int_equal(list[1].at_minute, 0);
    api_body_free(&body);
    arena_free(arena);
}

static void the_same_identity_always_has_the_same_id_and_no_other_has_it(void **state)
{
    (void)state;
    char first[ID_SIZE];
    char other[ID_SIZE];
    Str key = STR("0123456789abcdef0123456789abcdef");
    person_derive_id(key, STR("acme"), "identity", STR("user|7"), first);
    assert_true(id_parse(str_from(first), "rcp_", NULL));
    person_derive_id(key, STR("acme"), "identity", STR("user|7"), other);
    assert_string_equal(first, other);
    person_derive_id(key, STR("acme"), "identity", STR("user|8"), other);
    assert_string_not_equal(first, other);
    person_derive_id(key, STR("globex"), "identity", STR("user|7"), other);
    assert_string_not_equal(first, other);
    person_derive_id(key, STR("acme"), "address", STR("user|7"), other);
    assert_string_not_equal(first, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_taken_or_its_wrong_field_is_named),
        cmocka_unit_test(preferences_are_taken_or_the_wrong_field_is_named),
        cmocka_unit_test(consents_are_taken_or_the_wrong_field_is_named),
        cmocka_unit_test(a_line_of_an_import_is_taken_or_its_wrong_field_is_named),
        cmocka_unit_test(a_digest_without_a_time_of_day_comes_at_eight),
        cmocka_unit_test(the_same_identity_always_has_the_same_id_and_no_other_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
