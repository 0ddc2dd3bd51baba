// SPDX-License-Identifier: Apache-2.0
#include "common/registry/data_places.h"

// What an erasure does: the keys' destruction makes all that was sealed under them unreadable,
// wherever it is; the others are reached as said.
#define BY_KEY "the key is destroyed"
#define BY_AGE "ends by age"
#define BY_ROW "the row is deleted"

// clang-format off
static const DataPlace rows[] = {
    // ---- streams ----
    {"REQUEST_CRITICAL",  PLACE_LOG,       "", PERSON_SEALED, BY_KEY, "segments"},
    {"REQUEST_HIGH",      PLACE_LOG,       "", PERSON_SEALED, BY_KEY, "segments"},
    {"REQUEST_NORMAL",    PLACE_LOG,       "", PERSON_SEALED, BY_KEY, "segments"},
    {"REQUEST_LOW",       PLACE_LOG,       "", PERSON_SEALED, BY_KEY, "segments"},
    {"STATUS",            PLACE_LOG,       "", PERSON_HASHED, "", "segments"},
    {"PEOPLE",            PLACE_LOG,       "", PERSON_SEALED, BY_KEY ", and a removal follows", "segments"},
    {"CONFIG",            PLACE_LOG,       "", PERSON_HASHED, "", "segments"},
    {"DEAD",              PLACE_LOG,       "", PERSON_SEALED, BY_KEY "; of an event: with its epoch key, within two weeks of it", "segments"},
    {"AUDIT",             PLACE_LOG,       "", PERSON_HASHED, "", "segments"},
    {"RENDERED_CRITICAL", PLACE_TRANSPORT, "REQUEST_CRITICAL, CONFIG", PERSON_SEALED, BY_KEY, "segments, 90 days"},
    {"RENDERED_HIGH",     PLACE_TRANSPORT, "REQUEST_HIGH, CONFIG",     PERSON_SEALED, BY_KEY, "segments, 90 days"},
    {"RENDERED_NORMAL",   PLACE_TRANSPORT, "REQUEST_NORMAL, CONFIG",   PERSON_SEALED, BY_KEY, "segments, 90 days"},
    {"RENDERED_LOW",      PLACE_TRANSPORT, "REQUEST_LOW, CONFIG",      PERSON_SEALED, BY_KEY, "segments, 90 days"},
    {"DEFERRED",          PLACE_TRANSPORT, "", PERSON_SEALED, BY_KEY, ""},
    {"INBOUND",           PLACE_TRANSPORT, "", PERSON_SEALED, "under the tenant's key, which an erasure does not destroy: " BY_AGE, "segments, 18 months"},
    {"SETTLE",            PLACE_TRANSPORT, "INBOUND", PERSON_NONE, "", ""},
    {"HOOK",              PLACE_TRANSPORT, "STATUS", PERSON_HASHED, BY_AGE ", 3 days", ""},
    {"EVENTS",            PLACE_TRANSPORT, "", PERSON_SEALED, "with its epoch key, within two weeks of the event; " BY_AGE ", 7 days", ""},
    {"FEED",              PLACE_TRANSPORT, "", PERSON_SEALED, BY_KEY ", and a removal follows", ""},
    {"REPLIES",           PLACE_TRANSPORT, "INBOUND", PERSON_SEALED, "the message is deleted; of a number of no recipient: " BY_AGE ", 30 days", ""},
    {"IN_HAND",           PLACE_TRANSPORT, "", PERSON_NONE,   "", ""},

    // ---- history ----
    {"archiver.notifications",      PLACE_PROJECTION,  "REQUEST_*, STATUS", PERSON_SEALED, BY_KEY, "units"},
    {"archiver.delivery_attempts",  PLACE_PROJECTION,  "STATUS",            PERSON_NONE,   "", "units"},
    {"archiver.late_notifications", PLACE_PROJECTION,  "REQUEST_*, STATUS", PERSON_SEALED, BY_KEY, "units"},
    {"archiver.late_attempts",      PLACE_PROJECTION,  "STATUS",            PERSON_NONE,   "", "units"},
    {"archiver.positions",          PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- recipients ----
    {"people.recipients",  PLACE_PROJECTION,  "PEOPLE", PERSON_SEALED, BY_KEY ", " BY_ROW, ""},
    {"people.addresses",   PLACE_PROJECTION,  "PEOPLE", PERSON_SEALED, BY_KEY ", " BY_ROW, ""},
    {"people.labels",      PLACE_PROJECTION,  "PEOPLE", PERSON_HASHED, BY_ROW, ""},
    {"people.preferences", PLACE_PROJECTION,  "PEOPLE", PERSON_HASHED, BY_ROW, ""},
    {"people.consents",    PLACE_PROJECTION,  "PEOPLE", PERSON_HASHED, BY_ROW, ""},
    {"people.positions",   PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- in-app inboxes ----
    {"feed.items",     PLACE_PROJECTION,  "FEED", PERSON_SEALED, BY_KEY ", " BY_ROW, ""},
    {"feed.counters",  PLACE_PROJECTION,  "FEED", PERSON_HASHED, "stays: numbers that fall with the rows of feed.items", ""},
    {"feed.statuses",  PLACE_WORK,        "FEED", PERSON_NONE, "", ""},
    {"feed.positions", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- the search index ----
    {"find.entries",   PLACE_PROJECTION,  "STATUS", PERSON_HASHED, BY_AGE ", 180 days or as STENTOR_GATEWAY_FIND_DAYS says", ""},
    {"find.positions", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"find.progress",  PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- digest-flusher ----
    {"digest_flusher.preferences",             PLACE_PROJECTION,  "PEOPLE", PERSON_HASHED, BY_ROW, ""},
    {"digest_flusher.consents",                PLACE_PROJECTION,  "PEOPLE", PERSON_HASHED, BY_ROW, ""},
    {"digest_flusher.unsubscribed_recipients", PLACE_PROJECTION,  "PEOPLE", PERSON_HASHED, "stays: who is gone gets nothing", ""},
    {"digest_flusher.due_work",                PLACE_WORK,        "DEFERRED", PERSON_SEALED, BY_KEY ", and it ends as suppressed", ""},
    {"digest_flusher.digest_windows",          PLACE_WORK,        "DEFERRED", PERSON_SEALED, BY_KEY, ""},
    {"digest_flusher.digest_items",            PLACE_WORK,        "DEFERRED", PERSON_SEALED, BY_KEY ", and they end as suppressed", ""},
    {"digest_flusher.cancellations",           PLACE_WORK,        "DEFERRED", PERSON_NONE, "", ""},
    {"digest_flusher.cancelled",               PLACE_WORK,        "", PERSON_NONE, "", ""},
    {"digest_flusher.emitted",                 PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"digest_flusher.positions",               PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- ingest ----
    {"ingest.accept_log",          PLACE_WORK,        "", PERSON_SEALED, BY_KEY, ""},
    {"ingest.idempotency_keys",    PLACE_SOURCE,      "", PERSON_HASHED, BY_AGE ", 24 hours", ""},
    {"ingest.gate_counters",       PLACE_SOURCE,      "", PERSON_HASHED, BY_AGE, ""},
    {"ingest.batches",             PLACE_SOURCE,      "", PERSON_NONE,   "", ""},
    {"ingest.batch_parts",         PLACE_SOURCE,      "", PERSON_NONE,   "", ""},
    {"ingest.batch_chunks",        PLACE_WORK,        "", PERSON_SEALED, "under the tenant's key, until the batch is sent: " BY_AGE, ""},
    {"ingest.resends",             PLACE_WORK,        "DEAD", PERSON_NONE, "", ""},
    {"ingest.clear_events",        PLACE_WORK,        "EVENTS", PERSON_NONE, "", ""},
    {"ingest.retention_watermark", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- dispatcher ----
    {"dispatcher.ledger",              PLACE_SOURCE,      "", PERSON_NONE, "", ""},
    {"dispatcher.budget",              PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"dispatcher.callback_events",     PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"dispatcher.vendor_outcomes",     PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"dispatcher.retention_watermark", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- webhooks ----
    {"webhooks.deliveries", PLACE_SOURCE,      "", PERSON_HASHED, BY_AGE ", 90 days", ""},
    {"webhooks.endpoints",  PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"webhooks.budget",     PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"webhooks.categories", PLACE_SOURCE,      "", PERSON_NONE, "", ""},
    // ---- gateway ----
    {"gateway.jobs",        PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- gateway ----
    {"gateway.key_usage", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"gateway.logins",    PLACE_WORK,        "", PERSON_NONE, "", ""},
    {"gateway.sessions",  PLACE_WORK,        "", PERSON_NONE, "", ""},

    // ---- gateway ----
    {"gateway.idempotency_keys", PLACE_SOURCE, "", PERSON_HASHED, BY_AGE ", 24 hours", ""},

    // ---- orders ----
    {"order_saga.order_state",    PLACE_SOURCE, "EVENTS", PERSON_SEALED, BY_KEY, "units"},
    {"order_saga.order_archive",  PLACE_SOURCE, "EVENTS", PERSON_SEALED, BY_KEY, "units"},
    {"order_saga.order_transitions", PLACE_SOURCE, "EVENTS", PERSON_NONE, "", "units"},
    {"order_saga.late_orders",       PLACE_SOURCE, "EVENTS", PERSON_SEALED, BY_KEY, "units"},
    {"order_saga.late_transitions",  PLACE_SOURCE, "EVENTS", PERSON_NONE, "", "units"},
    {"order_saga.inbox_state",    PLACE_SOURCE, "EVENTS", PERSON_SEALED, "of one that waits for its order: with its epoch key, within two weeks of it", "units"},
    {"order_saga.outbox_message", PLACE_WORK,   "EVENTS", PERSON_SEALED, BY_KEY, ""},

    // ---- an application's database ----
    {"stentor_outbox.source",               PLACE_SOURCE,      "", PERSON_NONE, "", ""},
    {"stentor_outbox.claims",               PLACE_WORK,        "", PERSON_NONE, "", ""},
    {"stentor_outbox.requests",             PLACE_PROJECTION,  "STATUS, DEAD", PERSON_NONE, "", ""},
    {"stentor_outbox.pending_feedback",     PLACE_WORK,        "STATUS, DEAD", PERSON_NONE, "", ""},
    {"stentor_outbox.rejected_rows",        PLACE_SOURCE,      "", PERSON_NONE, "", ""},
    {"stentor_outbox.initialised_mappings", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"stentor_outbox.published",            PLACE_SOURCE,      "", PERSON_NONE, "", ""},
    {"stentor_outbox.positions",            PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- keys ----
    {"keys.data_keys",        PLACE_SOURCE,      "", PERSON_HASHED, "this is what an erasure destroys", ""},
    {"keys.data_key_changes", PLACE_BOOKKEEPING, "", PERSON_HASHED, "", ""},
    {"keys.master_keys",      PLACE_SOURCE,      "", PERSON_NONE, "", ""},
    {"keys.epochs",           PLACE_SOURCE,      "", PERSON_NONE, "", ""},
    {"keys.work",             PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"keys.gate",             PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- the archive's catalogue ----
    {"archive.installation",  PLACE_SOURCE, "", PERSON_NONE, "", ""},
    {"archive.kinds",         PLACE_SOURCE, "", PERSON_NONE, "", ""},
    {"archive.units",         PLACE_SOURCE, "", PERSON_NONE, "", "manifests"},
    {"archive.manifests",     PLACE_SOURCE, "", PERSON_NONE, "", "manifests"},
    {"archive.counts",        PLACE_SOURCE, "", PERSON_NONE, "", "manifests"},
    {"archive.objects",       PLACE_SOURCE, "", PERSON_NONE, "", "manifests"},
    {"archive.requests",      PLACE_WORK,   "", PERSON_NONE, "", ""},
    {"archive.restores",      PLACE_WORK,   "", PERSON_NONE, "", ""},
    {"archive.holds",         PLACE_SOURCE, "", PERSON_HASHED, "", ""},
    {"archive.journal",       PLACE_SOURCE, "", PERSON_NONE, "", ""},
    {"archive.log_positions", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"archive.segments",      PLACE_SOURCE, "", PERSON_NONE, "", ""},
    {"archive.holes",         PLACE_SOURCE, "", PERSON_NONE, "", ""},
    {"archive.invoiced", PLACE_SOURCE, "", PERSON_NONE, "", ""},
    {"archive.unit_costs", PLACE_SOURCE, "", PERSON_NONE, "", ""},
    {"archive.facts_days", PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- erasures ----
    {"erasure.requests",       PLACE_SOURCE, "", PERSON_HASHED, "stays: it is the proof", ""},
    {"erasure.destroyed_keys", PLACE_SOURCE, "", PERSON_HASHED, "stays: it is the proof", ""},
    {"erasure.kept_keys",      PLACE_SOURCE, "", PERSON_HASHED, "stays: it is the proof", ""},
    {"erasure.certificates",   PLACE_SOURCE, "", PERSON_HASHED, "stays: it is the proof", "objects"},
    {"erasure.address_owners", PLACE_SOURCE, "", PERSON_HASHED, "stays: whose a mail to the address was", ""},
    {"erasure.positions",      PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},

    // ---- of all ----
    {"stentor.migrations",               PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"stentor.history_removed",          PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"stentor.partition_periods",        PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
    {"stentor.sealed_periods",           PLACE_BOOKKEEPING, "", PERSON_NONE, "", ""},
};
// clang-format on

const DataPlace *data_places(size_t *ret_count)
{
    *ret_count = sizeof rows / sizeof rows[0];
    return rows;
}

const DataPlace *data_place(Str name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (str_eq(name, str_from(rows[i].name))) {
            return &rows[i];
        }
    }
    return NULL;
}

const char *place_role_name(PlaceRole role)
{
    switch (role) {
    case PLACE_LOG:
        return "log";
    case PLACE_TRANSPORT:
        return "transport";
    case PLACE_PROJECTION:
        return "projection";
    case PLACE_WORK:
        return "work";
    case PLACE_SOURCE:
        return "source";
    case PLACE_BOOKKEEPING:
        return "bookkeeping";
    }
    return NULL;
}

const char *place_person_name(PlacePerson person)
{
    switch (person) {
    case PERSON_NONE:
        return "none";
    case PERSON_HASHED:
        return "hashed";
    case PERSON_SEALED:
        return "sealed";
    case PERSON_CLEAR:
        return "clear";
    }
    return NULL;
}
