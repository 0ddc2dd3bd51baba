// SPDX-License-Identifier: Apache-2.0
#include "services/order-saga/saga_metrics.h"

#include <stdio.h>

static Metric *labelled(
    Metrics *metrics, const char *name, const char *label, const char *value, const char *help)
{
    char labels[64];
    (void)snprintf(labels, sizeof labels, "%s=\"%s\"", label, value);
    return metrics_counter(metrics, name, labels, help);
}

static void register_sagas(SagaMetrics *m, Metrics *metrics)
{
    static const double durations[] = {1, 10, 60, 300, 600, 1800, 3600, 4 * 3600, 86400};
    for (OrderState end = ORDER_COMPLETED; end < ORDER_STATE_COUNT; end++) {
        m->finished[end] = labelled(
            metrics, "stentor_order_saga_finished_total", "state", order_state_name(end),
            "Orders that ended, by their end");
    }
    // clang-format off
    m->started = metrics_counter(metrics, "stentor_order_saga_started_total", "", "Orders checked out");
    m->retries = metrics_counter(metrics, "stentor_order_saga_retries_total", "", "Orders placed again after a time-out");
    m->waits_repeated = metrics_counter(metrics, "stentor_order_saga_waits_repeated_total", "", "Lost time-outs that were requested again");
    m->withheld = metrics_counter(metrics, "stentor_order_saga_withheld_total", "", "Commands not sent because the recipient is erased");
    m->lost = metrics_counter(metrics, "stentor_order_saga_lost_total", "", "Orders decided again because another process wrote them first");
    m->duration_seconds = metrics_histogram(metrics, "stentor_order_saga_duration_seconds", "", "Time from an order's check-out to its end", durations, sizeof durations / sizeof durations[0]);
    // clang-format on
}

static void register_messages(SagaMetrics *m, Metrics *metrics)
{
    static const double latencies[] = {0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 60, 3600};
    size_t count = sizeof latencies / sizeof latencies[0];
    for (Verdict verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        m->verdicts[verdict] = labelled(
            metrics, "stentor_order_saga_messages_total", "verdict", verdict_name(verdict),
            "Messages consumed, by verdict");
    }
    // clang-format off
    m->passed = metrics_counter(metrics, "stentor_order_saga_passed_total", "", "Events that do not concern orders");
    m->processing_seconds = metrics_histogram(metrics, "stentor_order_saga_processing_seconds", "", "Age of the oldest event of each batch at its commit", latencies, count);
    m->published = metrics_counter(metrics, "stentor_order_saga_published_total", "", "Commands and time-outs stored by JetStream");
    m->repeats_dropped = metrics_counter(metrics, "stentor_order_saga_published_duplicates_total", "", "Commands and time-outs that the stream dropped as repeats");
    m->publish_failed = metrics_counter(metrics, "stentor_order_saga_publish_failed_total", "", "Failed publishes, left to the sweep");
    m->swept = metrics_counter(metrics, "stentor_order_saga_swept_total", "", "Outbox rows published by the sweep");
    m->outbox_seconds = metrics_histogram(metrics, "stentor_order_saga_outbox_seconds", "", "Time from an outbox row's commit until JetStream has stored it", latencies, count);
    // clang-format on
}

void saga_metrics_register(SagaMetrics *m, Metrics *metrics)
{
    static const char *const steps[] = {"outbox", "inbox", "archived", "dropped"};
    register_sagas(m, metrics);
    register_messages(m, metrics);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        m->retained[i] = labelled(
            metrics, "stentor_order_saga_retention_rows_total", "step", steps[i],
            "Rows moved or deleted by the retention");
    }
    m->passes = metrics_counter(
        metrics, "stentor_order_saga_retention_passes_total", "",
        "Completed passes of the retention");
    m->retained_at = metrics_gauge(
        metrics, "stentor_order_saga_retention_last_timestamp_seconds", "",
        "When this process last completed a pass of the retention; 0: not yet");
}
