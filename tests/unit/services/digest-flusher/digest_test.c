// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/digest-flusher/digest.h"

#define FLUSH_US INT64_C(1763648968320000)

enum { ITEMS_MAX = 4 };

typedef Stentor__V1__NotificationRequest Request;
typedef Stentor__V1__Address Address;

typedef struct Stage {
    Arena *arena;
    MasterKey *master;
    DataKey *key;
    uint8_t subject[KEY_SUBJECT_LEN];
    const Request *items[ITEMS_MAX];
    DigestWindow window;
} Stage;

static DataKey *new_key(Stage *s, uint32_t generation)
{
    uint8_t wrapped[WRAPPED_KEY_LEN];
    return data_key_new(s->master, s->subject, generation, wrapped);
}

static Request *add_item(Stage *s, DataKey *key)
{
    Request *item = arena_alloc(s->arena, sizeof *item);
    stentor__v1__notification_request__init(item);
    Stentor__V1__Meta *meta = arena_alloc(s->arena, sizeof *meta);
    stentor__v1__meta__init(meta);
    char *id = arena_printf(s->arena, "ntf_01KAGTQ5M0000000000000000%zu", s->window.item_count);
    meta->event_id = arena_printf(s->arena, "requestrequest0000000%zu", s->window.item_count);
    meta->tenant = arena_cstr(s->arena, STR("demo"));
    meta->notification_id = id;
    meta->correlation_id = arena_cstr(s->arena, STR("mine"));
    item->meta = meta;
    item->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    item->category = STENTOR__V1__CATEGORY__CATEGORY_SOCIAL;
    item->priority = STENTOR__V1__PRIORITY__PRIORITY_LOW;
    item->template_ = arena_cstr(s->arena, STR("liked"));
    item->template_version = arena_cstr(s->arena, STR("2.0.0"));
    item->recipient_id = arena_cstr(s->arena, STR("rcp_1"));
    item->locale = arena_printf(s->arena, "%s", s->window.item_count == 0 ? "de" : "fr");
    item->time_zone =
        arena_printf(s->arena, "%s", s->window.item_count == 0 ? "Asia/Kabul" : "Asia/Tokyo");
    Address address;
    stentor__v1__address__init(&address);
    address.address = arena_printf(s->arena, "a%zu@example.com", s->window.item_count);
    Str plain;
    assert_true(event_pack(&address.base, s->arena, &plain, NULL));
    item->address = seal(key, STR("demo"), str_from(id), "address", plain, s->arena);
    item->variables = seal(key, STR("demo"), str_from(id), "variables", STR("{}"), s->arena);
    item->accepted_at_us = FLUSH_US - 1000 + (int64_t)s->window.item_count;
    item->expires_at_us = FLUSH_US;
    item->batch_id = arena_cstr(s->arena, STR("dbt_1"));
    s->items[s->window.item_count++] = item;
    s->window.newest = item;
    s->window.live++;
    return item;
}

static int set_up(void **state)
{
    Stage *s = xcalloc(1, sizeof *s);
    s->arena = arena_new(0);
    char text[132];
    master_key_generate(text);
    s->master = master_key_parse(str_from(text), NULL);
    assert_non_null(s->master);
    key_subject(
        master_hash_key(s->master), DATA_KEY_ORDINARY, STR("demo"), STR("rcp_1"), s->subject);
    s->key = new_key(s, 2);
    s->window = (DigestWindow){
        .tenant = STR("demo"),
        .window_id = STR("dgw_windowwindowwindow0001"),
        .flush_at_us = FLUSH_US,
        .frozen_at_us = FLUSH_US + 500000,
        .template_key = STR("digest"),
        .template_version = STR("1.0.0"),
        .locale = STR("en"),
        .items = s->items,
    };
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Stage *s = *state;
    data_key_free(s->key);
    master_key_free(s->master);
    arena_free(s->arena);
    free(s);
    return 0;
}

static Digest build(Stage *s)
{
    Digest digest;
    Error err = {0};
    if (!digest_build(&s->window, s->key, s->arena, &digest, &err)) {
        fail_msg("%s", err.text);
    }
    return digest;
}

static const Request *request_of(Stage *s, Str payload)
{
    const Request *request = (const Request *)event_unpack(
        &stentor__v1__notification_request__descriptor, payload, s->arena, NULL);
    assert_non_null(request);
    return request;
}

static void several_items_are_one_request_of_the_newest_and_the_window(void **state)
{
    Stage *s = *state;
    for (int i = 0; i < 3; i++) {
        add_item(s, s->key);
    }
    s->window.live = 70; // more than are listed
    Digest digest = build(s);
    const Request *request = request_of(s, digest.payload);
    assert_string_equal(digest.subject, "ntf.request.low.demo");
    assert_string_equal(request->meta->event_id, digest.event_id);
    assert_string_equal(request->meta->notification_id, digest.id);
    assert_string_equal(request->meta->causation_id, "requestrequest00000002");
    assert_string_equal(request->meta->correlation_id, "");
    assert_string_equal(request->template_, "digest");
    assert_string_equal(request->template_version, "1.0.0");
    assert_string_equal(request->locale, "fr");
    assert_string_equal(request->time_zone, "Asia/Tokyo");
    assert_string_equal(request->recipient_id, "rcp_1");
    assert_string_equal(request->batch_id, "");
    assert_string_equal(request->digest_window_id, "dgw_windowwindowwindow0001");
    assert_int_equal(request->digest_total, 70);
    assert_int_equal(request->expires_at_us, 0);
    assert_null(request->variables);
    assert_int_equal(request->n_digest_items, 3);
    assert_string_equal(
        request->digest_items[0]->notification_id, s->items[0]->meta->notification_id);
    assert_string_equal(request->digest_items[0]->template_, "liked");
    Str variables;
    assert_true(unseal(
        s->key, STR("demo"), str_from(request->digest_items[1]->notification_id), "variables",
        request->digest_items[1]->variables, s->arena, &variables, NULL));
}

static void the_newest_address_opens_under_the_digests_own_id(void **state)
{
    Stage *s = *state;
    add_item(s, s->key);
    add_item(s, s->key);
    Digest digest = build(s);
    Str plain;
    Error err = {0};
    if (!unseal(
            s->key, STR("demo"), str_from(digest.id), "address",
            request_of(s, digest.payload)->address, s->arena, &plain, &err)) {
        fail_msg("%s", err.text);
    }
    const Address *address =
        (const Address *)event_unpack(&stentor__v1__address__descriptor, plain, s->arena, NULL);
    assert_string_equal(address->address, "a1@example.com");
}

static void ids_are_the_windows_and_sort_by_its_time(void **state)
{
    Stage *s = *state;
    add_item(s, s->key);
    add_item(s, s->key);
    Digest first = build(s);
    s->window.frozen_at_us += 7000000; // frozen later, built again: the same
    Digest second = build(s);
    assert_string_equal(first.id, second.id);
    assert_string_equal(first.event_id, second.event_id);
    assert_string_equal(first.status_id, second.status_id);
    int64_t ms = 0;
    assert_true(id_parse(str_from(first.id), "ntf_", &ms));
    assert_int_equal(ms, FLUSH_US / 1000);
    s->window.frozen_at_us = FLUSH_US - 3600000000; // its recipient wanted no digest any more
    Digest early = build(s);
    assert_true(id_parse(str_from(early.id), "ntf_", &ms));
    assert_int_equal(ms, (FLUSH_US - 3600000000) / 1000);
    s->window.window_id = STR("dgw_windowwindowwindow0002");
    assert_string_not_equal(build(s).id, early.id);
}

static void its_head_names_no_address_and_no_items(void **state)
{
    Stage *s = *state;
    add_item(s, s->key);
    add_item(s, s->key);
    Digest digest = build(s);
    const Request *head = request_of(s, digest.head);
    assert_null(head->address);
    assert_int_equal(head->n_digest_items, 0);
    assert_string_equal(head->meta->notification_id, digest.id);
}

static void one_item_or_none_or_a_verdict_or_no_key_make_no_digest(void **state)
{
    Stage *s = *state;
    assert_false(digest_wanted(&s->window));
    add_item(s, s->key);
    assert_string_equal(build(s).id, "");
    add_item(s, s->key);
    assert_true(digest_wanted(&s->window));
    s->window.verdict = STR("preference");
    assert_string_equal(build(s).id, "");
    s->window.verdict = STR_EMPTY;
    Digest digest;
    assert_true(digest_build(&s->window, NULL, s->arena, &digest, NULL));
    assert_string_equal(digest.id, "");
}

static void what_is_sealed_under_an_older_key_is_counted_and_not_listed(void **state)
{
    Stage *s = *state;
    DataKey *older = new_key(s, 1);
    add_item(s, older);
    add_item(s, s->key);
    add_item(s, s->key);
    data_key_free(older);
    const Request *request = request_of(s, build(s).payload);
    assert_int_equal(request->n_digest_items, 2);
    assert_int_equal(request->digest_total, 3);
    s->window.item_count = 1; // only the unreadable one is among the oldest
    request = request_of(s, build(s).payload);
    assert_int_equal(request->n_digest_items, 1);
    assert_string_equal(
        request->digest_items[0]->notification_id, s->window.newest->meta->notification_id);
}

static void an_address_that_was_altered_is_an_error(void **state)
{
    Stage *s = *state;
    add_item(s, s->key);
    add_item(s, s->key)->address->ciphertext.data[0] ^= 1;
    Digest digest;
    Error err = {0};
    assert_false(digest_build(&s->window, s->key, s->arena, &digest, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "address of 'ntf_"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(several_items_are_one_request_of_the_newest_and_the_window),
        TEST(the_newest_address_opens_under_the_digests_own_id),
        TEST(ids_are_the_windows_and_sort_by_its_time),
        TEST(its_head_names_no_address_and_no_items),
        TEST(one_item_or_none_or_a_verdict_or_no_key_make_no_digest),
        TEST(what_is_sealed_under_an_older_key_is_counted_and_not_listed),
        TEST(an_address_that_was_altered_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
