// SPDX-License-Identifier: Apache-2.0
// From a sealed request to what goes out, with real keys.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/render/render_events.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define NOTIFICATION "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"

typedef struct Fixture {
    Arena *arena;
    MasterKey *master;
    DataKey *key;
    Request request;
    Stentor__V1__Meta meta;
    Job job;
} Fixture;

static char *copy(const Fixture *f, const char *text)
{
    return arena_cstr(f->arena, str_from(text));
}

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new(0);
    char text[132];
    master_key_generate(text);
    f->master = master_key_parse(str_from(text), NULL);
    uint8_t wrapped[WRAPPED_KEY_LEN];
    f->key = data_key_new(f->master, (const uint8_t *)"0123456789abcdef", 1, wrapped);
    stentor__v1__meta__init(&f->meta);
    f->meta.event_id = copy(f, "the-cause");
    f->meta.tenant = copy(f, "acme");
    f->meta.notification_id = copy(f, NOTIFICATION);
    f->meta.correlation_id = copy(f, "order-7");
    stentor__v1__notification_request__init(&f->request);
    f->request.meta = &f->meta;
    f->request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    f->request.priority = STENTOR__V1__PRIORITY__PRIORITY_HIGH;
    f->request.template_ = copy(f, "welcome");
    f->request.template_version = copy(f, "1.0.0");
    f->request.accepted_at_us = 5;
    f->request.address =
        seal(f->key, STR("acme"), STR(NOTIFICATION), "address", STR("sealed"), f->arena);
    f->request.variables =
        seal(f->key, STR("acme"), STR(NOTIFICATION), "variables", STR("{\"a\":1}"), f->arena);
    f->job = (Job){
        .request = &f->request,
        .key = f->key,
        .lane = PRIORITY_HIGH,
        .traceparent = STR("00-trace"),
        .now_us = 1234567,
        .arena = f->arena,
    };
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    data_key_free(f->key);
    master_key_free(f->master);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void a_whole_request_is_accepted(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    assert_true(render_request_check(&f->request, STR("ntf.request.high.acme"), &err));
    Str json;
    assert_true(job_variables(&f->job, &json, &err));
    assert_true(str_eq(json, STR("{\"a\":1}")));
}

static void refuse(Fixture *f, const char *expected)
{
    Error err = {0};
    assert_false(render_request_check(&f->request, STR("ntf.request.high.acme"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, expected));
}

static void a_poison_request_is_refused_by_field(void **state)
{
    Fixture *f = *state;
    Request whole = f->request;
    f->request.meta = NULL;
    refuse(f, "'meta.tenant'");
    f->request = whole;
    f->meta.tenant = copy(f, "evil");
    refuse(f, "'meta.tenant' is 'evil', which is not the subject's");
    f->meta.tenant = copy(f, "a.b");
    refuse(f, "'meta.tenant' is not a tenant");
    f->meta.tenant = copy(f, "acme");
    f->meta.notification_id = copy(f, "ntf_short");
    refuse(f, "'meta.notification_id'");
    f->meta.notification_id = copy(f, NOTIFICATION);
    f->request.channel = (Stentor__V1__Channel)99;
    refuse(f, "'channel' is 99");
    f->request.channel = whole.channel;
    f->request.address = NULL;
    refuse(f, "'address' is missing");
    f->request.address = whole.address;
    f->request.variables->key_generation = 2;
    refuse(f, "two keys");
    f->request.variables->key_subject.len = 3;
    refuse(f, "'variables' does not name its key");
}

static void altered_variables_are_permanent(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Str json;
    f->request.variables->ciphertext.data[0] ^= 1;
    assert_false(job_variables(&f->job, &json, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
}

static Stentor__V1__Rendered *render(Fixture *f, const CompiledVersion *version, BusOut *out)
{
    Error err = {0};
    Draft draft;
    draft_init(&draft);
    buf_cstr(&draft.subject, "Hello");
    buf_cstr(&draft.html, "<p>Hello Ann</p>");
    Sender sender = {
        .address = copy(f, "no-reply@acme.test"),
        .name = copy(f, "Acme"),
        .reply_to = copy(f, "help@acme.test"),
        .locale = copy(f, ""),
    };
    CompiledLocale locale = {.locale = "en", .direction = "ltr"};
    assert_true(rendered_event(&f->job, version, &locale, &draft, &sender, out, &err));
    draft_done(&draft);
    return (Stentor__V1__Rendered *)event_unpack(
        &stentor__v1__rendered__descriptor, out->payload, f->arena, &err);
}

static void a_rendered_mail_can_be_read_by_the_dispatcher(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Stentor__V1__LocaleVariant variant;
    stentor__v1__locale_variant__init(&variant);
    variant.html = copy(f, "<p>Hello {{name}}</p>");
    Stentor__V1__TemplateVersion source;
    stentor__v1__template_version__init(&source);
    source.locales = (Stentor__V1__LocaleVariant *[]){&variant};
    source.n_locales = 1;
    CompiledVersion version = {.source = &source, .prefix = body_prefix_new(&source)};
    BusOut out;
    Stentor__V1__Rendered *rendered = render(f, &version, &out);
    assert_non_null(rendered);
    assert_string_equal(out.subject, "ntf.rendered.high.acme");
    assert_true(str_eq(out.traceparent, STR("00-trace")));
    assert_true(str_eq(out.event_id, str_from(rendered->meta->event_id)));
    assert_string_equal(rendered->meta->causation_id, "the-cause");
    assert_string_equal(rendered->meta->correlation_id, "order-7");
    assert_int_equal(rendered->attempt, 1);
    assert_int_equal(rendered->rendered_at_us, 1234567);
    assert_true(rendered->content_prefix_id == body_prefix_id(version.prefix));
    assert_true(
        str_eq(pb_bytes(rendered->address->ciphertext), pb_bytes(f->request.address->ciphertext)));
    Str frame;
    Str plain;
    assert_true(unseal(
        f->key, STR("acme"), STR(NOTIFICATION), "content", rendered->content, f->arena, &frame,
        &err));
    assert_true(body_unpack(version.prefix, frame, f->arena, &plain, &err));
    uint8_t checksum[SHA256_LEN];
    sha256(plain, checksum);
    assert_true(str_eq(pb_bytes(rendered->content_checksum), str_of(checksum, sizeof checksum)));
    const Stentor__V1__EmailContent *content = (const Stentor__V1__EmailContent *)event_unpack(
        &stentor__v1__email_content__descriptor, plain, f->arena, &err);
    assert_string_equal(content->subject, "Hello");
    assert_string_equal(content->html, "<p>Hello Ann</p>");
    assert_string_equal(content->text, "");
    assert_string_equal(content->from, "no-reply@acme.test");
    assert_string_equal(content->from_name, "Acme");
    assert_string_equal(content->reply_to, "help@acme.test");
    body_prefix_free(version.prefix);
}

static void rendering_twice_gives_the_same_event_id(void **state)
{
    Fixture *f = *state;
    CompiledVersion version = {.prefix = NULL};
    BusOut first;
    BusOut second;
    (void)render(f, &version, &first);
    f->job.now_us++;
    (void)render(f, &version, &second);
    char expected[EVENT_ID_SIZE];
    event_id_derive("rendered", STR(NOTIFICATION), STR("1"), expected);
    assert_true(str_eq(first.event_id, str_from(expected)));
    assert_true(str_eq(second.event_id, str_from(expected)));
}

#define FIRST_ITEM "ntf_01ARZ3NDEKTSV4RRFFQ69G5FA1"
#define SECOND_ITEM "ntf_01ARZ3NDEKTSV4RRFFQ69G5FA2"

static Stentor__V1__DigestItem *item(Fixture *f, const char *id, const char *json)
{
    Stentor__V1__DigestItem *made = arena_alloc(f->arena, sizeof *made);
    stentor__v1__digest_item__init(made);
    made->notification_id = copy(f, id);
    made->template_ = copy(f, "comment");
    made->accepted_at_us = 1000000;
    made->variables =
        seal(f->key, STR("acme"), str_from(id), "variables", str_from(json), f->arena);
    return made;
}

static void a_digest_gets_its_items(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Stentor__V1__DigestItem *items[] = {
        item(f, FIRST_ITEM, "{\"by\":\"Ann\"}"), item(f, SECOND_ITEM, "[1]")};
    f->request.digest_items = items;
    f->request.n_digest_items = 2;
    f->request.digest_total = 7;
    json_t *variables = json_pack("{s:i,s:s}", "count", 99, "own", "kept");
    assert_true(digest_variables(&f->job, variables, &err));
    assert_int_equal(json_integer_value(json_object_get(variables, "count")), 7);
    assert_int_equal(json_integer_value(json_object_get(variables, "more")), 5);
    assert_string_equal(json_string_value(json_object_get(variables, "own")), "kept");
    const json_t *first = json_object_get(variables, "first");
    assert_string_equal(json_string_value(json_object_get(first, "by")), "Ann");
    assert_string_equal(json_string_value(json_object_get(first, "notification_id")), FIRST_ITEM);
    assert_string_equal(json_string_value(json_object_get(first, "template")), "comment");
    const json_t *list = json_object_get(variables, "list");
    assert_int_equal(json_array_size(list), 2);
    assert_null(json_object_get(json_array_get(list, 1), "by"));
    json_decref(variables);
}

// One item's variables in another's place: the seal holds the notification's id.
static void a_digest_item_of_another_notification_is_refused(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Stentor__V1__DigestItem *moved = item(f, FIRST_ITEM, "{}");
    moved->notification_id = copy(f, SECOND_ITEM);
    f->request.digest_items = (Stentor__V1__DigestItem *[]){moved};
    f->request.n_digest_items = 1;
    json_t *variables = json_object();
    assert_false(digest_variables(&f->job, variables, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "digest item '" SECOND_ITEM "'"));
    json_decref(variables);
}

static void other_channels_have_contents_of_their_own(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Draft draft;
    draft_init(&draft);
    buf_cstr(&draft.text, "Code 123");
    draft.sms = sms_measure(STR("Code 123"));
    f->request.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    Sender sender = {.address = copy(f, ""), .name = copy(f, ""), .locale = copy(f, "")};
    CompiledLocale locale = {.locale = "fa-AF", .direction = "rtl"};
    CompiledVersion version = {.prefix = NULL};
    BusOut out;
    assert_true(rendered_event(&f->job, &version, &locale, &draft, &sender, &out, &err));
    const Stentor__V1__Rendered *rendered = (const Stentor__V1__Rendered *)event_unpack(
        &stentor__v1__rendered__descriptor, out.payload, f->arena, &err);
    Str frame;
    Str plain;
    assert_string_equal(rendered->direction, "rtl");
    assert_true(unseal(
        f->key, STR("acme"), STR(NOTIFICATION), "content", rendered->content, f->arena, &frame,
        &err));
    assert_true(body_unpack(NULL, frame, f->arena, &plain, &err));
    const Stentor__V1__SmsContent *content = (const Stentor__V1__SmsContent *)event_unpack(
        &stentor__v1__sms_content__descriptor, plain, f->arena, &err);
    assert_string_equal(content->text, "Code 123");
    assert_int_equal(content->segments, 1);
    assert_false(content->ucs2);
    draft_done(&draft);
}

static void a_failure_is_a_public_status(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    RenderFailure failure = {.code = FAILURE_NONE};
    assert_false(render_fail(
        &failure, FAILURE_MISSING_VARIABLE, "required variable '%s' is missing", "name"));
    BusOut out;
    assert_true(failed_event(&f->job, &failure, &out, &err));
    assert_string_equal(out.subject, "ntf.status.acme.email.failed");
    const Stentor__V1__NotificationStatus *status =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, out.payload, f->arena, &err);
    assert_int_equal(status->status, STENTOR__V1__STATUS__STATUS_FAILED);
    assert_string_equal(status->reason_code, "missing_variable");
    assert_string_equal(status->reason, "required variable 'name' is missing");
    assert_string_equal(status->meta->notification_id, NOTIFICATION);
    assert_int_equal(status->accepted_at_us, 5);
    assert_null(status->attempt);
    char expected[EVENT_ID_SIZE];
    event_id_derive("status", STR(NOTIFICATION), STR("failed/0"), expected);
    assert_true(str_eq(out.event_id, str_from(expected)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_whole_request_is_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_poison_request_is_refused_by_field, set_up, tear_down),
        cmocka_unit_test_setup_teardown(altered_variables_are_permanent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_rendered_mail_can_be_read_by_the_dispatcher, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rendering_twice_gives_the_same_event_id, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_digest_gets_its_items, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_digest_item_of_another_notification_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            other_channels_have_contents_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_is_a_public_status, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
