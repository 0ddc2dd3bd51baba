// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/enums.h"
#include "services/gateway/why/content_view.h"

#define TEXT(text) (char *)(uintptr_t)(text)

static Stentor__V1__Meta meta;
static Stentor__V1__Rendered event;

static int set_up(void **state)
{
    (void)state;
    stentor__v1__meta__init(&meta);
    stentor__v1__rendered__init(&event);
    meta.notification_id = TEXT("ntf_1");
    event.meta = &meta;
    event.template_ = TEXT("welcome");
    event.rendered_at_us = 1000000;
    return 0;
}

static void assert_printed(
    Channel channel, const ProtobufCMessage *content, const Stentor__V1__Address *address,
    const char *expected)
{
    event.channel = (Stentor__V1__Channel)channel;
    const ContentOpened opened = {content, address};
    Buf out;
    buf_init(&out, CONTENT_JSON_MAX);
    content_print(&out, &event, &opened, STR("sent"));
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void a_mail_shows_its_parts_but_no_key_and_no_whole_address(void **state)
{
    (void)state;
    Stentor__V1__EmailContent mail;
    Stentor__V1__Address to, copy;
    Stentor__V1__Attachment file;
    stentor__v1__email_content__init(&mail);
    stentor__v1__address__init(&to);
    stentor__v1__address__init(&copy);
    stentor__v1__attachment__init(&file);
    to.address = TEXT("alice@example.com");
    copy.address = TEXT("bob@example.com");
    file.id = TEXT("att_secret");
    file.object = TEXT("secret");
    file.name = TEXT("a.pdf");
    file.size_bytes = 7;
    Stentor__V1__Address *copies[] = {&copy};
    Stentor__V1__Attachment *files[] = {&file};
    mail.subject = TEXT("Hello \"you\"");
    mail.text = TEXT("Hi");
    mail.bcc = copies;
    mail.n_bcc = 1;
    mail.attachments = files;
    mail.n_attachments = 1;
    assert_printed(
        CHANNEL_EMAIL, &mail.base, &to,
        "{\"id\":\"ntf_1\",\"status\":\"sent\",\"channel\":\"email\",\"template\":\"welcome\","
        "\"to\":\"ali***@example.com\",\"rendered_at\":\"1970-01-01T00:00:01.000000Z\","
        "\"content\":{\"kind\":\"email\",\"subject\":\"Hello \\\"you\\\"\",\"text\":\"Hi\","
        "\"bcc\":[\"b***@example.com\"],\"attachments\":[{\"size_bytes\":7,\"name\":\"a.pdf\"}]}}");
}

static void the_other_channels_show_the_fields_that_they_have(void **state)
{
    (void)state;
    Stentor__V1__SmsContent sms;
    stentor__v1__sms_content__init(&sms);
    sms.text = TEXT("code 17");
    sms.segments = 1;
    assert_printed(
        CHANNEL_SMS, &sms.base, NULL,
        "{\"id\":\"ntf_1\",\"status\":\"sent\",\"channel\":\"sms\",\"template\":\"welcome\","
        "\"rendered_at\":\"1970-01-01T00:00:01.000000Z\","
        "\"content\":{\"kind\":\"sms\",\"text\":\"code 17\",\"segments\":1,\"ucs2\":false}}");
    Stentor__V1__WhatsappContent message;
    char *parameters[] = {TEXT("a"), TEXT("b")};
    stentor__v1__whatsapp_content__init(&message);
    message.reference = TEXT("hello");
    message.parameters = parameters;
    message.n_parameters = 2;
    assert_printed(
        CHANNEL_WHATSAPP, &message.base, NULL,
        "{\"id\":\"ntf_1\",\"status\":\"sent\",\"channel\":\"whatsapp\",\"template\":\"welcome\","
        "\"rendered_at\":\"1970-01-01T00:00:01.000000Z\","
        "\"content\":{\"kind\":\"whatsapp\",\"reference\":\"hello\",\"parameters\":[\"a\","
        "\"b\"]}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_mail_shows_its_parts_but_no_key_and_no_whole_address, set_up),
        cmocka_unit_test_setup(the_other_channels_show_the_fields_that_they_have, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
