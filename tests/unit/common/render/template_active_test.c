// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/model/template_key.h"
#include "common/render/template_cache.h"

typedef struct Row {
    const char *tenant, *key, *version;
    Stentor__V1__TemplateStatus status;
    Stentor__V1__Channel channel;
} Row;

#define ACTIVE STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE
#define DRAFT STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT
#define ARCHIVED STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED
#define EMAIL STENTOR__V1__CHANNEL__CHANNEL_EMAIL
#define SMS STENTOR__V1__CHANNEL__CHANNEL_SMS

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)text; // read only
}

static void put(TemplateCache *cache, const Row *row)
{
    Arena *arena = arena_new(0);
    Stentor__V1__LocaleVariant locale;
    stentor__v1__locale_variant__init(&locale);
    locale.locale = borrow("en");
    locale.text = borrow("x");
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.tenant = borrow(row->tenant);
    version.key = borrow(row->key);
    version.version = borrow(row->version);
    version.status = row->status;
    version.channel = row->channel;
    version.locales = (Stentor__V1__LocaleVariant *[]){&locale};
    version.n_locales = 1;
    Str bytes = STR_EMPTY;
    Error err = {0};
    assert_true(event_pack(&version.base, arena, &bytes, &err));
    char space[TEMPLATE_KEY_SIZE];
    Str key = template_key_write(
        space, str_from(row->key), (Channel)row->channel, str_from(row->version));
    if (!template_cache_put(cache, str_from(row->tenant), key, bytes, 0, &err)) {
        fail_msg("%s", err.text);
    }
    arena_free(arena);
}

// Enough for versions of one digit and their like: semver_compare is a folder further up.
static int compare(Str a, Str b)
{
    return a.len != b.len ? (a.len > b.len ? 1 : -1) : memcmp(a.ptr, b.ptr, a.len);
}

static void check(
    TemplateCache *cache, const char *tenant, const char *key, Channel channel,
    const char *expected)
{
    char version[TEMPLATE_VERSION_SIZE];
    const TemplateName wanted = {str_from(tenant), str_from(key), channel, STR_EMPTY, 0};
    bool found = template_cache_active(cache, &wanted, compare, version);
    assert_int_equal(found, expected != NULL);
    if (expected != NULL) {
        assert_string_equal(version, expected);
    }
}

static void the_highest_active_version_of_the_channel_is_chosen(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    static const Row rows[] = {
        {"acme", "bill", "1.9.0", ACTIVE, EMAIL},
        {"acme", "bill", "1.10.0", ACTIVE, EMAIL},
        {"acme", "bill", "1.11.0", ARCHIVED, EMAIL},
        {"acme", "bill", "2.0.0", DRAFT, EMAIL},
        {"acme", "bill", "3.0.0", ACTIVE, SMS},
        {"acme", "bill_1", "9.0.0", ACTIVE, EMAIL}, // another key with its prefix
        {"platform", "bill", "7.0.0", ACTIVE, EMAIL},
        {"globex", "bill", "8.0.0", ACTIVE, EMAIL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put(cache, &rows[i]);
    }
    check(cache, "acme", "bill", CHANNEL_EMAIL, "1.10.0");
    check(cache, "acme", "bill", CHANNEL_SMS, "3.0.0");
    check(cache, "initech", "bill", CHANNEL_EMAIL, "7.0.0"); // the platform stands in
    check(cache, "initech", "bill", CHANNEL_SMS, NULL);
    check(cache, "acme", "nothing", CHANNEL_EMAIL, NULL);
    assert_int_equal(template_cache_compiled(cache), 0);
    template_cache_free(cache);
}

// As the version is compiled: one without a channel is a mail's.
static void a_version_without_a_channel_is_a_mail_s(void **state)
{
    (void)state;
    TemplateCache *cache = template_cache_new(10);
    Row row = {"acme", "old", "1.0.0", ACTIVE, EMAIL};
    row.channel = STENTOR__V1__CHANNEL__CHANNEL_UNSPECIFIED;
    put(cache, &row);
    check(cache, "acme", "old", CHANNEL_EMAIL, "1.0.0");
    check(cache, "acme", "old", CHANNEL_SMS, NULL);
    template_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_active_version_of_the_channel_is_chosen),
        cmocka_unit_test(a_version_without_a_channel_is_a_mail_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
