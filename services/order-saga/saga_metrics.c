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
            "Sagas that ended; the rates of success and failure are parts of their sum");
    }
    // clang-format off
    m->started = metrics_counter(metrics, "stentor_order_saga_started_total", "", "Sagas that began");
    m->retries = metrics_counter(metrics, "stentor_order_saga_retries_total", "", "Orders placed again after a time-out");
    m->waits_repeated = metrics_counter(metrics, "stentor_order_saga_waits_repeated_total", "", "Waits that did not come back and were asked of the clock again");
    m->withheld = metrics_counter(metrics, "stentor_order_saga_withheld_total", "", "Commands not sent: their person is erased");
    m->lost = metrics_counter(metrics, "stentor_order_saga_lost_total", "", "Orders decided again, because another process wrote them first");
    m->duration_seconds = metrics_histogram(metrics, "stentor_order_saga_duration_seconds", "", "From an order's placing to its end", durations, sizeof durations / sizeof durations[0]);
    // clang-format on
}

static void register_messages(SagaMetrics *m, Metrics *metrics)
{
    static const double latencies[] = {0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 60, 3600};
    size_t count = sizeof latencies / sizeof latencies[0];
    for (Verdict verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        m->verdicts[verdict] = labelled(
            metrics, "stentor_order_saga_messages_total", "verdict", verdict_name(verdict),
            "Messages consumed, by what became of them");
    }
    // clang-format off
    m->passed = metrics_counter(metrics, "stentor_order_saga_passed_total", "", "Events that are nothing to the saga");
    m->processing_seconds = metrics_histogram(metrics, "stentor_order_saga_processing_seconds", "", "The oldest event of each batch: from its storing to the commit", latencies, count);
    m->published = metrics_counter(metrics, "stentor_order_saga_published_total", "", "Commands and time-outs stored by JetStream");
    m->repeats_dropped = metrics_counter(metrics, "stentor_order_saga_published_duplicates_total", "", "Of these: the stream had them already, nobody hears of them again");
    m->publish_failed = metrics_counter(metrics, "stentor_order_saga_publish_failed_total", "", "Publishes that the sweep tries again");
    m->swept = metrics_counter(metrics, "stentor_order_saga_swept_total", "", "Rows of the outbox published by the sweep");
    m->outbox_seconds = metrics_histogram(metrics, "stentor_order_saga_outbox_seconds", "", "From a row's commit to its storing", latencies, count);
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
            "Rows that the retention has moved or deleted");
    }
    m->passes = metrics_counter(
        metrics, "stentor_order_saga_retention_passes_total", "",
        "Passes of the retention that ended");
    m->retained_at = metrics_gauge(
        metrics, "stentor_order_saga_retention_last_timestamp_seconds", "",
        "When this process last ended a pass of the retention; 0: not yet");
}
