// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/canary/canary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"

enum { EXPIRES_S = 3600 };

struct Canary {
    Accept *accept;
    const Catalog *catalog;
    int64_t period_s, slot; // the last one that was handed in
    Arena *arena;           // of the one on the way
    Request request;
    Submission submission;
    bool busy, failing;
    Metric *accepted, *failed;
};

static void note(Canary *canary, const char *why)
{
    metric_add(canary->failed, 1);
    if (!canary->failing) {
        LOG(LOG_WARN,
            "no canary is sent (HINT: the tenant `platform` needs the template: stentor template "
            "put canary --channel inapp, or STENTOR_CANARY_S=0)",
            log_text("reason", why));
    }
    canary->failing = true;
}

static void on_accepted(void *ctx, const AcceptResult *result)
{
    Canary *canary = ctx;
    canary->busy = false;
    if (result->verdict == ACCEPT_UNAVAILABLE || result->verdict == ACCEPT_OTHER_BODY) {
        note(canary, result->error.text);
        return;
    }
    canary->failing = false;
    metric_add(canary->accepted, result->verdict == ACCEPT_STORED ? 1 : 0);
}

static bool make_request(Canary *canary, int64_t now_us, FieldError *wrong)
{
    canary->request = (Request){
        .to = STR("canary"),
        .channel = CHANNEL_INAPP,
        .category = CATEGORY_TRANSACTIONAL,
        .priority = PRIORITY_NORMAL,
        .template_key = STR(CANARY_TEMPLATE),
        .expires_at_us = now_us + EXPIRES_S * INT64_C(1000000),
    };
    return request_check(&canary->request, now_us, canary->arena, wrong) &&
           catalog_freeze(
               canary->catalog, STR(CANARY_TENANT), &canary->request, canary->arena, wrong);
}

// The same from every replica, so that a repeat is one.
static void hand_in(Canary *canary, int64_t now_us)
{
    FieldError wrong = {.field = ""};
    Error err = {0};
    arena_reset(canary->arena);
    if (!make_request(canary, now_us, &wrong)) {
        note(canary, wrong.text);
        return;
    }
    const char *key =
        arena_printf(canary->arena, "canary/%" PRId64 "/%" PRId64, canary->period_s, canary->slot);
    canary->submission = (Submission){
        .tenant = STR(CANARY_TENANT),
        .scope = STR("canary"),
        .key = str_from(key),
        .requests = &canary->request,
        .count = 1,
        .single = true,
        .bytes = sizeof canary->request,
        .done = on_accepted,
        .ctx = canary,
    };
    sha256(str_from(key), canary->submission.body_hash);
    canary->busy = accept_submit(canary->accept, &canary->submission, canary->arena, &err);
    if (!canary->busy) {
        note(canary, err.text);
    }
}

void canary_tick(Canary *canary, int64_t now_us)
{
    if (canary->period_s == 0 || canary->busy) {
        return;
    }
    int64_t slot = now_us / 1000000 / canary->period_s;
    if (slot != canary->slot) {
        canary->slot = slot;
        hand_in(canary, now_us);
    }
}

Canary *canary_new(Accept *accept, const Catalog *catalog, Metrics *metrics, int64_t period_s)
{
    static const char *const name = "stentor_ingest_canaries_total";
    static const char *const help = "Canaries that were accepted; of several replicas one has it";
    Canary *canary = xcalloc(1, sizeof *canary);
    canary->accept = accept;
    canary->catalog = catalog;
    canary->period_s = period_s;
    canary->arena = arena_new(0);
    canary->accepted = metrics_counter(metrics, name, "result=\"accepted\"", help);
    canary->failed = metrics_counter(metrics, name, "result=\"failed\"", help);
    metric_set(
        metrics_gauge(
            metrics, "stentor_ingest_canary_period_seconds", "",
            "STENTOR_CANARY_S; 0: none is sent"),
        (double)period_s);
    return canary;
}

void canary_free(Canary *canary)
{
    arena_free(canary->arena);
    free(canary);
}
