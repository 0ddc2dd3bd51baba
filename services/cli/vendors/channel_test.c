// SPDX-License-Identifier: Apache-2.0
// channel test: the call of a vendor that proves a credential and sends nothing, behind the one
// that asks for a token where the secret only makes that. A vendor without such a call is not
// called: its key is read and signs, its definition makes a request of a sample, or there is no
// secret to prove. The secret is read here, where the command runs, so it is run where the
// dispatchers run.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/vendor/generic/definition.h"
#include "services/cli/api_client.h"
#include "services/cli/vendors/secret_here.h"
#include "services/cli/vendors/vendor_call.h"

enum { ANSWER_SHOWN_MAX = 300, SECRET_WORD_MIN = 12 };

typedef struct Test {
    Cli *cli;
    VendorCaller *caller;
    const VendorApi *api;
    VendorAccount account;
    VendorAnswer answer;
} Test;

// ---- the credential ----

static bool read_credential(Test *test, const json_t *entry, Str *ret_reference)
{
    Arena *arena = test->cli->arena;
    const char *name = NULL;
    json_t *value = NULL;
    json_t *settings = json_object_get(entry, "settings");
    VendorPair *pairs = arena_array(arena, json_object_size(settings) + 1, sizeof *pairs);
    size_t count = 0;
    json_object_foreach(settings, name, value)
    {
        pairs[count++] = (VendorPair){
            arena_str(arena, str_from(name)), arena_str(arena, str_from(json_string_value(value)))};
    }
    test->account = (VendorAccount){
        .name = arena_str(arena, str_from(api_client_text(entry, "name", ""))),
        .id = arena_str(arena, str_from(api_client_text(entry, "key_id", ""))),
        .settings = pairs,
        .setting_count = count};
    *ret_reference = arena_str(arena, str_from(api_client_text(entry, "reference", "")));
    return true;
}

// ---- the call ----

// What authorizes the call, where the secret only makes that.
static bool authorize(Test *test, Error *err)
{
    VendorRequest request = {0};
    VendorBearer bearer = {0};
    Arena *arena = test->cli->arena;
    const VendorApi *api = test->api;
    bool fine = true;
    if (api->sign != NULL) {
        fine = api->sign(
            &test->account, STR("https://push.example"), clock_now_us(), arena, &bearer, err);
    } else if (api->grant != NULL) {
        fine = api->grant(&test->account, clock_now_us(), arena, &request, err) &&
               vendor_call(test->caller, &request, &test->answer, err) &&
               api->granted(&test->answer, arena, &bearer, err);
    }
    test->account.bearer = bearer.text;
    return fine;
}

// ---- what it says ----

static void hide(char *text, Str secret, Arena *arena)
{
    const char *word = arena_cstr(arena, secret);
    for (char *at = text; secret.len > 0 && (at = strstr(at, word)) != NULL;) {
        memset(at, '*', secret.len);
    }
}

static bool is_between_words(char c)
{
    return c == '"' || c == ' ' || c == ',' || c == ':' || (c >= '\t' && c <= '\r');
}

// A secret of several values: each of them, when it is long enough to be one.
static void hide_words(char *text, Str secret, Arena *arena)
{
    for (size_t begin = 0, i = 0; i <= secret.len; i++) {
        if (i == secret.len || is_between_words(secret.ptr[i])) {
            if (i - begin >= SECRET_WORD_MIN) {
                hide(text, str_slice(secret, begin, i), arena);
            }
            begin = i + 1;
        }
    }
}

// What a vendor repeats of a secret is not shown either.
static const char *shown_body(Test *test)
{
    Arena *arena = test->cli->arena;
    char *text = arena_cstr(arena, str_slice(test->answer.body, 0, ANSWER_SHOWN_MAX));
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '\n' || *c == '\r' || *c == '\t' ? ' ' : *c;
    }
    hide(text, test->account.secret, arena);
    hide_words(text, test->account.secret, arena);
    return text;
}

static int show(Test *test)
{
    SendResult result = {0};
    test->api->read(&test->answer, test->cli->arena, &result);
    bool refused = result.state == SEND_ANSWERED && result.reply == REPLY_CONFIG;
    bool good = test->answer.status / 100 == 2;
    print_pairs(
        test->cli, (const char *const[]){
                       "vendor", args_word(&test->cli->args, 0), "credential",
                       args_word(&test->cli->args, 1), "state",
                       good                                        ? "accepted"
                       : refused || test->answer.status / 100 == 4 ? "refused"
                                                                   : "unclear",
                       "status", arena_printf(test->cli->arena, "%d", test->answer.status),
                       "answer", shown_body(test), NULL});
    return good ? EXIT_DONE : EXIT_FAILED;
}

// ---- all of it ----

static bool build_sample(const Test *test, const json_t *entry, Error *err)
{
    VendorRequest request = {0};
    char *text = json_dumps(json_object_get(entry, "definition"), JSON_COMPACT);
    VendorDefinition *definition =
        definition_compile(str_from(text != NULL ? text : ""), test->api->channel, err);
    bool done = definition != NULL &&
                definition_try(definition, &test->account, test->cli->arena, &request, err);
    definition_drop(definition);
    free(text);
    return done;
}

static bool run(Test *test, const json_t *entry, Error *err)
{
    Str reference;
    VendorRequest request = {0};
    if (!read_credential(test, entry, &reference)) {
        return false;
    }
    if (test->api->endpoint) {
        return true;
    }
    if (!secret_here(test->cli, reference, &test->account.secret, err)) {
        return false;
    }
    if (test->api->by_definition) {
        return build_sample(test, entry, err);
    }
    return (test->caller = vendor_caller_new(test->cli, err)) != NULL && authorize(test, err) &&
           (test->api->test == NULL ||
            (test->api->test(&test->account, clock_now_us(), test->cli->arena, &request, err) &&
             vendor_call(test->caller, &request, &test->answer, err)));
}

// There is nothing to call.
static int show_uncalled(Test *test)
{
    const VendorApi *api = test->api;
    const char *state = api->sign != NULL    ? "signs"
                        : api->by_definition ? "builds"
                        : api->endpoint      ? "no secret"
                                             : "not called";
    const char *why = api->endpoint ? "not called: the recipient's address is the secret"
                                    : "not called: this vendor has no call that sends nothing";
    print_pairs(
        test->cli, (const char *const[]){
                       "vendor", args_word(&test->cli->args, 0), "credential",
                       args_word(&test->cli->args, 1), "state", state, "answer", why, NULL});
    return EXIT_DONE;
}

static int test_entry(Cli *cli, const json_t *entry)
{
    Error err = {0};
    Test test = {.cli = cli, .api = vendor_find(str_from(args_word(&cli->args, 0)))};
    bool done = run(&test, entry, &err);
    int status = !done                    ? cli_fail(cli, &err)
                 : test.api->test == NULL ? show_uncalled(&test)
                                          : show(&test);
    vendor_caller_free(test.caller);
    return status;
}

int cmd_channel_test(Cli *cli)
{
    Error err = {0};
    const char *vendor = args_word(&cli->args, 0);
    const VendorApi *api = vendor_find(str_from(vendor));
    if (api == NULL) {
        (void)error_set(
            &err, ERROR_USAGE,
            "'%.32s' is no vendor with an HTTP API; 'stentor channel list' names them", vendor);
        return cli_fail(cli, &err);
    }
    const char *path = arena_printf(
        cli->arena, "/v1/credentials/%s/%s", api_client_escape(cli, vendor),
        api_client_escape(cli, args_word(&cli->args, 1)));
    return api_client_run(cli, "GET", path, NULL, test_entry);
}
