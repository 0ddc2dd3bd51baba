// SPDX-License-Identifier: Apache-2.0
// Requests against documentation.mailgun.com, "Send an email in MIME format" (fields of the form,
// the mail as a file) and "Retrieves a paginated list of events".
#include "common/vendor/mailgun/mailgun.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define AUTHORIZATION "Authorization: Basic YXBpOmtleS0x\n" // api:key-1
#define BOUNDARY "stentor-fc0d75c2ffbc618029d67787c5ffd8be"
#define FIELD(boundary, name, value)                                                               \
    "--" boundary "\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"

static const VendorPair settings[] = {{{"domain", 6}, {"mg.example.com", 14}}};
static const VendorAccount account = {
    .name = {"main", 4}, .secret = {"key-1", 5}, .settings = settings, .setting_count = 1};

// What Python prints of the same values, in their order:
//   hashlib.sha256(b"0" + b"".join(values)).hexdigest()[:32]
static void the_whole_mail_is_a_file_of_a_form(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorAddress cc = {STR("Ann"), STR("ann@example.org")};
    const VendorAddress bcc = {STR_EMPTY, STR("audit@example.com")};
    VendorMail mail = case_mail();
    mail.cc = &cc;
    mail.cc_count = 1;
    mail.bcc = &bcc;
    mail.bcc_count = 1;
    VendorRequest request;
    case_build(&mailgun_api, &mail, &account, arena, &request);
    const char *body = arena_printf(
        arena,
        FIELD(BOUNDARY, "to", "bob@example.org") FIELD(BOUNDARY, "to", "ann@example.org")
            FIELD(BOUNDARY, "to", "audit@example.com") FIELD(BOUNDARY, "o:tracking", "no")
                FIELD(BOUNDARY, "o:tag", "billing") FIELD(BOUNDARY, "v:nid", CASE_NID) FIELD(
                    BOUNDARY, "v:attempt",
                    "2") "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"message\"; "
                                       "filename=\"message.mime\"\r\n"
                         "Content-Type: message/rfc822\r\n\r\n" STR_FMT "\r\n--" BOUNDARY "--\r\n",
        STR_ARG(mail.message));
    case_request_is(
        &request, arena, "POST", "https://api.mailgun.net/v3/mg.example.com/messages.mime",
        AUTHORIZATION "Content-Type: multipart/form-data; boundary=" BOUNDARY "\n", body);
    arena_free(arena);
}

static void the_credential_is_tested_in_test_mode(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_true(mailgun_api.test(&account, 0, arena, &request, &err));
    assert_string_equal(
        arena_cstr(arena, request.url), "https://api.mailgun.net/v3/mg.example.com/messages");
    const char *body = arena_cstr(arena, request.body);
    assert_non_null(strstr(body, "name=\"o:testmode\"\r\n\r\nyes\r\n"));
    assert_non_null(strstr(body, "name=\"to\"\r\n\r\npostmaster@mg.example.com\r\n"));
    arena_free(arena);
}

static void an_unknown_outcome_is_asked_for_by_message_id(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_mail();
    VendorRequest request;
    Error err = {0};
    assert_true(mailgun_api.ask(&mail, &account, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET",
        "https://api.mailgun.net/v3/mg.example.com/"
        "events?event=accepted&limit=40&message-id=" CASE_NID "%40mail.example.com",
        AUTHORIZATION, "");
    mail.message_id = STR_EMPTY;
    assert_false(mailgun_api.ask(&mail, &account, 0, arena, &request, &err));
    assert_string_equal(err.text, "the mail has no 'message_id' to ask mailgun for");
    arena_free(arena);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    VendorMail mail = case_mail();
    VendorAccount bad = account;
    bad.setting_count = 0;
    case_refused(
        &mailgun_api, &mail, &bad, ERROR_CONFIG,
        "the credential 'main' of mailgun needs the setting 'domain'");
    VendorPair domain = {STR("domain"), STR("mg.example.com/../x")};
    bad = account;
    bad.settings = &domain;
    case_refused(
        &mailgun_api, &mail, &bad, ERROR_CONFIG,
        "the setting 'domain' of the credential 'main' may have letters, digits, '.' and '-' only");
    mail.message = STR_EMPTY;
    case_refused(&mailgun_api, &mail, &account, ERROR_PERMANENT, "the mail has no 'message'");
    static char bytes[25 * 1024 * 1024 + 1];
    mail.message = str_of(bytes, sizeof bytes);
    case_refused(
        &mailgun_api, &mail, &account, ERROR_PERMANENT,
        "the mail's headers, body and attachments have 26214401 bytes, and mailgun takes at most "
        "26214400");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_mail_is_a_file_of_a_form),
        cmocka_unit_test(the_credential_is_tested_in_test_mode),
        cmocka_unit_test(an_unknown_outcome_is_asked_for_by_message_id),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
