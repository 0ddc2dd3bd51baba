// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/ingest_metrics.h"

static void register_accept(IngestMetrics *m, Metrics *metrics)
{
    static const double SECONDS[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};
    static const double SIZES[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000};
    m->accepted = metrics_counter(
        metrics, "stentor_ingest_accepted_total", "", "Notifications accepted and committed");
    api_metrics_init(&m->api, metrics, "stentor_ingest_refused_total");
    m->suppressed = metrics_counter(
        metrics, "stentor_ingest_gated_total", "verdict=\"suppressed\"",
        "Accepted notifications that the gate suppressed, deferred or gathered into a digest");
    m->deferred = metrics_counter(
        metrics, "stentor_ingest_gated_total", "verdict=\"deferred\"",
        "Accepted notifications that the gate suppressed, deferred or gathered into a digest");
    m->gathered = metrics_counter(
        metrics, "stentor_ingest_gated_total", "verdict=\"gathered\"",
        "Accepted notifications that the gate suppressed, deferred or gathered into a digest");
    m->lowered = metrics_counter(
        metrics, "stentor_ingest_lowered_total", "",
        "Accepted notifications beyond their tenant's share, put into a lower lane");
    m->replayed = metrics_counter(
        metrics, "stentor_ingest_replayed_total", "", "Requests answered from an idempotency key");
    m->commit_seconds = metrics_histogram(
        metrics, "stentor_ingest_commit_seconds", "", "Seconds from closing a group to its commit",
        SECONDS, sizeof SECONDS / sizeof SECONDS[0]);
    m->batch_size = metrics_histogram(
        metrics, "stentor_ingest_group_size", "", "Notifications in a group commit", SIZES,
        sizeof SIZES / sizeof SIZES[0]);
    m->waiting = metrics_gauge(
        metrics, "stentor_ingest_waiting", "", "Notifications that wait for a commit");
}

static void register_publish(IngestMetrics *m, Metrics *metrics)
{
    m->published = metrics_counter(
        metrics, "stentor_ingest_published_total", "", "Events acknowledged by JetStream");
    m->publish_failed = metrics_counter(
        metrics, "stentor_ingest_publish_failed_total", "",
        "Events that were not acknowledged and are left to the sweep");
    m->swept = metrics_counter(
        metrics, "stentor_ingest_swept_total", "", "Accept rows published by the sweep");
    m->unpublished = metrics_gauge(
        metrics, "stentor_ingest_unpublished", "", "Committed accept rows not yet published here");
}

static void register_intake(IngestMetrics *m, Metrics *metrics)
{
    static const char *const LABELS[INTAKE_COUNT] = {
        [INTAKE_STORED] = "result=\"stored\"",
        [INTAKE_REPEATED] = "result=\"repeated\"",
        [INTAKE_REFUSED] = "result=\"refused\"",
        [INTAKE_UNAVAILABLE] = "result=\"unavailable\""};
    for (int i = 0; i < INTAKE_COUNT; i++) {
        m->intake[i] = metrics_counter(
            metrics, "stentor_ingest_intake_total", LABELS[i],
            "Events that applications published, by what became of them");
    }
}

static void register_clear(IngestMetrics *m, Metrics *metrics)
{
    m->clear_copied = metrics_counter(
        metrics, "stentor_ingest_clear_copied_total", "",
        "Events that were published in clear and are stored again, sealed");
    m->clear_erased = metrics_counter(
        metrics, "stentor_ingest_clear_erased_total", "",
        "Originals of such events, erased behind every reader");
    m->clear_waiting = metrics_gauge(
        metrics, "stentor_ingest_clear_waiting", "", "Originals that are not erased yet");
    m->clear_oldest_seconds = metrics_gauge(
        metrics, "stentor_ingest_clear_oldest_seconds", "",
        "Since when the oldest of them is there");
}

static void register_events(IngestMetrics *m, Metrics *metrics)
{
    m->commands =
        metrics_counter(metrics, "stentor_ingest_commands_total", "", "Notify commands accepted");
    m->commands_ignored = metrics_counter(
        metrics, "stentor_ingest_events_ignored_total", "", "Domain events that no trigger wants");
    m->trigger_events = metrics_counter(
        metrics, "stentor_ingest_trigger_events_total", "", "Domain events that a trigger wanted");
    m->triggered = metrics_counter(
        metrics, "stentor_ingest_triggered_total", "", "Notifications that triggers made");
    m->trigger_late = metrics_counter(
        metrics, "stentor_ingest_trigger_late_total", "",
        "Notifications of triggers that were not sent, because they were more than a day late");
    m->trigger_failed = metrics_counter(
        metrics, "stentor_ingest_trigger_failed_total", "", "Triggers that left a dead letter");
    m->trigger_cancels = metrics_counter(
        metrics, "stentor_ingest_trigger_cancels_total", "",
        "Cancellations of waiting notifications, made by domain events");
}

static void register_resends(IngestMetrics *m, Metrics *metrics)
{
    static const char RESENDS[] = "Events that ask to send a failed mail again, by result";
    m->resent =
        metrics_counter(metrics, "stentor_ingest_resends_total", "result=\"resent\"", RESENDS);
    m->resend_repeated =
        metrics_counter(metrics, "stentor_ingest_resends_total", "result=\"repeated\"", RESENDS);
    m->resend_gone =
        metrics_counter(metrics, "stentor_ingest_resends_total", "result=\"gone\"", RESENDS);
    m->resend_refused =
        metrics_counter(metrics, "stentor_ingest_resends_total", "result=\"refused\"", RESENDS);
}

void ingest_metrics_init(IngestMetrics *m, Metrics *metrics)
{
    register_accept(m, metrics);
    register_publish(m, metrics);
    register_intake(m, metrics);
    register_clear(m, metrics);
    register_events(m, metrics);
    register_resends(m, metrics);
}
