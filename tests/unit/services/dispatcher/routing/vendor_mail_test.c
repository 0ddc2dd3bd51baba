// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/dispatcher/routing/vendor_mail.h"

typedef struct Fixture {
    Delivery delivery;
    Stentor__V1__Rendered rendered;
    LedgerKey key;
    Job job;
} Fixture;

static Job *job_of(Fixture *f, Channel channel, const char *to)
{
    *f = (Fixture){0};
    stentor__v1__rendered__init(&f->rendered);
    f->rendered.channel = (Stentor__V1__Channel)channel;
    f->rendered.priority = STENTOR__V1__PRIORITY__PRIORITY_HIGH;
    f->rendered.expires_at_us = 17;
    f->delivery.arena = arena_new(0);
    f->key = (LedgerKey){.tenant = STR("acme"), .notification_id = STR("ntf_1"), .attempt = 1};
    f->job = (Job){.delivery = &f->delivery, .rendered = &f->rendered, .key = &f->key};
    f->job.mail.to = str_from(to);
    return &f->job;
}

static void assert_str(Str text, const char *expected)
{
    assert_true(str_eq(text, str_from(expected)));
}

static void a_push_has_title_body_and_data(void **state)
{
    (void)state;
    Fixture f;
    const Job *job = job_of(&f, CHANNEL_PUSH, "token");
    Stentor__V1__PushContent content;
    stentor__v1__push_content__init(&content);
    content.title = (char[]){"Hi"};
    content.body = (char[]){"Alice"};
    content.data_json = (char[]){"{\"a\":1}"};
    const VendorMail *mail = vendor_mail_message(job, &content.base);
    assert_str(mail->to.address, "token");
    assert_str(mail->subject, "Hi");
    assert_str(mail->text, "Alice");
    assert_str(mail->data, "{\"a\":1}");
    assert_true(mail->urgent);
    assert_int_equal(mail->expires_at_us, 17);
    arena_free(f.delivery.arena);
}

static void whatsapp_has_its_template_or_free_text(void **state)
{
    (void)state;
    Fixture f;
    const Job *job = job_of(&f, CHANNEL_WHATSAPP, "+4915112345678");
    char *parameters[] = {(char[]){"Alice"}, (char[]){"4711"}};
    Stentor__V1__WhatsappContent content;
    stentor__v1__whatsapp_content__init(&content);
    content.reference = (char[]){"order_shipped"};
    content.locale = (char[]){"de"};
    content.parameters = parameters;
    content.n_parameters = 2;
    const VendorMail *mail = vendor_mail_message(job, &content.base);
    assert_str(mail->reference, "order_shipped");
    assert_str(mail->locale, "de");
    assert_int_equal(mail->parameter_count, 2);
    assert_str(mail->parameters[1], "4711");
    assert_str(mail->text, "");
    arena_free(f.delivery.arena);
}

static void a_voice_call_has_script_and_locale(void **state)
{
    (void)state;
    Fixture f;
    const Job *job = job_of(&f, CHANNEL_VOICE, "+4915112345678");
    Stentor__V1__VoiceContent content;
    stentor__v1__voice_content__init(&content);
    content.script = (char[]){"Your code is 4 7 1 1"};
    content.locale = (char[]){"en-GB"};
    const VendorMail *mail = vendor_mail_message(job, &content.base);
    assert_str(mail->text, "Your code is 4 7 1 1");
    assert_str(mail->locale, "en-GB");
    assert_str(mail->subject, "");
    arena_free(f.delivery.arena);
}

static void a_mail_has_what_a_message_of_any_channel_has(void **state)
{
    (void)state;
    Fixture f;
    const Job *job = job_of(&f, CHANNEL_EMAIL, "");
    f.rendered.unknown_at_us = 5;
    const MimeMail mime = {
        .to = STR("alice@example.com"), .from = STR("shop@example.com"), .subject = STR("Hi")};
    const VendorMail *mail = vendor_mail_make(job, &mime);
    assert_str(mail->tenant, "acme");
    assert_str(mail->notification_id, "ntf_1");
    assert_str(mail->to.address, "alice@example.com");
    assert_str(mail->from.address, "shop@example.com");
    assert_str(mail->subject, "Hi");
    assert_true(mail->urgent);
    assert_int_equal(mail->expires_at_us, 17);
    assert_int_equal(mail->since_us, 5);
    arena_free(f.delivery.arena);
}

// Of an attempt at `vendor`.
static const VendorMail *claimed(Fixture *f, Channel channel, const char *vendor)
{
    char file[132];
    Error err = {0};
    master_key_generate(file);
    MasterKey *master = master_key_parse(str_from(file), &err);
    assert_non_null(master);
    Job *job = job_of(f, channel, "");
    f->key.notification_id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    f->job.place.vendor = str_from(vendor);
    f->job.mail.content = arena_zalloc(f->delivery.arena, sizeof(VendorMail));
    JobRules rules = {.public_url = STR("https://hooks.example"), .master = master};
    bounce_key(master, &rules.dress.bounce_key);
    vendor_mail_claim(job, &rules);
    master_key_free(master);
    return f->job.mail.content;
}

static void an_attempt_is_reported_to_an_address_of_its_own_where_the_vendor_is_given_one(
    void **state)
{
    (void)state;
    Fixture f;
    static const struct {
        Channel channel;
        const char *vendor, *before;
    } rows[] = {
        {CHANNEL_SMS, "twilio", "https://hooks.example/v1/inbound/acme/twilio/"},
        {CHANNEL_SMS, "sms-acme", "https://hooks.example/v1/inbound/acme/sms-acme/"},
        {CHANNEL_EMAIL, "email-acme", "https://hooks.example/v1/inbound/acme/email-acme/"},
        {CHANNEL_EMAIL, "postmark", ""},
        {CHANNEL_EMAIL, "smtp", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Str url = claimed(&f, rows[i].channel, rows[i].vendor)->callback_url;
        assert_true(str_starts(url, str_from(rows[i].before)));
        assert_int_equal(url.len > 0, rows[i].before[0] != '\0');
        arena_free(f.delivery.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_has_title_body_and_data),
        cmocka_unit_test(whatsapp_has_its_template_or_free_text),
        cmocka_unit_test(a_voice_call_has_script_and_locale),
        cmocka_unit_test(a_mail_has_what_a_message_of_any_channel_has),
        cmocka_unit_test(
            an_attempt_is_reported_to_an_address_of_its_own_where_the_vendor_is_given_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
