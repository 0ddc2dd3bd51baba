// SPDX-License-Identifier: Apache-2.0
// The inbox as a vendor: FEED's ack is its acceptance, and a notification that comes again adds no
// second item.
#include "tests/unit/common/bus/bus_tools.h"

#include "services/dispatcher/vendor/inapp/inapp_vendor.h"

static Rig rig;

typedef struct Sent {
    Mail mail;
    VendorMail content;
    int answers;
    SendState state;
    ReplyClass reply;
} Sent;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, 0);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void on_done(void *ctx, Mail *mail, const SendResult *result)
{
    Sent *sent = ctx;
    assert_ptr_equal(mail, &sent->mail);
    sent->answers++;
    sent->state = result->state;
    sent->reply = result->reply;
}

static void send_item(Sent *sent, const Vendor *vendor, Str id, Str message)
{
    *sent = (Sent){.content = {.notification_id = id}};
    sent->mail = (Mail){
        .tenant = STR("acme"),
        .message = message,
        .content = &sent->content,
        .on_done = on_done,
        .ctx = sent};
    vendor->send(vendor->self, &sent->mail);
    assert_int_equal(sent->answers, 0); // never inside
    WAIT(&rig, sent->answers == 1);
}

static void what_feed_has_stored_is_accepted_and_a_repeat_adds_nothing(void **state)
{
    (void)state;
    Sent sent;
    Vendor vendor = inapp_vendor(rig.bus);
    assert_string_equal(vendor.name, "inapp");
    for (int i = 0; i < 2; i++) {
        send_item(&sent, &vendor, STR("ntf_01M82XS89VEV77VD8AS0MCM001"), STR("item"));
        assert_int_equal(sent.state, SEND_ANSWERED);
        assert_int_equal(sent.reply, REPLY_ACCEPTED);
    }
    assert_int_equal(rig_count(&rig, "FEED"), 1);
    send_item(&sent, &vendor, STR("ntf_01M82XS89VEV77VD8AS0MCM002"), STR("item"));
    assert_int_equal(rig_count(&rig, "FEED"), 2);
    assert_int_equal(vendor.health(vendor.self).down_since_us, 0);
}

static void an_item_that_no_stream_takes_is_refused_for_good(void **state)
{
    (void)state;
    Sent sent;
    Vendor vendor = inapp_vendor(rig.bus);
    char *large = xcalloc(1, 1000 * 1000);
    send_item(&sent, &vendor, STR("ntf_01M82XS89VEV77VD8AS0MCM003"), str_of(large, 1000 * 1000));
    assert_int_equal(sent.state, SEND_ANSWERED);
    assert_int_equal(sent.reply, REPLY_TERMINAL);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_feed_has_stored_is_accepted_and_a_repeat_adds_nothing),
        cmocka_unit_test(an_item_that_no_stream_takes_is_refused_for_good),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
