// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/model/enums.h"
#include "stentor/v1/common.pb-c.h"

// The enumerations stand in three places: the tables of common/model, common.proto and the CHECKs
// of the SQL.

static const char *channel_at(int value)
{
    return channel_name((Channel)value);
}

static const char *category_at(int value)
{
    return category_name((Category)value);
}

static const char *priority_at(int value)
{
    return priority_name((Priority)value);
}

static const char *status_at(int value)
{
    return status_name((Status)value);
}

static const char *outcome_at(int value)
{
    return outcome_name((Outcome)value);
}

static const char *suppression_reason_at(int value)
{
    return suppression_reason_name((SuppressionReason)value);
}

static const char *identity_at(int value)
{
    return identity_name((Identity)value);
}

static const char *address_status_at(int value)
{
    return address_status_name((AddressStatus)value);
}

static const char *frequency_at(int value)
{
    return frequency_name((Frequency)value);
}

static const char *guardian_routing_at(int value)
{
    return guardian_routing_name((GuardianRouting)value);
}

typedef struct Enumeration {
    const char *prefix;
    int count;
    const char *(*name_at)(int value);
    const ProtobufCEnumDescriptor *proto;
    const char *sql;   // the migration that checks it
    const char *start; // of its CHECK
} Enumeration;

static const char HISTORY[] = "/migrations/archiver/0001_history.sql";
static const char DIGESTS[] = "/migrations/digest_flusher/0003_digests.sql";
static const char PEOPLE[] = "/migrations/people/0001_people.sql";

// clang-format off
static const Enumeration enumerations[] = {
    {"CHANNEL_", CHANNEL_COUNT, channel_at, &stentor__v1__channel__descriptor, HISTORY, "CHECK (channel IN ("},
    {"CATEGORY_", CATEGORY_COUNT, category_at, &stentor__v1__category__descriptor, HISTORY, "CHECK (category IN ("},
    {"CHANNEL_", CHANNEL_COUNT, channel_at, &stentor__v1__channel__descriptor, DIGESTS, "CHECK (channel IN ("},
    {"CATEGORY_", CATEGORY_COUNT, category_at, &stentor__v1__category__descriptor, DIGESTS, "CHECK (category IN ("},
    {"PRIORITY_", PRIORITY_COUNT, priority_at, &stentor__v1__priority__descriptor, HISTORY, "CHECK (priority IN ("},
    {"STATUS_", STATUS_COUNT, status_at, &stentor__v1__status__descriptor, HISTORY, "CHECK (status IN ("},
    {"OUTCOME_", OUTCOME_COUNT, outcome_at, &stentor__v1__outcome__descriptor, HISTORY, "CHECK (outcome IN ("},
    {"SUPPRESSION_REASON_", SUPPRESSION_COUNT, suppression_reason_at, &stentor__v1__suppression_reason__descriptor, NULL, NULL},
    {"IDENTITY_", IDENTITY_COUNT, identity_at, &stentor__v1__identity__descriptor, PEOPLE, "CHECK (identity_type IN ("},
    {"ADDRESS_STATUS_", ADDRESS_STATUS_COUNT, address_status_at, &stentor__v1__address_status__descriptor, PEOPLE, "CHECK (status IN ("},
    {"FREQUENCY_", FREQUENCY_COUNT, frequency_at, &stentor__v1__frequency__descriptor, PEOPLE, "CHECK (frequency IN ("},
    {"GUARDIAN_ROUTING_", GUARDIAN_COUNT, guardian_routing_at, &stentor__v1__guardian_routing__descriptor, PEOPLE, "CHECK (guardian_routing IN ("},
};
// clang-format on

static void the_tables_are_those_of_the_proto(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof enumerations / sizeof enumerations[0]; i++) {
        const Enumeration *e = &enumerations[i];
        assert_int_equal(e->proto->n_values, e->count);
        for (int value = 0; value < e->count; value++) {
            const ProtobufCEnumValue *row = protobuf_c_enum_descriptor_get_value(e->proto, value);
            assert_non_null(row);
            Str name = str_from(row->name);
            assert_true(str_starts(name, str_from(e->prefix)));
            Str rest = str_slice(name, strlen(e->prefix), name.len);
            const char *ours = value == 0 ? "unspecified" : e->name_at(value);
            assert_true(str_eq_nocase(rest, str_from(ours)));
        }
    }
}

static char *read_source(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 256 * 1024);
    assert_non_null(text);
    assert_true(fread(text, 1, 256 * 1024 - 1, file) > 0);
    fclose(file);
    return text;
}

// "'email','sms'...": the list that a CHECK must have.
static void put_list(Buf *list, const Enumeration *e)
{
    for (int value = 1; value < e->count; value++) {
        buf_printf(list, "%s'%s'", value == 1 ? "" : ",", e->name_at(value));
    }
}

// What stands in the parentheses behind `start`, without white space.
static void put_check(Buf *found, const char *sql, const char *start)
{
    const char *at = strstr(sql, start);
    assert_non_null(at);
    for (at += strlen(start); *at != ')'; at++) {
        assert_true(*at != '\0');
        if (strchr(" \t\r\n", *at) == NULL) {
            buf_char(found, *at);
        }
    }
}

static void the_tables_are_those_of_the_sql(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof enumerations / sizeof enumerations[0]; i++) {
        const Enumeration *e = &enumerations[i];
        if (e->sql == NULL) {
            continue; // it is in no table
        }
        Arena *arena = arena_new(0);
        char *sql = read_source(arena_printf(arena, "%s%s", STENTOR_SOURCE_DIR, e->sql));
        Buf expected;
        Buf found;
        buf_init(&expected, 4096);
        buf_init(&found, 4096);
        put_list(&expected, e);
        put_check(&found, sql, e->start);
        assert_string_equal(buf_c(&found), buf_c(&expected));
        buf_done(&expected);
        buf_done(&found);
        free(sql);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_are_those_of_the_proto),
        cmocka_unit_test(the_tables_are_those_of_the_sql),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
