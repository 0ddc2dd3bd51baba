// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "services/webhook-receiver/mail/mail_events.h"

static const char KEY_TEXT[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
#define NTF "ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"
#define OTHER_NTF "ntf_01M2V3W4X5Y6Z7A8B9CADBECFE"
#define ADA "Ada@Example.com"
#define AT_US INT64_C(1795694400000000)

static Arena *arena;
static MasterKey *master;
static MailKeys keys;
static char return_path[BOUNCE_ADDRESS_SIZE]; // with the mark of ADA
static char bare_path[BOUNCE_ADDRESS_SIZE];   // without one
static char opt_out[OPT_OUT_TOKEN_SIZE];      // of ADA
static uint8_t ada_hash[ADDRESS_HASH_LEN];

static int begin(void **state)
{
    (void)state;
    Error err = {0};
    arena = arena_new(0);
    master = master_key_parse(str_from(KEY_TEXT), &err);
    assert_non_null(master);
    bounce_key(master, &keys.bounce);
    opt_out_key(master, &keys.opt_out);
    keys.hash = master_hash_keys(master);
    address_hash(keys.hash.keys[0], STR("acme"), CHANNEL_EMAIL, STR(ADA), ada_hash);
    assert_true(bounce_address_make_for(
        &keys.bounce, STR("acme"), STR(NTF), 2, ada_hash, STR("b.test"), return_path, &err));
    assert_true(bounce_address_make(
        &keys.bounce, STR("acme"), STR(NTF), 2, STR("b.test"), bare_path, &err));
    OptOut what = {
        .tenant = STR("acme"),
        .notification_id = STR(NTF),
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_MARKETING,
        .issued_at_us = AT_US};
    memcpy(what.address_hash, ada_hash, sizeof ada_hash);
    assert_true(opt_out_sign(&keys.opt_out, &what, opt_out, &err));
    return 0;
}

static int end(void **state)
{
    (void)state;
    master_key_free(master);
    arena_free(arena);
    return 0;
}

static CallbackBatch judge(const MailReport *report, const char *delivered_to)
{
    CallbackBatch batch = {0};
    MailOrigin origin = {STR("acme"), str_from(delivered_to), AT_US};
    mail_events(report, &origin, &keys, arena, &batch);
    return batch;
}

static ReportedRecipient recipient(const char *action, const char *status, const char *diagnostic)
{
    return (ReportedRecipient){
        .original = STR("rfc822;" ADA),
        .final = STR("rfc822; <ada@example.com>"),
        .action = str_from(action),
        .status = str_from(status),
        .diagnostic = str_from(diagnostic)};
}

static MailReport bounce(ReportedRecipient *at)
{
    return (MailReport){.is_delivery = true, .recipients = at, .recipient_count = 1};
}

static MailReport complaint(const char *type)
{
    return (MailReport){.is_feedback = true, .feedback_type = str_from(type)};
}

#define assert_text(text, expected) assert_string_equal(arena_cstr(arena, (text)), (expected))

static void a_failure_is_judged_by_its_status(void **state)
{
    (void)state;
    static const struct {
        const char *status, *diagnostic, *enhanced;
        Status becomes;
        const char *reason;
        SuppressionReason suppress;
    } ROWS[] = {
        {"5.1.1 (unknown)", "smtp; 550 5.1.1 x", "5.1.1", STATUS_BOUNCED, "hard_bounce",
         SUPPRESSION_HARD_BOUNCE},
        {"5.1.6", "", "5.1.6", STATUS_BOUNCED, "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {"5.1.2", "", "5.1.2", STATUS_BOUNCED, "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
        {"5.1.10", "", "5.1.10", STATUS_BOUNCED, "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
        // Exim writes 5.0.0 for all; the other server's words are more exact.
        {"5.0.0", "smtp; 550-5.1.1 no such user", "5.1.1", STATUS_BOUNCED, "hard_bounce",
         SUPPRESSION_HARD_BOUNCE},
        {"", "smtp;550 5.1.1 no such user", "5.1.1", STATUS_BOUNCED, "hard_bounce",
         SUPPRESSION_HARD_BOUNCE},
        {"5.0.0", "smtp; 550 user unknown", "5.0.0", STATUS_BOUNCED, "soft_bounce",
         SUPPRESSION_NONE},
        {"5.2.2", "smtp; 552 5.2.2 full", "5.2.2", STATUS_BOUNCED, "soft_bounce", SUPPRESSION_NONE},
        {"5.7.1", "smtp; 550 5.7.1 spam", "5.7.1", STATUS_FAILED, "blocked", SUPPRESSION_NONE},
        // The queue gave up.
        {"4.0.0", "x; 451 5.1.1 said earlier", "4.0.0", STATUS_BOUNCED, "soft_bounce",
         SUPPRESSION_NONE},
        {"4.4.7", "", "4.4.7", STATUS_BOUNCED, "soft_bounce", SUPPRESSION_NONE},
        {"no status", "", "", STATUS_BOUNCED, "soft_bounce", SUPPRESSION_NONE},
        {"2.0.0", "", "2.0.0", STATUS_BOUNCED, "soft_bounce", SUPPRESSION_NONE},
        {"55.1.1", "5.1.1234 5.1.x", "", STATUS_BOUNCED, "soft_bounce", SUPPRESSION_NONE},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ReportedRecipient at = recipient("failed", ROWS[i].status, ROWS[i].diagnostic);
        MailReport report = bounce(&at);
        CallbackBatch batch = judge(&report, return_path);
        assert_int_equal(batch.count, 1);
        const CallbackEvent *event = &batch.events[0];
        assert_text(event->notification_id, NTF);
        assert_int_equal(event->attempt, 2);
        assert_int_equal(event->status, ROWS[i].becomes);
        assert_string_equal(event->reason_code, ROWS[i].reason);
        assert_int_equal(event->suppress, ROWS[i].suppress);
        assert_text(event->enhanced_code, ROWS[i].enhanced);
        assert_text(event->email, ADA);
    }
}

static void other_actions_end_nothing(void **state)
{
    (void)state;
    static const char *const IGNORED[] = {"delayed", "relayed", "expanded", "", "failed-ish"};
    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++) {
        ReportedRecipient at = recipient(IGNORED[i], "5.1.1", "");
        MailReport report = bounce(&at);
        CallbackBatch batch = judge(&report, return_path);
        assert_int_equal(batch.count, 0);
        assert_int_equal(batch.ignored, 1);
    }
    ReportedRecipient at = recipient("Delivered (to mailbox)", "2.1.5", "smtp; 250 ok");
    MailReport report = bounce(&at);
    CallbackBatch batch = judge(&report, return_path);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.events[0].status, STATUS_DELIVERED);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_NONE);
}

static void one_that_lies_about_its_recipient_changes_nothing(void **state)
{
    (void)state;
    ReportedRecipient at = recipient("failed", "5.1.1", "");
    at.original = STR("rfc822;victim@example.com");
    at.final = STR("rfc822;victim@example.com");
    MailReport report = bounce(&at);
    CallbackBatch batch = judge(&report, return_path);
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.ignored, 1);
    report.list_unsubscribe = str_from(arena_printf(arena, "<https://x/%s>", opt_out));
    batch = judge(&report, bare_path);
    assert_int_equal(batch.count, 0);
    // A server that forwards names the address that it was sent to as the original one.
    at.original = STR("rfc822;" ADA);
    batch = judge(&report, return_path);
    assert_int_equal(batch.count, 1);
    assert_text(batch.events[0].email, ADA);
}

static void without_a_mark_the_address_is_not_known_and_stays_free(void **state)
{
    (void)state;
    ReportedRecipient at = recipient("failed", "5.1.1", "");
    MailReport report = bounce(&at);
    CallbackBatch batch = judge(&report, bare_path);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.events[0].status, STATUS_BOUNCED);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_NONE);
    assert_int_equal(batch.events[0].email.len, 0);
    // The opt-out token in the headers that came back knows it too.
    report.list_unsubscribe = str_from(arena_printf(arena, "<https://x/%s>, <mailto:a>", opt_out));
    batch = judge(&report, bare_path);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_HARD_BOUNCE);
}

static void proof_goes_before_claim(void **state)
{
    (void)state;
    ReportedRecipient at = recipient("failed", "5.1.1", "");
    MailReport report = bounce(&at);
    report.envelope_id = STR(OTHER_NTF);
    report.message_id = STR("<" OTHER_NTF "@acme.test>");
    CallbackBatch batch = judge(&report, return_path);
    assert_text(batch.events[0].notification_id, NTF);
    report.envelope_id = str_from(return_path);
    batch = judge(&report, "bounces@b.test");
    assert_text(batch.events[0].notification_id, NTF);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_HARD_BOUNCE);
    report.envelope_id = STR_EMPTY;
    report.return_path = str_from(arena_printf(arena, "<%s>", return_path));
    batch = judge(&report, "bounces@b.test");
    assert_text(batch.events[0].notification_id, NTF);
}

static void a_claim_changes_the_notification_and_no_address(void **state)
{
    (void)state;
    ReportedRecipient at = recipient("failed", "5.1.1", "");
    MailReport report = bounce(&at);
    report.message_id = STR("<" NTF "@acme.test>");
    CallbackBatch batch = judge(&report, "bounces@b.test");
    assert_int_equal(batch.count, 1);
    assert_text(batch.events[0].notification_id, NTF);
    assert_int_equal(batch.events[0].attempt, 0);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_NONE);
    report.envelope_id = STR(OTHER_NTF);
    batch = judge(&report, "bounces@b.test");
    assert_text(batch.events[0].notification_id, OTHER_NTF);
    report.envelope_id = report.message_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFDX");
    batch = judge(&report, "bounces@b.test");
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.ignored, 1);
}

static void tokens_of_another_tenant_or_altered_ones_prove_nothing(void **state)
{
    (void)state;
    Error err = {0};
    char foreign[BOUNCE_ADDRESS_SIZE];
    assert_true(bounce_address_make_for(
        &keys.bounce, STR("globex"), STR(OTHER_NTF), 1, ada_hash, STR("b.test"), foreign, &err));
    ReportedRecipient at = recipient("failed", "5.1.1", "");
    MailReport report = bounce(&at);
    report.return_path = str_from(foreign);
    char *altered = arena_cstr(arena, str_from(opt_out));
    altered[30] = altered[30] == 'A' ? 'B' : 'A';
    report.list_unsubscribe = str_from(altered);
    CallbackBatch batch = judge(&report, "bounces@b.test");
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.ignored, 1);
    MailReport spam = complaint("abuse");
    spam.feedback_from = str_from(foreign);
    batch = judge(&spam, "fbl@b.test");
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.ignored, 1);
}

static void a_repeat_has_the_same_id_and_another_recipient_another_one(void **state)
{
    (void)state;
    ReportedRecipient at[] = {
        recipient("failed", "5.1.1", "a"), recipient("failed", "5.1.1", "b"),
        recipient("failed", "5.1.1", "b")};
    at[2].original = at[2].final = STR("rfc822;bob@example.com");
    MailReport report = bounce(at);
    report.recipient_count = 3;
    CallbackBatch batch = judge(&report, bare_path);
    assert_int_equal(batch.count, 3);
    assert_true(str_eq(batch.events[0].id, batch.events[1].id));
    assert_false(str_eq(batch.events[0].id, batch.events[2].id));
    assert_true(str_find(batch.events[0].id, '@') < 0);
}

static void the_servers_words_are_masked_and_short(void **state)
{
    (void)state;
    char *text = arena_alloc(arena, 2001);
    memset(text, 'w', 2000);
    memcpy(text, "bob@example.com said\x01 no ", 25);
    text[2000] = '\0';
    ReportedRecipient at = recipient("failed", "5.1.1", text);
    MailReport report = bounce(&at);
    CallbackBatch batch = judge(&report, return_path);
    assert_true(batch.events[0].text.len <= CALLBACK_TEXT_MAX);
    assert_false(str_has_control(batch.events[0].text));
    assert_null(strstr(arena_cstr(arena, batch.events[0].text), "bob@example.com"));
}

static void a_complaint_suppresses_the_address_that_is_the_notifications(void **state)
{
    (void)state;
    Str addresses[] = {STR("<other@example.com>"), STR("<" ADA ">")};
    MailReport report = complaint("Abuse");
    report.feedback_from = str_from(arena_printf(arena, "<%s>", return_path));
    report.feedback_recipients = addresses;
    report.feedback_recipient_count = 2;
    CallbackBatch batch = judge(&report, "fbl@b.test");
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.events[0].status, STATUS_COMPLAINED);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_COMPLAINT);
    assert_text(batch.events[0].email, ADA);
    report.feedback_recipient_count = 1; // a lie
    batch = judge(&report, "fbl@b.test");
    assert_int_equal(batch.events[0].status, STATUS_COMPLAINED);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_NONE);
}

static void a_complaint_without_its_recipient_is_known_by_the_opt_out_token(void **state)
{
    (void)state;
    MailReport report = complaint("abuse");
    report.list_unsubscribe = str_from(arena_printf(arena, "<https://x/v1/opt-out/%s>", opt_out));
    CallbackBatch batch = judge(&report, "fbl@b.test");
    assert_text(batch.events[0].notification_id, NTF);
    assert_int_equal(batch.events[0].suppress, SUPPRESSION_COMPLAINT);
    assert_int_equal(batch.events[0].email.len, 0);
    assert_memory_equal(batch.events[0].address_hash, ada_hash, sizeof ada_hash);
}

static void other_reports_and_mails_change_nothing(void **state)
{
    (void)state;
    static const char *const TYPES[] = {"not-spam", "fraud", "auth-failure", "virus", ""};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        MailReport report = complaint(TYPES[i]);
        CallbackBatch batch = judge(&report, return_path);
        assert_int_equal(batch.count, 0);
        assert_int_equal(batch.ignored, 1);
    }
    MailReport none = {0};
    CallbackBatch batch = judge(&none, return_path);
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.unreadable, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_judged_by_its_status),
        cmocka_unit_test(other_actions_end_nothing),
        cmocka_unit_test(one_that_lies_about_its_recipient_changes_nothing),
        cmocka_unit_test(without_a_mark_the_address_is_not_known_and_stays_free),
        cmocka_unit_test(proof_goes_before_claim),
        cmocka_unit_test(a_claim_changes_the_notification_and_no_address),
        cmocka_unit_test(tokens_of_another_tenant_or_altered_ones_prove_nothing),
        cmocka_unit_test(a_repeat_has_the_same_id_and_another_recipient_another_one),
        cmocka_unit_test(the_servers_words_are_masked_and_short),
        cmocka_unit_test(a_complaint_suppresses_the_address_that_is_the_notifications),
        cmocka_unit_test(a_complaint_without_its_recipient_is_known_by_the_opt_out_token),
        cmocka_unit_test(other_reports_and_mails_change_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
