// SPDX-License-Identifier: Apache-2.0
// vendor try: the request that a definition makes of a sample, or what an answer would mean.
// Nothing is sent, and no service is asked.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/routing/routes.h"
#include "common/vendor/generic/definition.h"
#include "services/cli/cli.h"
#include "services/cli/vendors/definition_file.h"

enum { SETTINGS_MAX = 16 };

static bool read_settings(const Cli *cli, VendorPair *settings, VendorAccount *ret, Error *err)
{
    const char *text = NULL;
    for (int i = 0; (text = args_each(&cli->args, "set", &i)) != NULL;) {
        Str rest = str_from(text);
        Str name;
        if (strchr(text, '=') == NULL || ret->setting_count == SETTINGS_MAX ||
            !str_split(&rest, '=', &name)) {
            return error_set(
                err, ERROR_USAGE, "--set is NAME=VALUE, at most %d times", SETTINGS_MAX);
        }
        settings[ret->setting_count++] = (VendorPair){name, rest};
    }
    ret->settings = settings;
    return true;
}

static void print_request(const VendorRequest *request)
{
    printf("%s " STR_FMT "\n", request->method, STR_ARG(request->url));
    for (size_t i = 0; i < request->header_count; i++) {
        printf(
            STR_FMT ": " STR_FMT "\n", STR_ARG(request->headers[i].name),
            STR_ARG(request->headers[i].value));
    }
    printf("\n" STR_FMT "\n", STR_ARG(request->body));
}

static const char *class_of(const SendResult *result)
{
    return result->state == SEND_UNKNOWN ? "unknown" : reply_class_name(result->reply);
}

static void print_answer(
    Cli *cli, const VendorApi *api, const VendorDefinition *definition, int64_t status)
{
    SendResult result = {0};
    const char *body = args_flag(&cli->args, "body");
    const VendorAnswer answer = {
        .status = (int)status,
        .body = str_from(body != NULL ? body : ""),
        .definition = definition};
    api->read(&answer, cli->arena, &result);
    print_pairs(
        cli, (const char *const[]){
                 "class", class_of(&result), "message_id",
                 arena_cstr(cli->arena, result.vendor_message_id), "text",
                 arena_cstr(cli->arena, result.text), NULL});
}

// As 'credential put' checks it.
static bool check_as_put(
    Cli *cli, const char *vendor, const char *definition, const VendorAccount *account, Error *err)
{
    CredentialEntry entry;
    stentor__v1__vendor_credential__init(&entry);
    entry.vendor = arena_cstr(cli->arena, str_from(vendor));
    entry.name = arena_cstr(cli->arena, account->name);
    entry.definition = arena_cstr(cli->arena, str_from(definition));
    entry.settings = arena_array(cli->arena, account->setting_count + 1, sizeof *entry.settings);
    for (size_t i = 0; i < account->setting_count; i++) {
        Stentor__V1__VendorSetting *setting = arena_alloc(cli->arena, sizeof *setting);
        stentor__v1__vendor_setting__init(setting);
        setting->name = arena_cstr(cli->arena, account->settings[i].name);
        setting->value = arena_cstr(cli->arena, account->settings[i].value);
        entry.settings[entry.n_settings++] = setting;
    }
    return credential_entry_check(&entry, err);
}

int cmd_vendor_try(Cli *cli)
{
    Error err = {0};
    int64_t status = 0;
    VendorPair settings[SETTINGS_MAX];
    VendorAccount account = {.name = STR("sample")};
    const char *vendor = args_word(&cli->args, 0);
    Channel channel = definition_channel(str_from(vendor));
    if (channel == CHANNEL_NONE) {
        (void)error_set(
            &err, ERROR_USAGE, "'%.40s' is no name of a vendor of your own, such as sms-acme",
            vendor);
        return cli_fail(cli, &err);
    }
    json_t *document = definition_file(args_word(&cli->args, 1), &err);
    char *text = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
    VendorDefinition *definition = text != NULL && definition_check_clear(document, &err)
                                       ? definition_compile(str_from(text), channel, &err)
                                       : NULL;
    VendorRequest request = {0};
    bool good = definition != NULL && read_settings(cli, settings, &account, &err) &&
                args_int(&cli->args, "status", 0, 100, 599, &status, &err) &&
                check_as_put(cli, vendor, text, &account, &err) &&
                definition_try(definition, &account, cli->arena, &request, &err);
    if (good && status > 0) {
        print_answer(cli, definition_api(channel), definition, status);
    } else if (good) {
        print_request(&request);
    }
    definition_drop(definition);
    free(text);
    json_decref(document);
    return good ? EXIT_DONE : cli_fail(cli, &err);
}
