// SPDX-License-Identifier: Apache-2.0
// doctor: is everything there, does it fit together, and how durable is this installation? Each
// check says the remedy.
#include <curl/curl.h>
#include <jansson.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/buf.h"
#include "common/bus/topology.h"
#include "common/db/master_keys.h"
#include "services/cli/config_walk.h"
#include "services/cli/doctor_config.h"
#include "services/cli/keys.h"

enum { STILL_LOOKS = 10, STILL_MS = 200 }; // until a position that does not move stands still

typedef enum Verdict { CHECK_OK, CHECK_WARN, CHECK_FAIL } Verdict;

typedef struct Doctor {
    Cli *cli;
    json_t *checks;
    json_t *last;                       // of each stream, the last sequence
    KeyRegister in_postgres, in_config; // the registered keys
    bool postgres_read, config_read;
    int failed;
} Doctor;

static void tell(Doctor *doctor, const char *name, Verdict verdict, const char *text)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    doctor->failed += verdict == CHECK_FAIL;
    if (doctor->cli->json) {
        json_array_append_new(
            doctor->checks,
            json_pack("{s:s, s:s, s:s}", "check", name, "result", names[verdict], "text", text));
    } else {
        printf("%-5s %-31s %s\n", names[verdict], name, text);
    }
}

// ---- NATS ----

static json_t *ask(Doctor *doctor, Session *session, const char *subject, Error *err)
{
    Str reply;
    if (!session_request(session, subject, STR_EMPTY, doctor->cli->arena, &reply, err)) {
        return NULL;
    }
    json_t *json = json_loadb(reply.ptr, reply.len, 0, NULL);
    const char *refusal =
        json_string_value(json_object_get(json_object_get(json, "error"), "description"));
    if (json == NULL || refusal != NULL) {
        error_set(err, ERROR_PERMANENT, "%s", refusal != NULL ? refusal : "the answer is not JSON");
        json_decref(json);
        return NULL;
    }
    return json;
}

static void check_stream(Doctor *doctor, Session *session, const StreamSpec *spec, int *replicas)
{
    Error err = {0};
    const char *name = arena_printf(doctor->cli->arena, "stream %s", spec->name);
    json_t *info =
        ask(doctor, session, arena_printf(doctor->cli->arena, "$JS.API.STREAM.INFO.%s", spec->name),
            &err);
    if (info == NULL) {
        tell(
            doctor, name, CHECK_FAIL,
            arena_printf(doctor->cli->arena, "%s (HINT: stentor migrate)", err.text));
        return;
    }
    const json_t *state = json_object_get(info, "state");
    const json_t *config = json_object_get(info, "config");
    *replicas = (int)json_integer_value(json_object_get(config, "num_replicas"));
    long long bytes = (long long)json_integer_value(json_object_get(state, "bytes"));
    long long max = (long long)json_integer_value(json_object_get(config, "max_bytes"));
    json_object_set(doctor->last, spec->name, json_object_get(state, "last_seq"));
    bool nearly_full = max > 0 && bytes > max / 10 * 8;
    tell(
        doctor, name, nearly_full ? CHECK_WARN : CHECK_OK,
        arena_printf(
            doctor->cli->arena, "%lld messages, %lld MB%s",
            (long long)json_integer_value(json_object_get(state, "messages")), bytes / 1000000,
            nearly_full ? ", over 80 % of its limit" : ""));
    json_decref(info);
}

static void check_consumer(Doctor *doctor, Session *session, const ConsumerSpec *spec)
{
    Error err = {0};
    const char *name = arena_printf(doctor->cli->arena, "%s on %s", spec->name, spec->stream);
    json_t *info = ask(
        doctor, session,
        arena_printf(doctor->cli->arena, "$JS.API.CONSUMER.INFO.%s.%s", spec->stream, spec->name),
        &err);
    if (info == NULL) {
        tell(
            doctor, name, CHECK_FAIL,
            arena_printf(doctor->cli->arena, "%s (HINT: stentor migrate)", err.text));
        return;
    }
    long long waiting = (long long)json_integer_value(json_object_get(info, "num_pending"));
    long long unacked = (long long)json_integer_value(json_object_get(info, "num_ack_pending"));
    // A worker always asks for more, but while it has its hands full.
    bool idle = json_integer_value(json_object_get(info, "num_waiting")) == 0 && unacked == 0;
    bool wanted =
        !spec->is_optional ||
        json_integer_value(json_object_get(json_object_get(info, "delivered"), "consumer_seq")) > 0;
    idle = idle && wanted;
    const char *hint =
        idle ? arena_printf(
                   doctor->cli->arena, ", nobody asks for more (HINT: is stentor-%s running?)",
                   spec->name)
             : "";
    tell(
        doctor, name, (waiting > 100000 && wanted) || idle ? CHECK_WARN : CHECK_OK,
        arena_printf(doctor->cli->arena, "%lld waiting, %lld in hand%s", waiting, unacked, hint));
    json_decref(info);
}

static void check_topology(Doctor *doctor, Session *session)
{
    int replicas = 0;
    size_t count = 0;
    const StreamSpec *streams = topology_streams(&count);
    for (size_t i = 0; i < count; i++) {
        check_stream(doctor, session, &streams[i], &replicas);
    }
    const ConsumerSpec *consumers = topology_consumers(&count);
    for (size_t i = 0; i < count; i++) {
        check_consumer(doctor, session, &consumers[i]);
    }
    tell(
        doctor, "durability", replicas >= 3 ? CHECK_OK : CHECK_WARN,
        replicas >= 3 ? "replicated: no acknowledged request is lost by the failure of one server "
                        "(with sync_interval: always)"
                      : "development: one copy of each stream; after a power cut the log may lack "
                        "its last minutes, which "
                        "the accept log still has");
}

static void check_tenants(Doctor *doctor, Session *session)
{
    Error err = {0};
    ConfigRemark keys;
    ConfigRemark senders;
    if (!doctor_config_read(session, doctor->cli, &keys, &senders, &err)) {
        tell(doctor, "tenants", CHECK_FAIL, err.text);
        return;
    }
    tell(doctor, "api keys", keys.warns ? CHECK_WARN : CHECK_OK, keys.text);
    tell(doctor, "senders", senders.warns ? CHECK_WARN : CHECK_OK, senders.text);
}

// ---- CONFIG ----

typedef struct ConfigCheck {
    Doctor *doctor;
    long long entries, bad;
} ConfigCheck;

static bool check_entry(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    enum { NAMED_MAX = 20 };
    (void)err;
    ConfigCheck *check = ctx;
    Arena *arena = check->doctor->cli->arena;
    check->entries += message->payload.len > 0 ? 1 : 0;
    if (reason != NULL && check->bad++ < NAMED_MAX) {
        tell(
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
    bool had_some = json_integer_value(json_object_get(doctor->last, "CONFIG")) > 0;
    if (!config_walk(session, "CONFIG", NULL, check_entry, &check, &err)) {
        tell(doctor, "config", CHECK_FAIL, err.text);
    } else if (check.entries == 0) {
        tell(
            doctor, "config", had_some ? CHECK_FAIL : CHECK_WARN,
            had_some ? "empty, and was not: no tenant, key or template is left once the services "
                       "restart (HINT: stentor config import FILE)"
                     : "empty: no tenant, no API key, no template yet (HINT: stentor tenant put "
                       "TENANT --name NAME --sender ADDRESS)");
    } else {
        tell(
            doctor, "config", check.bad > 0 ? CHECK_FAIL : CHECK_OK,
            arena_printf(
                doctor->cli->arena, "%lld entries, %lld cannot be read", check.entries, check.bad));
    }
}

static void check_nats(Doctor *doctor)
{
    Error err = {0};
    Session session;
    if (!session_open(&session, &doctor->cli->settings.session, &err)) {
        tell(doctor, "nats", CHECK_FAIL, err.text);
        return;
    }
    tell(doctor, "nats", CHECK_OK, doctor->cli->settings.session.nats_url);
    check_topology(doctor, &session);
    check_tenants(doctor, &session);
    doctor->config_read = keys_fetch(&session, doctor->cli->arena, &doctor->in_config, &err);
    check_config(doctor, &session);
    session_close(&session);
}

// ---- Postgres ----

static void check_role(Doctor *doctor, PGconn *conn)
{
    PGresult *res = PQexec(
        conn,
        "SELECT rolsuper OR rolbypassrls, current_user FROM pg_roles WHERE rolname = current_user");
    bool bypasses = PQntuples(res) == 1 && PQgetvalue(res, 0, 0)[0] == 't';
    tell(
        doctor, "postgres role", bypasses ? CHECK_WARN : CHECK_OK,
        bypasses ? "this login bypasses row-level security; services must not use it"
                 : "cannot bypass row-level security");
    PQclear(res);
}

// What runs with its owner's rights must not have a superuser's.
static void check_owner(Doctor *doctor, PGconn *conn)
{
    PGresult *res = PQexec(
        conn, "SELECT count(*), min(p.oid::regproc::text) FROM pg_proc p"
              " JOIN pg_roles r ON r.oid = p.proowner AND r.rolsuper"
              " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prosecdef AND n.nspname IN"
              " ('stentor', 'keys', 'ingest', 'dispatch', 'clock', 'history', 'people', 'saga')");
    bool known = PQresultStatus(res) == PGRES_TUPLES_OK;
    bool ok = known && strcmp(PQgetvalue(res, 0, 0), "0") == 0;
    tell(
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
    tell(
        doctor, "postgres durability", durable ? CHECK_OK : CHECK_FAIL,
        durable ? "fsync and synchronous_commit are on"
                : "fsync or synchronous_commit is off: an accepted request may be lost");
    PQclear(res);
}

// Events that STATUS and the other streams have and history has not; -1: not known.
static int64_t history_behind(const Doctor *doctor, PGconn *conn)
{
    PGresult *res =
        PQexec(conn, "SELECT stream, sequence FROM history.positions WHERE projection = 'history'");
    bool known = PQresultStatus(res) == PGRES_TUPLES_OK;
    bool begun = PQntuples(res) > 0;
    int64_t behind = !known  ? -1
                     : begun ? 0
                             : json_integer_value(json_object_get(doctor->last, "STATUS"));
    for (int i = 0; i < PQntuples(res); i++) {
        int64_t last = json_integer_value(json_object_get(doctor->last, PQgetvalue(res, i, 0)));
        int64_t read = strtoll(PQgetvalue(res, i, 1), NULL, 10);
        behind += last > read ? last - read : 0;
    }
    PQclear(res);
    return behind;
}

// The archiver reads by position and has no consumer that tells of it: behind is well when it
// moves.
static void check_history(Doctor *doctor, PGconn *conn)
{
    int64_t before = history_behind(doctor, conn);
    int64_t behind = before;
    for (int i = 0; i < STILL_LOOKS && before > 0 && behind == before; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = STILL_MS * 1000000L}, NULL);
        behind = history_behind(doctor, conn);
    }
    bool still = before > 0 && behind == before;
    const char *hint = still ? ", and stands still (HINT: is stentor-archiver running?)" : "";
    tell(
        doctor, "history", still || before < 0 ? CHECK_WARN : CHECK_OK,
        before < 0
            ? "its position cannot be read (HINT: stentor migrate)"
            : arena_printf(doctor->cli->arena, "%lld events behind%s", (long long)behind, hint));
}

static void check_postgres(Doctor *doctor)
{
    const Cli *cli = doctor->cli;
    if (cli->settings.database_url[0] == '\0') {
        tell(doctor, "postgres", CHECK_FAIL, "STENTOR_DATABASE_URL is not set");
        return;
    }
    PGconn *conn = PQconnectdb(cli->settings.database_url);
    if (PQstatus(conn) != CONNECTION_OK) {
        tell(
            doctor, "postgres", CHECK_FAIL,
            arena_cstr(cli->arena, str_trim(str_from(PQerrorMessage(conn)))));
    } else {
        tell(
            doctor, "postgres", CHECK_OK,
            arena_printf(cli->arena, "server %d", PQserverVersion(conn) / 10000));
        check_role(doctor, conn);
        check_owner(doctor, conn);
        check_durability(doctor, conn);
        Error err = {0};
        doctor->postgres_read = master_keys_load(conn, &doctor->in_postgres, &err);
        if (json_object_size(doctor->last) > 0) { // NATS has said where its streams end
            check_history(doctor, conn);
        }
    }
    PQfinish(conn);
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
        tell(
            doctor, "master key file", CHECK_WARN,
            "not compared (HINT: STENTOR_MASTER_KEY_FILE=FILE stentor doctor)");
        return;
    }
    MasterKey *master = keys_read_file(cli->settings.master_key_file, cli->arena, &err);
    if (master == NULL) {
        tell(doctor, "master key file", CHECK_FAIL, err.text);
        return;
    }
    bool ok =
        is_registered(doctor->postgres_read, &doctor->in_postgres, master, "Postgres", &err) &&
        is_registered(doctor->config_read, &doctor->in_config, master, "CONFIG", &err);
    bool both = doctor->postgres_read && doctor->config_read;
    if (ok && both && !key_register_same(&doctor->in_postgres, &doctor->in_config)) {
        ok = error_set(
            &err, ERROR_CONFIG,
            "Postgres and CONFIG have registered other keys (HINT: stentor migrate)");
    }
    tell(
        doctor, "master key file",
        !ok    ? CHECK_FAIL
        : both ? CHECK_OK
               : CHECK_WARN,
        !ok    ? err.text
        : both ? "the registered one"
               : "could be compared in part only, see above");
    master_key_free(master);
}

// ---- the API ----

static size_t on_curl_body(char *data, size_t size, size_t count, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * count;
}

// An unauthenticated request must be refused with 401: the API is there and guarded.
static void check_api(Doctor *doctor)
{
    const Cli *cli = doctor->cli;
    CURL *curl = curl_easy_init();
    long status = 0;
    curl_easy_setopt(
        curl, CURLOPT_URL, arena_printf(cli->arena, "%s/v1/notifications", cli->settings.api_url));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{}");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 5L);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK) {
        tell(
            doctor, "api", CHECK_FAIL,
            arena_printf(cli->arena, "%s: %s", cli->settings.api_url, curl_easy_strerror(code)));
    } else if (status != 401) {
        tell(
            doctor, "api", CHECK_FAIL,
            arena_printf(
                cli->arena, "%s answered %ld where 401 was expected", cli->settings.api_url,
                status));
    } else {
        tell(doctor, "api", CHECK_OK, cli->settings.api_url);
    }
}

int cmd_doctor(Cli *cli)
{
    Doctor doctor = {.cli = cli, .checks = json_array(), .last = json_object()};
    check_nats(&doctor);
    check_postgres(&doctor);
    check_keys(&doctor);
    check_api(&doctor);
    if (cli->json) {
        json_t *report = json_pack("{s:b, s:O}", "ok", doctor.failed == 0, "checks", doctor.checks);
        char *text = json_dumps(report, JSON_COMPACT);
        printf("%s\n", text);
        free(text);
        json_decref(report);
    }
    json_decref(doctor.checks);
    json_decref(doctor.last);
    return doctor.failed == 0 ? EXIT_DONE : EXIT_FAILED;
}
