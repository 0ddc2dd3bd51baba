// SPDX-License-Identifier: Apache-2.0
// Every vendor of mail over a matrix of mails: what was put in stands in the request, read back by
// a JSON parser or found in the form; the same mail has the same bytes.
#include "common/base/id.h"
#include "tests/unit/common/vendor/vendor_case.h"

enum {
    MAIL_VENDORS = 6,
    HTML_MAX = 3 * 1024 * 1024,
    ATTACHMENT_MAX = 64 * 1024,
    LINE_MAX_BYTES = 990
};

static const VendorPair settings[] = {
    {{"region", 6}, {"eu-central-1", 12}}, {{"domain", 6}, {"mg.example.com", 14}}};
static const VendorAccount account = {
    .name = {"main", 4},
    .id = {"AKIDEXAMPLE", 11},
    .secret = {"secret", 6},
    .settings = settings,
    .setting_count = 2};

// ---- mails ----

static void plain(VendorMail *mail, Arena *arena)
{
    (void)mail;
    (void)arena;
}

static void no_html(VendorMail *mail, Arena *arena)
{
    (void)arena;
    mail->html = STR_EMPTY;
}

static void no_text(VendorMail *mail, Arena *arena)
{
    (void)arena;
    mail->text = STR_EMPTY;
}

static void bare(VendorMail *mail, Arena *arena)
{
    (void)arena;
    mail->category = mail->template_key = mail->message_id = STR_EMPTY;
    mail->from.name = mail->to.name = STR_EMPTY;
}

static void beyond_ascii(VendorMail *mail, Arena *arena)
{
    (void)arena;
    mail->from.name = STR("株式会社 \"例\"");
    mail->to.name = STR("O'Brien, Zoë \\ 😀");
    mail->subject = STR("Rechnung für Zoë 😀 \"17\" \\ \xe2\x80\xa8");
    mail->html = STR("<p title=\"x\">\t\x01\x7f ünï 😀 \xe2\x80\xa8 </p>\r\n");
    mail->text = STR("ünï\r\n.\r\n--\r\n😀 \\u0041 %recipient%");
    mail->message = STR("Subject: x\r\n\r\nünï 😀\r\n--stentor-00000000\r\n");
}

static void with_attachments(VendorMail *mail, Arena *arena)
{
    VendorAttachment *list = arena_array(arena, VENDOR_ATTACHMENTS_MAX, sizeof *list);
    char *bytes = arena_alloc(arena, ATTACHMENT_MAX);
    for (size_t i = 0; i < ATTACHMENT_MAX; i++) {
        bytes[i] = (char)(i * 7);
    }
    for (size_t i = 0; i < VENDOR_ATTACHMENTS_MAX; i++) {
        list[i] = (VendorAttachment){
            .name = str_from(arena_printf(arena, "bërïcht %zu.pdf", i)),
            .type = STR("application/pdf"),
            .content_id = i == 0 ? STR("logo") : STR_EMPTY,
            .bytes = str_of(bytes, ATTACHMENT_MAX - i)}; // each remainder of three
    }
    mail->attachments = list;
    mail->attachment_count = VENDOR_ATTACHMENTS_MAX;
}

static Str filled(Arena *arena, char c, size_t len)
{
    char *text = arena_alloc(arena, len);
    memset(text, c, len);
    return str_of(text, len);
}

static Str longest_address(Arena *arena, size_t n)
{
    Str domain = filled(arena, 'd', 254 - 64 - 1 - 4);
    return str_from(arena_printf(arena, "%064zu@" STR_FMT ".org", n, STR_ARG(domain)));
}

static void longest(VendorMail *mail, Arena *arena)
{
    VendorAddress *many = arena_array(arena, VENDOR_ADDRESSES_MAX, sizeof *many);
    for (size_t i = 0; i < VENDOR_ADDRESSES_MAX; i++) {
        many[i] = (VendorAddress){filled(arena, '"', 200), longest_address(arena, i)};
    }
    VendorPair *headers = arena_array(arena, 16, sizeof *headers);
    for (size_t i = 0; i < 16; i++) {
        headers[i] = (VendorPair){
            str_from(arena_printf(arena, "X-Header-%zu", i)), filled(arena, '"', LINE_MAX_BYTES)};
    }
    mail->to = many[0];
    mail->cc = many + 1;
    mail->cc_count = 30;
    mail->bcc = many + 31;
    mail->bcc_count = VENDOR_ADDRESSES_MAX - 31;
    mail->headers = headers;
    mail->header_count = 16;
    mail->key = filled(arena, 'k', VENDOR_KEY_MAX);
    mail->subject = filled(arena, '\\', LINE_MAX_BYTES);
    mail->html = filled(arena, '"', HTML_MAX);
    mail->message = filled(arena, '\n', HTML_MAX);
}

typedef struct Case {
    const char *name;
    void (*change)(VendorMail *mail, Arena *arena);
} Case;

static const Case cases[] = {
    {"plain", plain},    {"no html", no_html},           {"no text", no_text},
    {"bare", bare},      {"beyond ASCII", beyond_ascii}, {"attachments", with_attachments},
    {"longest", longest}};

// ---- what stands in the request ----

static bool has_bytes(Str text, Str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (text.ptr[i] == part.ptr[0] && memcmp(text.ptr + i, part.ptr, part.len) == 0) {
            return true;
        }
    }
    return false;
}

// Some string of the tree is `text`.
static bool tree_has(const json_t *value, Str text)
{
    const char *key;
    json_t *member;
    bool found = json_is_string(value) &&
                 str_eq(str_of(json_string_value(value), json_string_length(value)), text);
    for (size_t i = 0; !found && i < json_array_size(value); i++) {
        found = tree_has(json_array_get(value, i), text);
    }
    json_t *object = json_is_object(value) ? json_incref((json_t *)(uintptr_t)value) : NULL;
    json_object_foreach(object, key, member)
    {
        found = found || tree_has(member, text);
    }
    json_decref(object);
    return found;
}

static void check_json(const VendorApi *api, const VendorMail *mail, Str body, Arena *arena)
{
    json_t *root = json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_true(tree_has(root, mail->notification_id));
    assert_true(tree_has(root, STR("2")));
    for (size_t i = 0; !api->whole && i < mail->attachment_count; i++) {
        assert_true(tree_has(root, mail->attachments[i].name));
        assert_true(tree_has(root, vendor_base64(mail->attachments[i].bytes, arena)));
    }
    for (size_t i = 0; !api->whole && i < mail->header_count; i++) {
        assert_true(tree_has(root, mail->headers[i].value));
    }
    if (api->whole) {
        assert_true(
            tree_has(root, mail->message) || tree_has(root, vendor_base64(mail->message, arena)));
    } else {
        assert_true(tree_has(root, mail->subject));
        assert_true(mail->html.len == 0 || tree_has(root, mail->html));
        assert_true(mail->text.len == 0 || tree_has(root, mail->text));
    }
    json_decref(root);
}

static void check_request(
    const VendorApi *api, const VendorMail *mail, const VendorRequest *request, Arena *arena)
{
    assert_string_equal(request->method, "POST");
    assert_true(str_starts(request->url, STR("https://")));
    assert_true(request->header_count > 0 && request->header_count <= VENDOR_HEADERS_MAX);
    for (size_t i = 0; i < request->header_count; i++) {
        assert_false(str_has_control(request->headers[i].value));
    }
    if (strcmp(api->name, "mailgun") == 0) {
        assert_true(has_bytes(request->body, mail->message));
        assert_true(has_bytes(request->body, mail->to.address));
        assert_true(has_bytes(request->body, mail->notification_id));
    } else {
        check_json(api, mail, request->body, arena);
    }
}

static void every_vendor_builds_every_mail(void **state)
{
    (void)state;
    for (size_t n = 0; n < MAIL_VENDORS; n++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const VendorApi *api = vendor_at(n);
            Arena *arena = arena_new(0);
            VendorMail mail = case_mail();
            cases[i].change(&mail, arena);
            VendorRequest request, again;
            Error err = {0};
            if (!api->build(&mail, &account, CASE_READ_US, arena, &request, &err)) {
                fail_msg("%s, %s: %s", api->name, cases[i].name, err.text);
            }
            check_request(api, &mail, &request, arena);
            assert_true(api->build(&mail, &account, CASE_READ_US, arena, &again, &err));
            assert_true(str_eq(request.body, again.body));
            arena_free(arena);
        }
    }
}

static void every_vendor_names_what_is_wrong(void **state)
{
    (void)state;
    for (size_t n = 0; n < MAIL_VENDORS; n++) {
        const VendorApi *api = vendor_at(n);
        Arena *arena = arena_new(0);
        VendorMail mail = case_mail();
        mail.to.address = STR("zoë@example.org");
        case_refused(
            api, &mail, &account, ERROR_PERMANENT,
            arena_printf(
                arena,
                "the mail's 'to' has an address with more than ASCII, which %s does not take",
                api->name));
        mail = case_mail();
        mail.bcc_count = api->recipients_max;
        case_refused(
            api, &mail, &account, ERROR_PERMANENT,
            arena_printf(
                arena,
                "the mail has %zu recipients in 'to', 'cc' and 'bcc', and %s takes at most %zu",
                api->recipients_max + 1, api->name, api->recipients_max));
        mail = case_mail();
        VendorAccount bad = account;
        bad.secret = STR_EMPTY;
        case_refused(
            api, &mail, &bad, ERROR_CONFIG,
            arena_printf(arena, "the credential 'main' of %s has no secret", api->name));
        VendorRequest request;
        Error err = {0};
        assert_false(api->test(&bad, 0, arena, &request, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vendor_builds_every_mail),
        cmocka_unit_test(every_vendor_names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
