// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/service/known_names.h"

static void the_names_of_all_programs_are_known(void **state)
{
    (void)state;
    assert_true(known_name(STR("STENTOR_NATS_URL")));
    assert_true(known_name(STR("STENTOR_NATS_PASSWORD_FILE")));
    assert_true(known_name(STR("STENTOR_OUTBOX_MAPPING")));
    assert_true(known_name(STR("STENTOR_CONFIG")));
    assert_false(known_name(STR("STENTOR_NATS_URL_FILE")));
    assert_false(known_name(STR("STENTOR_")));
    assert_false(known_name(STR_EMPTY));
}

static void the_nearest_name_is_one_that_is_like_it(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"STENTOR_NATS_ULR", "STENTOR_NATS_URL"},
        {"STENTOR_SMPT_URL", "STENTOR_SMTP_URL"},
        {"STENTOR_DATABASE_URI", "STENTOR_DATABASE_URL"},
        {"STENTOR_DISPATCHER_INFLIGHT", "STENTOR_DISPATCHER_IN_FLIGHT"},
        {"STENTOR_MASTERKEY_FILE", "STENTOR_MASTER_KEY_FILE"},
        {"STENTOR_THE_COLOUR_OF_THE_SEA", NULL},
        {"STENTOR_", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *nearest = known_name_nearest(str_from(rows[i][0]));
        if (nearest == NULL || rows[i][1] == NULL) {
            assert_ptr_equal(nearest, rows[i][1]);
        } else {
            assert_string_equal(nearest, rows[i][1]);
        }
    }
    char longest[4096];
    memset(longest, 'X', sizeof longest);
    assert_null(known_name_nearest(str_of(longest, sizeof longest)));
}

static void the_forms_of_kubernetes_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *service; // "": no such form
    } rows[] = {
        {"A_SERVICE_HOST", "A"},
        {"STENTOR_INGEST_SERVICE_PORT", "STENTOR_INGEST"},
        {"STENTOR_INGEST_SERVICE_PORT_HTTP", "STENTOR_INGEST"},
        {"STENTOR_INGEST_PORT", "STENTOR_INGEST"},
        {"STENTOR_INGEST_PORT_8080_TCP", "STENTOR_INGEST"},
        {"STENTOR_INGEST_PORT_53_UDP_ADDR", "STENTOR_INGEST"},
        {"STENTOR_INGEST_PORT_8080_TCP_PORT", "STENTOR_INGEST"},
        {"STENTOR_INGEST_PORT_8080_SCTP_PROTO", "STENTOR_INGEST"},
        {"STENTOR_PORT_PROXY_SERVICE_HOST", "STENTOR_PORT_PROXY"},
        {"STENTOR_INGEST_PORT_8080", ""},
        {"STENTOR_INGEST_PORT_X_TCP", ""},
        {"STENTOR_INGEST_PORT_8080_TCP_HOST", ""},
        {"STENTOR_INGEST_PORT_8080_TCP_ADDR_", ""},
        {"STENTOR_INGEST_PORTS", ""},
        {"STENTOR_INGEST_SERVICE_PORTS", ""},
        {"_PORT", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (kubernetes_service(str_from(rows[i].name)) != strlen(rows[i].service)) {
            fail_msg("%s", rows[i].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_names_of_all_programs_are_known),
        cmocka_unit_test(the_nearest_name_is_one_that_is_like_it),
        cmocka_unit_test(the_forms_of_kubernetes_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
