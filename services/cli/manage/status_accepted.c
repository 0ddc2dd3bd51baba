// SPDX-License-Identifier: Apache-2.0
#include "services/cli/manage/status_accepted.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/db/db.h"
#include "common/history/accepted.h"

static json_t *text_of(Str text)
{
    return text.len > 0 ? json_stringn(text.ptr, text.len) : json_null();
}

static json_t *time_of(int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    if (at_us == 0) {
        return json_null();
    }
    clock_format(at_us, text);
    return json_string(text);
}

// To the millisecond, as status.c has it.
static json_t *step_time_of(int64_t at_us)
{
    enum { MS_END = sizeof "2026-11-27T19:01:42.774" - 1 };
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    text[MS_END] = 'Z';
    return json_stringn(text, MS_END + 1);
}

static json_t *timeline_of(const HistoryRow *row)
{
    static const FoldTime times[] = {FOLD_QUEUED, FOLD_SCHEDULED, FOLD_ENDED};
    json_t *timeline = json_array();
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (row->at_us[times[i]] != 0) {
            json_array_append_new(
                timeline, json_pack(
                              "{s:s, s:o}", "status", status_name(row->status), "at",
                              step_time_of(row->at_us[times[i]])));
        }
    }
    return timeline;
}

// The names of the row that Postgres makes (status.c), in its order.
static json_t *row_of(const HistoryRow *row)
{
    static const struct {
        const char *name;
        FoldText field;
    } texts[] = {
        {"channel", FOLD_CHANNEL},
        {"category", FOLD_CATEGORY},
        {"priority", FOLD_PRIORITY},
        {"template", FOLD_TEMPLATE},
        {"template_version", FOLD_TEMPLATE_VERSION},
        {"correlation_id", FOLD_CORRELATION},
        {"source_event_type", FOLD_SOURCE_TYPE},
        {"copy_of", FOLD_COPY_OF},
        {"digest_window_id", FOLD_DIGEST}};
    json_t *out = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o}", "id", text_of(row->id), "tenant", text_of(row->tenant),
        "status", status_name(row->status), "reason_code", text_of(row->reason_code), "reason",
        text_of(row->reason), "scheduled_for", time_of(row->at_us[FOLD_SCHEDULED_FOR]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_object_set_new(out, texts[i].name, text_of(row->text[texts[i].field]));
    }
    json_object_set_new(out, "timeline", timeline_of(row));
    json_object_set_new(out, "attempts", json_array());
    return out;
}

static const char accepted_sql[] =
    "SELECT (extract(epoch FROM accepted_at) * 1000000)::int8, events"
    " FROM ingest.accepted_events($1, $2::timestamptz, $3)";

json_t *status_accepted(const Cli *cli, PGconn *conn, const char *id, Error *err)
{
    int64_t created_ms = 0;
    char created[CLOCK_RFC3339_SIZE];
    if (!id_parse(str_from(id), "ntf_", &created_ms)) {
        return NULL;
    }
    clock_format(created_ms * 1000, created);
    const char *params[] = {cli->settings.tenant, created, id};
    PGresult *res = PQexecParams(conn, accepted_sql, 3, NULL, params, NULL, NULL, 1);
    json_t *ret = NULL;
    if (PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1) {
        HistoryRow row;
        Str events = db_get_text(res, 0, 1);
        if (accepted_row(
                events, db_get_int(res, 0, 0), str_from(cli->settings.tenant), str_from(id),
                cli->arena, &row, err)) {
            ret = row_of(&row);
        }
    }
    PQclear(res);
    return ret;
}
