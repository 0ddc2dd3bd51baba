// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/webhook-receiver/reply_event.h"
#include "stentor/v1/reply.pb-c.h"

#define HASH_KEY STR("0123456789abcdef0123456789abcdef")

static const CallbackOrigin ORIGIN = {
    .tenant = {"acme", 4},
    .vendor = {"twilio", 6},
    .channel = CHANNEL_SMS,
    .event_id = {"callback-id", 11},
    .index = 3,
    .received_at_us = 77};

typedef struct Rig {
    MasterKey *master;
    ReplyKeys keys;
} Rig;

static int open_rig(void **state)
{
    static Rig rig;
    Error err = {0};
    rig.master = master_key_parse(
        STR("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
            "f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"),
        &err);
    if (rig.master == NULL) {
        fail_msg("%s", err.text);
    }
    rig.keys = (ReplyKeys){data_key_for_tenant(rig.master, ORIGIN.tenant), HASH_KEY};
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    Rig *rig = *state;
    data_key_free(rig->keys.seal);
    master_key_free(rig->master);
    return 0;
}

static CallbackEvent wrote(const CallbackReply *reply, const char *from, const char *id)
{
    return (CallbackEvent){
        .message_id = str_from(id), .email = str_from(from), .reason_code = "", .reply = reply};
}

static const Stentor__V1__InboundReply *packed(
    const Rig *rig, const CallbackEvent *event, Arena *arena, BusOut *ret_out)
{
    Error err = {0};
    if (!reply_event(event, &ORIGIN, &rig->keys, arena, ret_out, &err)) {
        fail_msg("%s", err.text);
    }
    const Stentor__V1__InboundReply *reply = (const Stentor__V1__InboundReply *)event_unpack(
        &stentor__v1__inbound_reply__descriptor, ret_out->payload, arena, &err);
    assert_non_null(reply);
    return reply;
}

static void the_text_and_the_number_are_sealed(void **state)
{
    const Rig *rig = *state;
    Arena *arena = arena_new(0);
    const CallbackReply said = {
        REPLY_WORD_NONE, STR("+15005550006"), STR("Where is it?"), STR("text"), STR("SM0")};
    CallbackEvent event = wrote(&said, "+4915112345678", "SM1");
    BusOut out = {0};
    const Stentor__V1__InboundReply *reply = packed(rig, &event, arena, &out);
    uint8_t hash[ADDRESS_HASH_LEN];
    address_hash(HASH_KEY, ORIGIN.tenant, CHANNEL_SMS, STR("+4915112345678"), hash);
    assert_string_equal(out.subject, "ntf.reply.acme.sms.message");
    assert_string_equal(reply->kind, "message");
    assert_string_equal(reply->sender, "+15005550006");
    assert_string_equal(reply->answers_message_id, "SM0");
    assert_string_equal(reply->meta->causation_id, "callback-id");
    assert_int_equal(reply->meta->occurred_at_us, 77);
    assert_memory_equal(reply->address_hash.data, hash, ADDRESS_HASH_LEN);
    for (size_t i = 0; i + 8 <= out.payload.len; i++) {
        assert_true(memcmp(out.payload.ptr + i, "Where is", 8) != 0);
        assert_true(memcmp(out.payload.ptr + i, "15112345", 8) != 0);
    }
    Str plain = STR_EMPTY;
    assert_true(unseal(
        rig->keys.seal, ORIGIN.tenant, STR_EMPTY, "reply", reply->content, arena, &plain, NULL));
    const Stentor__V1__ReplyContent *content = (const Stentor__V1__ReplyContent *)event_unpack(
        &stentor__v1__reply_content__descriptor, plain, arena, NULL);
    assert_string_equal(content->text, "Where is it?");
    assert_string_equal(content->address, "+4915112345678");
    arena_free(arena);
}

static void its_id_is_the_vendors_message(void **state)
{
    const Rig *rig = *state;
    Arena *arena = arena_new(0);
    const CallbackReply said = {REPLY_WORD_STOP, STR("+1"), STR("Stop"), STR("text"), STR_EMPTY};
    CallbackEvent one = wrote(&said, "+4915112345678", "SM1");
    CallbackEvent other = wrote(&said, "+4915112345678", "SM2");
    CallbackEvent nameless = wrote(&said, "", "");
    BusOut first = {0}, again = {0}, second = {0}, third = {0};
    assert_string_equal(packed(rig, &one, arena, &first)->kind, "stop");
    (void)packed(rig, &one, arena, &again);
    (void)packed(rig, &other, arena, &second);
    assert_int_equal(packed(rig, &nameless, arena, &third)->address_hash.len, 0);
    assert_true(str_eq(first.event_id, again.event_id));
    assert_false(str_eq(first.event_id, second.event_id));
    assert_false(str_eq(first.event_id, third.event_id));
    assert_string_equal(first.subject, "ntf.reply.acme.sms.stop");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_and_the_number_are_sealed),
        cmocka_unit_test(its_id_is_the_vendors_message),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
