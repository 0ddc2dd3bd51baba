// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/events/reply_content.h"

#define TENANT STR("acme")
#define NUMBER STR("+4915112345678")

typedef struct Rig {
    MasterKey *before; // with one hash key
    MasterKey *now;    // with another one before it
    Arena *arena;
} Rig;

static MasterKey *parse(const char *text)
{
    Error err = {0};
    MasterKey *ret = master_key_parse(str_from(text), &err);
    if (ret == NULL) {
        fail_msg("%s", err.text);
    }
    return ret;
}

static int open_rig(void **state)
{
    static Rig rig;
    char text[MASTER_KEY_FILE_SIZE];
    char id[KEY_ID_SIZE];
    rig.before = parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                       "f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n");
    assert_true(master_key_print(rig.before, &(MasterKeyChange){.add = KEY_HASH}, text, NULL));
    MasterKey *both = parse(text);
    key_id_print(master_key_info(both, KEY_HASH, 1)->check, id);
    assert_true(master_key_print(both, &(MasterKeyChange){.first = id}, text, NULL));
    rig.now = parse(text);
    rig.arena = arena_new(0);
    master_key_free(both);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    Rig *rig = *state;
    master_key_free(rig->before);
    master_key_free(rig->now);
    arena_free(rig->arena);
    return 0;
}

// As the receiver made it, with the keys of then.
static Stentor__V1__InboundReply *written(Rig *rig, MasterKey *master, Str number, uint8_t *hash)
{
    static Stentor__V1__Meta meta;
    static char tenant[] = "acme";
    Stentor__V1__InboundReply *ret = arena_alloc(rig->arena, sizeof *ret);
    Stentor__V1__ReplyContent content;
    Str packed;
    stentor__v1__meta__init(&meta);
    meta.tenant = tenant;
    stentor__v1__inbound_reply__init(ret);
    stentor__v1__reply_content__init(&content);
    content.address = arena_cstr(rig->arena, number);
    content.text = arena_cstr(rig->arena, STR("START"));
    assert_true(event_pack(&content.base, rig->arena, &packed, NULL));
    DataKey *key = data_key_for_tenant(master, TENANT);
    ret->content = seal(key, TENANT, STR_EMPTY, "reply", packed, rig->arena);
    data_key_free(key);
    ret->meta = &meta;
    ret->channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    address_hash(master_hash_key(master), TENANT, CHANNEL_SMS, NUMBER, hash);
    ret->address_hash = pb_data(str_of(hash, ADDRESS_HASH_LEN));
    return ret;
}

static void a_number_is_looked_for_under_every_hash_key(void **state)
{
    Rig *rig = *state;
    uint8_t current[ADDRESS_HASH_LEN], older[ADDRESS_HASH_LEN], own[ADDRESS_HASH_LEN];
    ReplyHashes hashes;
    address_hash(master_hash_key(rig->before), TENANT, CHANNEL_SMS, NUMBER, older);
    address_hash(master_hash_key(rig->now), TENANT, CHANNEL_SMS, NUMBER, current);
    MasterKey *const sealed_by[] = {rig->before, rig->now};
    for (size_t i = 0; i < 2; i++) {
        reply_hashes(rig->now, written(rig, sealed_by[i], NUMBER, own), rig->arena, &hashes);
        assert_int_equal(hashes.count, 2);
        assert_memory_equal(hashes.hashes[0], current, ADDRESS_HASH_LEN);
        assert_memory_equal(hashes.hashes[1], older, ADDRESS_HASH_LEN);
    }
}

static void what_cannot_be_opened_is_looked_for_as_it_says(void **state)
{
    Rig *rig = *state;
    uint8_t own[ADDRESS_HASH_LEN];
    ReplyHashes hashes;
    Stentor__V1__InboundReply *reply = written(rig, rig->before, NUMBER, own);
    reply->content = NULL;
    reply_hashes(rig->now, reply, rig->arena, &hashes);
    assert_int_equal(hashes.count, 1);
    assert_memory_equal(hashes.hashes[0], own, ADDRESS_HASH_LEN);
    reply_hashes(rig->now, written(rig, rig->before, STR_EMPTY, own), rig->arena, &hashes);
    assert_int_equal(hashes.count, 1);
}

static void a_reply_is_opened_for_its_tenant_alone(void **state)
{
    Rig *rig = *state;
    uint8_t own[ADDRESS_HASH_LEN];
    const Stentor__V1__InboundReply *reply = written(rig, rig->before, NUMBER, own);
    const Stentor__V1__ReplyContent *content =
        reply_content_open(rig->now, TENANT, reply, rig->arena);
    assert_string_equal(content->text, "START");
    assert_null(reply_content_open(rig->now, STR("beta"), reply, rig->arena));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_looked_for_under_every_hash_key),
        cmocka_unit_test(what_cannot_be_opened_is_looked_for_as_it_says),
        cmocka_unit_test(a_reply_is_opened_for_its_tenant_alone),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
