// SPDX-License-Identifier: Apache-2.0
// doctor: is everything there, does it fit together, and how durable is this installation? Each
// check that does not pass names the remedy.
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/bus/topology/topology.h"
#include "common/db/master_keys.h"
#include "services/cli/api_client.h"
#include "services/cli/config/config_order.h"
#include "services/cli/config/config_walk.h"
#include "services/cli/doctor/doctor.h"
#include "services/cli/doctor/doctor_config.h"

void doctor_say(Doctor *doctor, const char *name, Verdict verdict, const char *text)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    doctor->counts[verdict]++;
    if (doctor->cli->json) {
        json_array_append_new(
            doctor->checks,
            json_pack("{s:s, s:s, s:s}", "check", name, "result", names[verdict], "text", text));
    } else {
        printf("%-5s %-31s %s\n", names[verdict], name, text);
    }
}

const StreamState *doctor_stream(const Doctor *doctor, const char *name)
{
    size_t count;
    const StreamSpec *specs = topology_streams(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(specs[i].name, name) == 0) {
            return doctor->stream_read[i] ? &doctor->streams[i] : NULL;
        }
    }
    return NULL;
}

// ---- NATS ----

static void check_tenants(Doctor *doctor, Session *session)
{
    Error err = {0};
    ConfigRemark keys;
    ConfigRemark senders;
    if (!doctor_config_read(session, doctor->cli, &keys, &senders, &err)) {
        doctor_say(doctor, "tenants", CHECK_FAIL, err.text);
        return;
    }
    doctor_say(doctor, "api keys", keys.warns ? CHECK_WARN : CHECK_OK, keys.text);
    doctor_say(doctor, "senders", senders.warns ? CHECK_WARN : CHECK_OK, senders.text);
}

// ---- CONFIG ----

typedef struct ConfigCheck {
    Doctor *doctor;
    long long entries, bad, unordered;
} ConfigCheck;

static bool check_entry(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    enum { NAMED_MAX = 20 };
    (void)err;
    ConfigCheck *check = ctx;
    Arena *arena = check->doctor->cli->arena;
    check->entries += message->payload.len > 0 ? 1 : 0;
    check->unordered += reason == NULL && !config_is_ordered(message) ? 1 : 0;
    if (reason != NULL && check->bad++ < NAMED_MAX) {
        doctor_say(
            check->doctor, arena_cstr(arena, message->subject), CHECK_FAIL,
            arena_printf(
                arena, "cannot be read: %s (HINT: stentor config mend %.*s)", reason,
                STR_ARG(message->subject)));
    }
    return true;
}

static void check_config(Doctor *doctor, Session *session)
{
    Error err = {0};
    ConfigCheck check = {.doctor = doctor};
    const StreamState *config = doctor_stream(doctor, "CONFIG");
    bool had_some = config != NULL && config->last > 0;
    if (!config_walk(session, &(ConfigPart){0}, check_entry, &check, &err)) {
        doctor_say(doctor, "config", CHECK_FAIL, err.text);
    } else if (check.entries == 0) {
        doctor_say(
            doctor, "config", had_some ? CHECK_FAIL : CHECK_WARN,
            had_some ? "empty, but it was not before: once the services restart, no tenant, key or "
                       "template is left (HINT: stentor config import FILE)"
                     : "empty: no tenant, no API key, no template yet (HINT: stentor tenant put "
                       "TENANT --name NAME --sender ADDRESS)");
    } else {
        const char *old =
            check.unordered == 0
                ? ""
                : arena_printf(
                      doctor->cli->arena,
                      ", %lld of an earlier version do not name the entry that they replace, so an "
                      "intruder in a service could bring old ones back (HINT: stentor migrate)",
                      check.unordered);
        doctor_say(
            doctor, "config",
            check.bad > 0         ? CHECK_FAIL
            : check.unordered > 0 ? CHECK_WARN
                                  : CHECK_OK,
            arena_printf(
                doctor->cli->arena, "%lld entries, %lld cannot be read%s", check.entries, check.bad,
                old));
    }
}

static void check_nats(Doctor *doctor)
{
    Error err = {0};
    Session *session = &doctor->session;
    if (!session_open(session, &doctor->cli->settings.session, &err)) {
        doctor_say(doctor, "nats", CHECK_FAIL, err.text);
        return;
    }
    doctor_say(doctor, "nats", CHECK_OK, doctor->cli->settings.session.nats_url);
    doctor->has_session = true;
    doctor_topology(doctor);
    check_tenants(doctor, session);
    doctor_channels(doctor);
    doctor_message_id(doctor);
    doctor_opt_out(doctor);
    doctor->config_read = keys_fetch(session, doctor->cli->arena, &doctor->in_config, &err);
    check_config(doctor, session);
    doctor_nats_clock(doctor);
}

// ---- Postgres ----

static void check_role(Doctor *doctor, PGconn *conn)
{
    PGresult *res = PQexec(
        conn,
        "SELECT rolsuper OR rolbypassrls, current_user FROM pg_roles WHERE rolname = current_user");
    bool bypasses = PQntuples(res) == 1 && PQgetvalue(res, 0, 0)[0] == 't';
    doctor_say(
        doctor, "postgres role", bypasses ? CHECK_WARN : CHECK_OK,
        bypasses ? "this login bypasses row-level security; services must not use it"
                 : "cannot bypass row-level security");
    PQclear(res);
}

// What runs with its owner's rights must not have a superuser's.
static void check_owner(Doctor *doctor, PGconn *conn)
{
    PGresult *res = PQexec(
        conn,
        "SELECT count(*), min(p.oid::regproc::text) FROM pg_proc p"
        " JOIN pg_roles r ON r.oid = p.proowner AND r.rolsuper"
        " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prosecdef AND n.nspname IN"
        " ('stentor', 'keys', 'ingest', 'dispatcher', 'digest_flusher', 'archive', "
        "'archiver', 'people', 'order_saga', 'feed', 'erasure', 'webhooks', 'gateway', 'find')");
    bool known = PQresultStatus(res) == PGRES_TUPLES_OK;
    bool ok = known && strcmp(PQgetvalue(res, 0, 0), "0") == 0;
    doctor_say(
        doctor, "postgres owner", ok ? CHECK_OK : CHECK_FAIL,
        ok ? "no function runs as a superuser"
           : arena_printf(
                 doctor->cli->arena,
                 "%s functions run as a superuser, '%s' first"
                 " (HINT: as a superuser: stentor migrate --bootstrap)",
                 known ? PQgetvalue(res, 0, 0) : "unknown", known ? PQgetvalue(res, 0, 1) : "?"));
    PQclear(res);
}

static void check_durability(Doctor *doctor, PGconn *conn)
{
    PGresult *res =
        PQexec(conn, "SELECT current_setting('fsync'), current_setting('synchronous_commit')");
    bool durable = PQntuples(res) == 1 && strcmp(PQgetvalue(res, 0, 0), "on") == 0 &&
                   strcmp(PQgetvalue(res, 0, 1), "off") != 0;
    doctor_say(
        doctor, "postgres durability", durable ? CHECK_OK : CHECK_FAIL,
        durable ? "fsync and synchronous_commit are on"
                : "fsync or synchronous_commit is off: an accepted request may be lost");
    PQclear(res);
}

static void check_postgres(Doctor *doctor)
{
    const Cli *cli = doctor->cli;
    if (cli->settings.database_url[0] == '\0') {
        doctor_say(doctor, "postgres", CHECK_FAIL, "STENTOR_DATABASE_URL is not set");
        return;
    }
    PGconn *conn = PQconnectdb(cli->settings.database_url);
    if (PQstatus(conn) != CONNECTION_OK) {
        doctor_say(
            doctor, "postgres", CHECK_FAIL,
            arena_cstr(cli->arena, str_trim(str_from(PQerrorMessage(conn)))));
    } else {
        doctor_say(
            doctor, "postgres", CHECK_OK,
            arena_printf(cli->arena, "server %d", PQserverVersion(conn) / 10000));
        check_role(doctor, conn);
        check_owner(doctor, conn);
        check_durability(doctor, conn);
        doctor_postgres_clock(doctor, conn);
        Error err = {0};
        doctor->postgres_read = master_keys_load(conn, &doctor->in_postgres, &err);
        doctor_keys(doctor, conn);
        doctor_erasures(doctor, conn);
        if (doctor->has_session) { // NATS has said where its streams end
            doctor_projections(doctor, conn);
            doctor_log(doctor, conn);
        }
    }
    PQfinish(conn);
}

static void check_outbox(Doctor *doctor, const char *url)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) == CONNECTION_OK) {
        doctor_outbox_projections(doctor, conn);
    } else {
        doctor_say(
            doctor, "outbox database", CHECK_FAIL,
            arena_cstr(doctor->cli->arena, str_trim(str_from(PQerrorMessage(conn)))));
    }
    PQfinish(conn);
}

static void check_outboxes(Doctor *doctor)
{
    const char *url;
    for (int i = 0; (url = args_each(&doctor->cli->args, "outbox-database", &i)) != NULL;) {
        if (doctor->has_session) {
            check_outbox(doctor, url);
        }
    }
}

// ---- the master key file ----

static bool is_registered(
    bool known, const KeyRegister *keys, MasterKey *master, const char *where, Error *err)
{
    return !known || key_register_check(keys, master, err) || error_wrap(err, "%s", where);
}

static void check_keys(Doctor *doctor)
{
    Cli *cli = doctor->cli;
    Error err = {0};
    if (cli->settings.master_key_file[0] == '\0') {
        doctor_say(
            doctor, "master key file", CHECK_WARN,
            "not compared (HINT: STENTOR_MASTER_KEY_FILE=FILE stentor doctor)");
        return;
    }
    MasterKey *master = keys_read_file(cli->settings.master_key_file, cli->arena, &err);
    if (master == NULL) {
        doctor_say(doctor, "master key file", CHECK_FAIL, err.text);
        return;
    }
    bool ok =
        is_registered(doctor->postgres_read, &doctor->in_postgres, master, "Postgres", &err) &&
        is_registered(doctor->config_read, &doctor->in_config, master, "CONFIG", &err);
    bool both = doctor->postgres_read && doctor->config_read;
    if (ok && both && !key_register_same(&doctor->in_postgres, &doctor->in_config)) {
        ok = error_set(
            &err, ERROR_CONFIG,
            "Postgres and CONFIG have different registered keys (HINT: stentor migrate)");
    }
    doctor_say(
        doctor, "master key file",
        !ok    ? CHECK_FAIL
        : both ? CHECK_OK
               : CHECK_WARN,
        !ok    ? err.text
        : both ? "the registered one"
               : "compared in part only, see above");
    master_key_free(master);
}

// ---- the API ----

static size_t on_curl_body(char *data, size_t size, size_t count, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * count;
}

// A route of each service behind the address. A request without a key must be answered with 401 by
// the service itself: it is there, and guarded.
static const struct Behind {
    const char *method, *path, *service;
} BEHIND[] = {
    {"POST", "/v1/notifications", "stentor-ingest"},
    {"GET", "/v1/notifications", "stentor-gateway"}, // a proxy that tells no methods apart fails
};

// NULL: it answers.
static const char *trouble_behind(const Cli *cli, CURL *curl, const struct Behind *behind)
{
    const char *address = cli->settings.api_url;
    long status = 0;
    curl_easy_setopt(curl, CURLOPT_URL, arena_printf(cli->arena, "%s%s", address, behind->path));
    if (strcmp(behind->method, "POST") == 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{}");
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 5L);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) {
        return arena_printf(
            cli->arena, "%s: %s (HINT: is nginx running there? STENTOR_API_URL names the address)",
            address, curl_easy_strerror(code));
    }
    if (status == 502 || status == 504) {
        return arena_printf(
            cli->arena, "%s answers, but %s behind it does not (HINT: is it running?)", address,
            behind->service);
    }
    if (status == 401) {
        return NULL;
    }
    return arena_printf(
        cli->arena, "%s answered %ld to %s %s where 401 was expected", address, status,
        behind->method, behind->path);
}

static bool check_api(Doctor *doctor)
{
    const char *trouble = NULL;
    CURL *curl = curl_easy_init();
    api_client_trust(doctor->cli, curl);
    for (size_t i = 0; trouble == NULL && i < sizeof BEHIND / sizeof BEHIND[0]; i++) {
        trouble = trouble_behind(doctor->cli, curl, &BEHIND[i]);
    }
    curl_easy_cleanup(curl);
    doctor_say(
        doctor, "api", trouble == NULL ? CHECK_OK : CHECK_FAIL,
        trouble == NULL ? doctor->cli->settings.api_url : trouble);
    return trouble == NULL;
}

// A gateway that was built without Node.js has none, which is no fault.
static void check_console(Doctor *doctor)
{
    const Cli *cli = doctor->cli;
    const char *url = arena_printf(cli->arena, "%s/console/", cli->settings.api_url);
    long status = 0;
    CURL *curl = curl_easy_init();
    api_client_trust(cli, curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 5L);
    (void)curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    if (status == 200) {
        doctor_say(
            doctor, "console", CHECK_OK,
            arena_printf(cli->arena, "%s (a link to it: stentor console login)", url));
    } else if (status == 404) {
        doctor_say(doctor, "console", CHECK_OK, "none: the gateway was built without Node.js");
    } else {
        doctor_say(
            doctor, "console", CHECK_WARN,
            arena_printf(cli->arena, "%s answered %ld where 200 was expected", url, status));
    }
}

// 403 is a key that is in force and may not read the tenant's settings, or a tenant that is
// suspended.
static void check_api_key(Doctor *doctor)
{
    Cli *cli = doctor->cli;
    Error err = {0};
    ApiAnswer answer;
    if (cli->settings.api_key[0] == '\0') {
        doctor_say(
            doctor, "own api key", CHECK_WARN,
            "not tried (HINT: STENTOR_API_KEY=KEY stentor doctor)");
        return;
    }
    ApiClient *client = api_client_new(cli, &err);
    if (client == NULL || !api_client_call(client, "GET", "/v1/tenant", STR_EMPTY, &answer, &err)) {
        doctor_say(doctor, "own api key", CHECK_FAIL, arena_cstr(cli->arena, str_from(err.text)));
    } else if (answer.status == 401) {
        doctor_say(
            doctor, "own api key", CHECK_FAIL,
            "STENTOR_API_KEY is refused: it was revoked, has expired, or is another "
            "installation's (HINT: stentor apikey create)");
    } else if (answer.status / 100 != 2 && answer.status != 403) {
        (void)api_client_explain(client, &answer, &err);
        doctor_say(doctor, "own api key", CHECK_FAIL, arena_cstr(cli->arena, str_from(err.text)));
    } else {
        doctor_say(doctor, "own api key", CHECK_OK, "STENTOR_API_KEY is in force");
    }
    api_client_free(client);
}

// ---- the command ----

static void print_sum(const Doctor *doctor)
{
    const int *counts = doctor->counts;
    if (doctor->cli->json) {
        print_json_line(json_pack(
            "{s:b, s:{s:i, s:i, s:i}, s:f, s:s, s:O}", "ok", counts[CHECK_FAIL] == 0, "counts",
            "ok", counts[CHECK_OK], "warn", counts[CHECK_WARN], "fail", counts[CHECK_FAIL],
            "oldest_waits_s", (double)doctor->oldest_us / 1e6, "oldest_waits_for",
            doctor->oldest_us > 0 ? doctor->oldest_for : "", "checks", doctor->checks));
        return;
    }
    if (doctor->domain_only) {
        printf(
            "%d failed, %d warnings, %d ok\n", counts[CHECK_FAIL], counts[CHECK_WARN],
            counts[CHECK_OK]);
        return;
    }
    printf(
        "%d failed, %d warnings, %d ok; ", counts[CHECK_FAIL], counts[CHECK_WARN],
        counts[CHECK_OK]);
    if (doctor->oldest_us > 0) {
        printf(
            "the oldest message has waited %s for %s\n", doctor_age(doctor->cli, doctor->oldest_us),
            doctor->oldest_for);
    } else {
        puts(doctor->has_session ? "no message waits" : "how long messages wait is not known");
    }
}

static int examine_domain(Doctor *doctor)
{
    Error err = {0};
    doctor->domain_only = true;
    bool ok = doctor_domain(doctor, &err);
    if (ok) {
        print_sum(doctor);
    }
    json_decref(doctor->checks);
    if (!ok) {
        return cli_fail(doctor->cli, &err);
    }
    return doctor->counts[CHECK_FAIL] == 0 ? EXIT_DONE : EXIT_FAILED;
}

int cmd_doctor(Cli *cli)
{
    Doctor doctor = {.cli = cli, .checks = json_array()};
    if (args_has(&cli->args, "domain")) {
        return examine_domain(&doctor);
    }
    check_nats(&doctor);
    check_postgres(&doctor);
    check_outboxes(&doctor);
    if (doctor.has_session) {
        session_close(&doctor.session);
    }
    check_keys(&doctor);
    doctor_storage(&doctor);
    if (check_api(&doctor)) {
        check_console(&doctor);
        check_api_key(&doctor);
    }
    doctor_certificates(&doctor);
    print_sum(&doctor);
    json_decref(doctor.checks);
    return doctor.counts[CHECK_FAIL] == 0 ? EXIT_DONE : EXIT_FAILED;
}
