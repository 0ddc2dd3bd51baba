// SPDX-License-Identifier: Apache-2.0
#include "services/cli/vendors/rehearsal.h"

#include <string.h>

#include "common/archive/database.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"

enum { ANSWER_MAX = 300 };

// The newest attempt of each; who was not sent yet has none. Nothing of an archived period.
static const char was_sql[] =
    "SELECT a.notification_id, CASE (array_agg(a.outcome ORDER BY a.attempt_number DESC))[1]"
    " WHEN 'rejected_retryable' THEN 'retry' WHEN 'rejected_terminal' THEN 'refused'"
    " WHEN 'failed' THEN 'refused' WHEN 'timeout' THEN 'unknown' ELSE 'accepted' END"
    " FROM unnest($2::text[], $3::timestamptz[]) AS u (id, created_at)"
    " JOIN archiver.delivery_attempts a ON a.created_at = u.created_at"
    " AND a.notification_id = u.id AND a.tenant_id = $1 GROUP BY 1";

// ---- calls ----

static const char *class_of(const SendResult *result)
{
    static const char *const classes[] = {
        [REPLY_ACCEPTED] = "accepted",   [REPLY_RETRY] = "retry",   [REPLY_THROTTLED] = "retry",
        [REPLY_TERMINAL] = "refused",    [REPLY_CONFIG] = "config", [REPLY_ELSEWHERE] = "config",
        [REPLY_BAD_ADDRESS] = "refused",
    };
    return result->state == SEND_ANSWERED ? classes[result->reply] : "unknown";
}

static const char *words_of(Str code, Str text, Arena *keep)
{
    const char *all = arena_printf(keep, STR_FMT " " STR_FMT, STR_ARG(code), STR_ARG(text));
    char *out = arena_alloc(keep, ANSWER_MAX);
    mask_addresses(str_trim(str_from(all)), out, ANSWER_MAX);
    return out;
}

// A vendor that has no verdict on several mails in turn is left alone.
static void judge(Rehearsal *rehearsal, const RehearsedMail *mail)
{
    bool verdict = strcmp(mail->is, "accepted") == 0 || strcmp(mail->is, "refused") == 0;
    rehearsal->failures = verdict ? 0 : rehearsal->failures + 1;
    if (strcmp(mail->is, "config") == 0 || rehearsal->failures >= REHEARSAL_FAILURES_MAX) {
        rehearsal->stopped = mail->answer;
    }
}

void rehearsal_call(
    Rehearsal *rehearsal, VendorCaller *caller, const VendorAccount *account,
    const VendorMail *mail, Arena *arena, Arena *keep)
{
    VendorRequest request = {0};
    VendorAnswer answer = {0};
    SendResult result = {0};
    Error err = {0};
    if (rehearsal->stopped != NULL || rehearsal->count == REHEARSAL_MAX ||
        !id_parse(mail->notification_id, "ntf_", NULL) ||
        !rehearsal->api->rehearse(mail, account, clock_now_us(), arena, &request, &err)) {
        return; // what it cannot carry was counted when it was built
    }
    RehearsedMail *rehearsed = &rehearsal->mails[rehearsal->count++];
    *rehearsed = (RehearsedMail){
        .id = arena_cstr(keep, mail->notification_id), .is = "unsent", .was = "none"};
    if (vendor_call(caller, &request, &answer, &err)) {
        rehearsal->api->read(&answer, arena, &result);
        rehearsed->is = class_of(&result);
        Str code =
            result.code.len > 0 ? result.code : str_from(arena_printf(arena, "%d", answer.status));
        rehearsed->answer = words_of(code, result.text, keep);
    } else {
        rehearsed->answer = words_of(STR_EMPTY, str_from(err.text), keep);
    }
    judge(rehearsal, rehearsed);
}

// ---- what became of them ----

static RehearsedMail *find_mail(Rehearsal *rehearsal, const char *id)
{
    for (size_t i = 0; i < rehearsal->count; i++) {
        if (strcmp(rehearsal->mails[i].id, id) == 0) {
            return &rehearsal->mails[i];
        }
    }
    return NULL;
}

// Both as arrays of Postgres: ids and times need no quotes' escapes.
static void list_mails(const Rehearsal *rehearsal, Buf *ids, Buf *times)
{
    for (size_t i = 0; i < rehearsal->count; i++) {
        int64_t created_ms = 0;
        char created[CLOCK_RFC3339_SIZE];
        (void)id_parse(str_from(rehearsal->mails[i].id), "ntf_", &created_ms);
        clock_format(created_ms * 1000, created);
        buf_printf(ids, "%s%s", i == 0 ? "{" : ",", rehearsal->mails[i].id);
        buf_printf(times, "%s%s", i == 0 ? "{" : ",", created);
    }
    buf_cstr(ids, rehearsal->count > 0 ? "}" : "{}");
    buf_cstr(times, rehearsal->count > 0 ? "}" : "{}");
}

static PGresult *ask_history(const Rehearsal *rehearsal, PGconn *pg, const char *tenant, Error *err)
{
    static const char set[] = "SELECT set_config('app.tenant_id', $1, false)";
    Buf ids, times;
    buf_init(&ids, REHEARSAL_MAX * (ID_SIZE + 1) + 2);
    buf_init(&times, REHEARSAL_MAX * (CLOCK_RFC3339_SIZE + 1) + 2);
    list_mails(rehearsal, &ids, &times);
    const char *const params[] = {tenant, buf_c(&ids), buf_c(&times)};
    PGresult *rows = archive_do(pg, "the tenant", set, params, 1, err)
                         ? archive_ask(pg, "history", was_sql, params, 3, err)
                         : NULL;
    buf_done(&ids);
    buf_done(&times);
    return rows;
}

bool rehearsal_compare(Rehearsal *rehearsal, Cli *cli, const char *tenant, Error *err)
{
    PGconn *pg = archive_connect(cli->settings.database_url, "stentor shadow", err);
    AUTO(PGresult) rows = pg != NULL ? ask_history(rehearsal, pg, tenant, err) : NULL;
    for (int row = 0; rows != NULL && row < PQntuples(rows); row++) {
        RehearsedMail *mail = find_mail(rehearsal, archive_text(rows, row, 0));
        if (mail != NULL) {
            mail->was = arena_cstr(cli->arena, str_from(archive_text(rows, row, 1)));
        }
    }
    PQfinish(pg);
    return rows != NULL;
}

// ---- the report ----

static json_t *count_answers(const Rehearsal *rehearsal)
{
    json_t *answers = json_object();
    for (size_t i = 0; i < rehearsal->count; i++) {
        char name[64];
        (void)snprintf(
            name, sizeof name, "%s -> %s", rehearsal->mails[i].was, rehearsal->mails[i].is);
        json_int_t before = json_integer_value(json_object_get(answers, name));
        (void)json_object_set_new(answers, name, json_integer(before + 1));
    }
    return answers;
}

json_t *rehearsal_json(const Rehearsal *rehearsal)
{
    json_t *differences = json_array();
    for (size_t i = 0; i < rehearsal->count; i++) {
        const RehearsedMail *mail = &rehearsal->mails[i];
        if (strcmp(mail->was, mail->is) != 0 &&
            json_array_size(differences) < REHEARSAL_SHOWN_MAX) {
            (void)json_array_append_new(
                differences, json_pack(
                                 "{s:s, s:s, s:s, s:s}", "id", mail->id, "was", mail->was, "is",
                                 mail->is, "answer", mail->answer));
        }
    }
    json_t *object = json_pack(
        "{s:I, s:o, s:o}", "mails", (json_int_t)rehearsal->count, "answers",
        count_answers(rehearsal), "differences", differences);
    if (rehearsal->stopped != NULL) {
        (void)json_object_set_new(object, "stopped", json_string(rehearsal->stopped));
    }
    return object;
}

void rehearsal_print(const Rehearsal *rehearsal)
{
    json_t *report = rehearsal_json(rehearsal);
    const char *name = NULL;
    size_t i = 0;
    json_t *value = NULL;
    printf("  rehearsed %zu, which sent nothing; where it was sent -> here:\n", rehearsal->count);
    json_object_foreach(json_object_get(report, "answers"), name, value)
    {
        printf("  %8lld  %s\n", (long long)json_integer_value(value), name);
    }
    json_array_foreach(json_object_get(report, "differences"), i, value)
    {
        printf(
            "  %s: %s -> %s, %s\n", json_string_value(json_object_get(value, "id")),
            json_string_value(json_object_get(value, "was")),
            json_string_value(json_object_get(value, "is")),
            json_string_value(json_object_get(value, "answer")));
    }
    if (rehearsal->stopped != NULL) {
        printf("  the rest was not tried: %s\n", rehearsal->stopped);
    }
    json_decref(report);
}
