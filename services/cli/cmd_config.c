// SPDX-License-Identifier: Apache-2.0
// inbound put; and what every put of configuration shares.
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/bus/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/cli/config_get.h"
#include "services/cli/config_put.h"
#include "stentor/v1/config.pb-c.h"

bool config_put(Session *session, Cli *cli, const ConfigEntry *entry, Error *err)
{
    Str payload;
    if (!event_pack(entry->message, cli->arena, &payload, err)) {
        return false;
    }
    char subject[SUBJECT_SIZE];
    subject_config(subject, entry->kind, entry->tenant, entry->key);
    // Every put is a new fact, so its id is its own: the time makes it one.
    char event_id[EVENT_ID_SIZE];
    event_id_derive(
        "config", str_from(subject),
        str_from(arena_printf(cli->arena, "%lld", (long long)clock_now_us())), event_id);
    // A service that was taken over can have the server store an earlier message again, with its
    // headers: one that says what it replaces is refused then.
    uint64_t replaces = entry->replaces;
    if (replaces == 0 && !config_get_sequence(session, cli, subject, &replaces, err)) {
        return false;
    }
    const BusHeader expected = bus_replaces(replaces, cli->arena);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(event_id),
        .payload = payload,
        .headers = &expected,
        .header_count = 1,
    };
    if (session_publish(session, &out, NULL, err)) {
        return true;
    }
    return err->kind == ERROR_PERMANENT
               ? error_set(
                     err, ERROR_CONFLICT, "'%s' was changed by another meanwhile: try again",
                     subject)
               : false;
}

void print_pairs(const Cli *cli, const char *const *pairs)
{
    Buf out;
    buf_init(&out, 1024 * 1024);
    for (int i = 0; pairs[i] != NULL; i += 2) {
        if (cli->json) {
            buf_cstr(&out, i == 0 ? "{" : ",");
            buf_json(&out, str_from(pairs[i]));
            buf_char(&out, ':');
            buf_json(&out, str_from(pairs[i + 1]));
        } else {
            buf_printf(&out, "%-14s %s\n", pairs[i], pairs[i + 1]);
        }
    }
    if (cli->json) {
        buf_cstr(&out, "}\n");
    }
    fputs(buf_c(&out), stdout);
    buf_done(&out);
}

static char *flag_or_empty(Cli *cli, const char *name)
{
    const char *value = args_flag(&cli->args, name);
    return arena_cstr(cli->arena, str_from(value != NULL ? value : ""));
}

bool config_put_once(Cli *cli, const ConfigEntry *entry, Error *err)
{
    Session session;
    if (!session_open(&session, cli, err)) {
        return false;
    }
    bool ok = config_put(&session, cli, entry, err);
    session_close(&session);
    return ok;
}

int cmd_inbound_put(Cli *cli)
{
    Error err = {0};
    char *vendor = arena_cstr(cli->arena, str_from(args_word(&cli->args, 0)));
    Stentor__V1__InboundKey key;
    stentor__v1__inbound_key__init(&key);
    key.vendor = vendor;
    key.public_key = flag_or_empty(cli, "public-key");
    key.revoked = args_has(&cli->args, "revoke");
    if (strcmp(vendor, "sendgrid") != 0) {
        error_set(&err, ERROR_PERMANENT, "unknown vendor '%s' (known: sendgrid)", vendor);
        return cli_fail(&err);
    }
    if (!cli_need(cli->settings.tenant, "STENTOR_TENANT", &err)) {
        return cli_fail(&err);
    }
    if (!key.revoked && key.public_key[0] == '\0') {
        error_set(
            &err, ERROR_PERMANENT,
            "--public-key is required: the verification key of the vendor's console");
        return cli_fail(&err);
    }
    key.tenant = arena_cstr(cli->arena, str_from(cli->settings.tenant));
    ConfigEntry entry = {"inbound", str_from(key.tenant), str_from(vendor), &key.base, 0};
    if (!config_put_once(cli, &entry, &err)) {
        return cli_fail(&err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "tenant", key.tenant, "vendor", vendor, "state",
                 key.revoked ? "revoked" : "active", NULL});
    return EXIT_DONE;
}
