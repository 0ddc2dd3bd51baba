// SPDX-License-Identifier: Apache-2.0
#include "common/registry/projections.h"

static const ProjectionRow rows[] = {
    {.name = "history",
     .schema = "archiver",
     .position = "history",
     .tables = {"notifications", "delivery_attempts", "late_notifications", "late_attempts"},
     .streams = {"REQUEST_CRITICAL", "REQUEST_HIGH", "REQUEST_NORMAL", "REQUEST_LOW", "STATUS"},
     .remake = REMAKE_SWAP,
     .how = ""},
    {.name = "people",
     .schema = "people",
     .position = "people",
     .tables = {"recipients", "addresses", "labels", "preferences", "consents"},
     .streams = {"PEOPLE"},
     .remake = REMAKE_REPLACE,
     .how = ""},
    {.name = "clock",
     .schema = "digest_flusher",
     .position = "digests",
     .tables = {"preferences", "consents", "unsubscribed_recipients"},
     .streams = {"PEOPLE"},
     .remake = REMAKE_REPLACE,
     .how = ""},
    {.name = "feed",
     .schema = "feed",
     .position = "feed",
     .tables = {"items", "counters"},
     .streams = {"FEED"},
     .remake = REMAKE_REPLACE,
     .how = ""},
    // Its rows are only ever added, and each says what one event says: so it is folded again in
    // place, while it is searched. Days that are older than the log stay.
    {.name = "find",
     .schema = "find",
     .position = "find",
     .tables = {"entries"},
     .streams = {"STATUS"},
     .remake = REMAKE_REWIND,
     .how = ""},
    // The log is EVENTS, which holds seven days: what is older stays as it is. Its inbox is its
    // position.
    {.name = "saga",
     .schema = "order_saga",
     .position = "",
     .tables =
         {"order_state", "order_archive", "order_transitions", "late_orders", "late_transitions",
          "inbox_state"},
     .streams = {"EVENTS"},
     .remake = REMAKE_REPLACE,
     .how = ""},
    // In the application's own database. Which row of the application a notification belongs to is
    // in no stream: only what became of it is. A status of a lower rank changes nothing, so the
    // relay bears all of the log again.
    {.name = "outbox",
     .schema = "stentor_outbox",
     .position = "outbox-<mapping>",
     .tables = {"requests"},
     .streams = {"STATUS", "DEAD"},
     .remake = REMAKE_SERVICE,
     .how = "stop the relay, delete its rows of stentor_outbox.positions, start it: it reads again "
            "from its oldest request on"},
};

// clang-format off
static const UnmadeRow unmade[] = {
    {"digests", {"digest_flusher.due_work", "digest_flusher.digest_windows", "digest_flusher.digest_items",
                 "digest_flusher.cancellations"},
     "they are work that waits, gone when it is published (HINT: stentor replay --stream DEFERRED --to-service digest-flusher)"},
    {"batches", {"ingest.batches", "ingest.batch_parts", "ingest.batch_chunks"},
     "they are a source: what a caller has handed in and how far it is sent is in no stream (deploy/BACKUP.md)"},
    {"suppressions", {NULL},
     "they are entries of CONFIG, which each service holds in memory and reads when it starts"},
    {"templates", {NULL},
     "they are entries of CONFIG, which each service holds in memory and reads when it starts"},
    {"idempotency", {"ingest.idempotency_keys", "gateway.idempotency_keys"},
     "they are a source of 24 hours: which key a caller has used is in no stream"},
    {"resends", {"ingest.resends"},
     "they are work: a dead letter on its way to be sent again, once (HINT: stentor dlq list)"},
    {"clear-events", {"ingest.clear_events"},
     "they are work: which events in clear are to be sealed and erased; what the table has lost stays in clear for its 7 days in EVENTS"},
    {"commands", {"order_saga.outbox_message"},
     "they are what the saga has sent or has to send: made again, they would be sent again"},
    {"inbox-statuses", {"feed.statuses"},
     "they are work: statuses that STATUS does not have yet; made again, they would be published again"},
    {"feedback", {"stentor_outbox.pending_feedback"},
     "it is work that waits for a locked row of the application; the relay tries it every second"},
};
// clang-format on

const UnmadeRow *unmade_rows(size_t *ret_count)
{
    *ret_count = sizeof unmade / sizeof unmade[0];
    return unmade;
}

const UnmadeRow *unmade_row(Str name)
{
    for (size_t i = 0; i < sizeof unmade / sizeof unmade[0]; i++) {
        if (str_eq(name, str_from(unmade[i].name))) {
            return &unmade[i];
        }
    }
    return NULL;
}

const ProjectionRow *projection_rows(size_t *ret_count)
{
    *ret_count = sizeof rows / sizeof rows[0];
    return rows;
}

const ProjectionRow *projection_row(Str name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (str_eq(name, str_from(rows[i].name))) {
            return &rows[i];
        }
    }
    return NULL;
}
