// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/relay_metrics.h"

#include <stdio.h>

#include "common/base/clock.h"

static double read_oldest(void *ctx)
{
    const RelayMetrics *m = ctx;
    if (m->oldest_at_us == 0) {
        return 0;
    }
    int64_t age_us = clock_now_us() - m->oldest_at_us;
    return age_us > 0 ? (double)age_us / 1e6 : 0;
}

static double read_lag(void *ctx)
{
    const RelayMetrics *m = ctx;
    return m->projector != NULL ? (double)projector_lag(m->projector) : 0;
}

static double read_active(void *ctx)
{
    const RelayMetrics *m = ctx;
    return m->projector != NULL && projector_active(m->projector) ? 1 : 0;
}

static double read_listening(void *ctx)
{
    const RelayMetrics *m = ctx;
    return m->listen != NULL && db_listen_live(m->listen) ? 1 : 0;
}

static void register_batches(RelayMetrics *m, Metrics *metrics)
{
    // clang-format off
    m->claimed = metrics_counter(metrics, "stentor_outbox_relay_claimed_total", "", "Rows claimed");
    m->published = metrics_counter(metrics, "stentor_outbox_relay_published_total", "", "Rows stored in JetStream");
    m->marked = metrics_counter(metrics, "stentor_outbox_relay_marked_total", "", "Rows marked as published in their table");
    m->refused = metrics_counter(metrics, "stentor_outbox_relay_refused_total", "", "Rows rejected because they do not fit their mapping");
    m->left = metrics_counter(metrics, "stentor_outbox_relay_left_total", "", "Rows given back or abandoned; they are published again");
    m->adopted = metrics_counter(metrics, "stentor_outbox_relay_adopted_total", "", "Claims adopted from dead relays");
    m->deleted = metrics_counter(metrics, "stentor_outbox_relay_deleted_total", "", "Rows deleted by retention");
    m->woken = metrics_counter(metrics, "stentor_outbox_relay_notified_total", "", "Wake-ups by NOTIFY");
    // clang-format on
}

static void register_feedback(RelayMetrics *m, Metrics *metrics)
{
    for (int moment = 0; moment < FEEDBACK_COUNT; moment++) {
        char labels[32];
        snprintf(labels, sizeof labels, "moment=\"%s\"", feedback_name((FeedbackMoment)moment));
        m->feedback[moment] = metrics_counter(
            metrics, "stentor_outbox_relay_feedback_total", labels,
            "Requests that reached this moment");
    }
    metrics_gauge_fn(
        metrics, "stentor_outbox_relay_status_lag", "", "Status events not read yet", read_lag, m);
    metrics_gauge_fn(
        metrics, "stentor_outbox_relay_feedback_active", "",
        "1: this relay writes feedback; 0: another relay does", read_active, m);
}

static void register_tally(RelayMetrics *m, Metrics *metrics)
{
    m->failed_rows = metrics_gauge(
        metrics, "stentor_outbox_relay_failed_rows", "",
        "Rows whose mail failed, counted up to 100000");
    for (int retries = 1; retries <= RELAY_RETRIES_MAX; retries++) {
        char labels[32];
        snprintf(
            labels, sizeof labels, "attempts=\"%d%s\"", retries,
            retries == RELAY_RETRIES_MAX ? "+" : "");
        m->retried[retries] = metrics_gauge(
            metrics, "stentor_outbox_relay_retrying_rows", labels,
            "Rows whose mail is retried, by the number of attempts that failed");
    }
}

static void register_backlog(RelayMetrics *m, Metrics *metrics)
{
    m->backlog = metrics_gauge(
        metrics, "stentor_outbox_relay_backlog", "", "Pending rows, counted up to 100000");
    m->claims = metrics_gauge(
        metrics, "stentor_outbox_relay_claims", "", "Claims in progress, of all relays");
    m->refused_rows = metrics_gauge(
        metrics, "stentor_outbox_relay_refused_rows", "",
        "Rejected rows that wait for an operator");
    metrics_gauge_fn(
        metrics, "stentor_outbox_relay_oldest_seconds", "", "Age of the oldest pending row",
        read_oldest, m);
    metrics_gauge_fn(
        metrics, "stentor_outbox_relay_listening", "",
        "1: NOTIFY wakes this relay; 0: it only polls", read_listening, m);
}

void relay_metrics_init(RelayMetrics *m, Metrics *metrics)
{
    register_batches(m, metrics);
    register_feedback(m, metrics);
    register_backlog(m, metrics);
    register_tally(m, metrics);
}

void relay_metrics_claimed(RelayMetrics *m, const BatchClaim *claim)
{
    metric_add(m->claimed, (double)claim->rows);
    metric_add(m->adopted, claim->adopted ? 1 : 0);
}

void relay_metrics_ended(RelayMetrics *m, const BatchEnd *end)
{
    metric_add(m->published, (double)end->published);
    metric_add(m->marked, (double)end->marked);
    metric_add(m->refused, (double)end->refused);
    metric_add(m->left, (double)end->left);
}

void relay_metrics_feedback(RelayMetrics *m, const size_t counts[FEEDBACK_COUNT])
{
    for (int moment = 0; moment < FEEDBACK_COUNT; moment++) {
        metric_add(m->feedback[moment], (double)counts[moment]);
    }
}

void relay_metrics_counted(RelayMetrics *m, const MaintenanceBacklog *backlog)
{
    metric_set(m->backlog, (double)backlog->rows);
    metric_set(m->claims, (double)backlog->claims);
    metric_set(m->refused_rows, (double)backlog->refused);
    m->oldest_at_us = backlog->oldest_at_us;
}

void relay_metrics_tallied(RelayMetrics *m, const MaintenanceTally *tally)
{
    metric_set(m->failed_rows, (double)tally->failed);
    for (int retries = 1; retries <= RELAY_RETRIES_MAX; retries++) {
        metric_set(m->retried[retries], (double)tally->retried[retries]);
    }
}
