// SPDX-License-Identifier: Apache-2.0
// One request: checked, its version found, rendered, checked a second time, emitted or failed.
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/render/digest_lines.h"
#include "common/request/semver.h"
#include "common/template/helpers/format.h"
#include "services/renderer/renderer_internal.h"

enum {
    PATIENCE = 5,      // deliveries of a request before its template or asset counts as unknown
    PATIENCE_MS = 200, // between them
};

typedef enum Result {
    RESULT_OUT,    // *out is to be emitted: rendered
    RESULT_FAILED, // *failure has the reason
    RESULT_LATER,  // CONFIG may still deliver its template, or an asset
    RESULT_DEAD,   // *err: unreadable
} Result;

static Result refuse(RenderFailure *failure, FailureCode code, const char *reason)
{
    (void)render_fail(failure, code, "%s", reason);
    return RESULT_FAILED;
}

// Checks that need neither template nor variables; RESULT_OUT: go on. An expired request goes on
// too: it may be a redelivery of one sent long ago, and `failed` from here would win over `sent`.
// The dispatcher decides `expired` through its ledger. The count of deliveries is no help: after a
// crash the server may restart it (tests/integration/faults/test_seen_again.py). A replay publishes
// nothing (report_failure).
static Result check_first(const Delivery *delivery, const Job *job, RenderFailure *failure)
{
    const Request *request = job->request;
    bool expired = request->expires_at_us != 0 && request->expires_at_us <= job->now_us;
    if (expired && delivery->message.replayed) {
        return refuse(failure, FAILURE_EXPIRED, "the request expired before it was rendered");
    }
    if (job->key == NULL) {
        return refuse(
            failure, FAILURE_RECIPIENT_ERASED, "the recipient's data was erased before rendering");
    }
    return RESULT_OUT;
}

// Of a request that is sent again after its template failed: the version that is active now, so
// that a new one mends it. The copy is in the delivery's arena; as it was when none is active.
static const Request *choose_version(
    const Lane *lane, const Delivery *delivery, const Request *from)
{
    char version[TEMPLATE_VERSION_SIZE];
    const TemplateName wanted = template_name_of(from);
    if (wanted.version.len > 0 ||
        !template_cache_active(lane->renderer->templates, &wanted, semver_compare, version)) {
        return from;
    }
    Request *chosen = arena_alloc(delivery->arena, sizeof *chosen);
    *chosen = *from;
    chosen->template_version = arena_cstr(delivery->arena, str_from(version));
    return chosen;
}

// The version may come later than the request: CONFIG and REQUEST are two streams.
static Result find_version(
    const Lane *lane, const Item *item, const Request *request, const CompiledVersion **ret,
    RenderFailure *failure)
{
    const TemplateName wanted = template_name_of(request);
    const CompiledVersion *version = template_cache_get(lane->renderer->templates, &wanted);
    *ret = version;
    if (version != NULL && version->broken.kind == ERROR_NONE) {
        return RESULT_OUT;
    }
    if (version != NULL) {
        return refuse(failure, FAILURE_INVALID_TEMPLATE, version->broken.text);
    }
    if (item->delivery->message.delivered < PATIENCE) {
        return RESULT_LATER;
    }
    (void)render_fail(
        failure, FAILURE_UNKNOWN_TEMPLATE, "template '%.64s' version '%.64s' is not known for %s",
        request->template_, request->template_version, channel_name(wanted.channel));
    return RESULT_FAILED;
}

// Of one notification: its meter is its own, so that one slow template costs no other notification
// its time.
typedef struct Rendering {
    TemplateMeter meter;
    AssetLookup lookup;
    TemplateAssets assets;
    ContentContext context;
} Rendering;

// The zones that ingest knows are the system's, those of the dates are ICU's. *ret stays where it
// is: its parts point to each other.
static void begin_rendering(
    const Renderer *renderer, const Job *job, const Sender *sender, Rendering *ret)
{
    Str zone = str_from(job->request->time_zone);
    *ret = (Rendering){
        .meter = {.cpu_us = clock_thread_cpu_us, .max_us = renderer->cpu_max_us},
        .lookup =
            {
                .assets = renderer->assets,
                .tenant = str_from(job->request->meta->tenant),
                .public_url = renderer->links.public_url,
            },
        .assets = {.find = asset_find_address, .ctx = &ret->lookup},
    };
    ret->context = (ContentContext){
        .zone = format_zone_exists(zone) ? zone : str_from(sender->zone),
        .tools = renderer->tools,
        .meter = &ret->meter,
        .assets = &ret->assets,
    };
}

// The subjects of all items have the time of one notification; what is over it goes without.
static bool add_digest(
    const Renderer *renderer, const Job *job, const Sender *sender, json_t *variables, Error *err)
{
    if (!digest_variables(job, variables, err)) {
        return false;
    }
    Rendering rendering;
    begin_rendering(renderer, job, sender, &rendering);
    digest_subject_lines(renderer->templates, job, sender, &rendering.context, variables);
    return true;
}

// RESULT_LATER: an asset is not known, and CONFIG may still deliver it; *failure says which.
static Result write_content(
    const Lane *lane, const Job *job, const CompiledVersion *version, json_t *variables,
    BusOut *out, RenderFailure *failure)
{
    Renderer *renderer = lane->renderer;
    const Sender *sender = senders_get(renderer->senders, str_from(job->request->meta->tenant));
    Str wanted = str_from(job->request->locale);
    const CompiledLocale *locale =
        version_locale(version, wanted.len > 0 ? wanted : str_from(sender->locale));
    Rendering rendering;
    Error err = {0};
    begin_rendering(renderer, job, sender, &rendering);
    footer_variables(
        variables, job->unsubscribe_url, job->preferences_url, sender->physical_address);
    if (!check_variables(version->source, variables, failure)) {
        return RESULT_FAILED;
    }
    add_surroundings(variables, locale, sender->theme, sender->names);
    bool ok =
        render_content(version, locale, variables, &rendering.context, &renderer->draft, failure);
    metric_add(renderer->unsafe_urls, rendering.meter.unsafe_urls);
    if (!ok) {
        return rendering.lookup.missed ? RESULT_LATER : RESULT_FAILED;
    }
    if (footer_is_wanted(job->request, sender->address_in_every) &&
        !footer_add(
            &renderer->draft, version->source, locale->locale, sender->physical_address, failure)) {
        return RESULT_FAILED;
    }
    size_t links = tracked_apply(&renderer->tracked, job, sender, variables, &renderer->draft.html);
    metric_add(renderer->tracked_links, (double)links);
    if (!rendered_event(job, version, locale, &renderer->draft, sender, out, &err)) {
        return refuse(failure, FAILURE_RENDER, err.text);
    }
    return RESULT_OUT;
}

static Result render(
    const Lane *lane, const Item *item, const Job *job, BusOut *out, RenderFailure *failure,
    Error *err)
{
    const CompiledVersion *version = NULL;
    Result result = check_first(item->delivery, job, failure);
    if (result == RESULT_OUT) {
        result = find_version(lane, item, job->request, &version, failure);
    }
    if (result != RESULT_OUT) {
        return result;
    }
    Str json;
    json_t *variables = NULL;
    if (!job_variables(job, &json, err)) {
        return RESULT_DEAD;
    }
    if (!parse_variables(json, &variables, failure)) {
        return RESULT_FAILED;
    }
    if (job->request->n_digest_items > 0) {
        const Renderer *renderer = lane->renderer;
        const Sender *sender = senders_get(renderer->senders, str_from(job->request->meta->tenant));
        // The items' versions are looked up, which ends what was found before.
        result = add_digest(renderer, job, sender, variables, err)
                     ? find_version(lane, item, job->request, &version, failure)
                     : RESULT_DEAD;
    }
    if (result == RESULT_OUT) {
        result = write_content(lane, job, version, variables, out, failure);
        if (result == RESULT_LATER && item->delivery->message.delivered >= PATIENCE) {
            result = RESULT_FAILED;
        }
    }
    json_decref(variables);
    return result;
}

static void log_failure(const Job *job, const RenderFailure *failure)
{
    if (!log_takes_notification(LOG_WARN)) {
        return;
    }
    const Stentor__V1__Meta *meta = job->request->meta;
    char reason[sizeof failure->reason];
    mask_addresses(str_from(failure->reason), reason, sizeof reason);
    LOG(LOG_WARN, "a notification failed: it cannot be rendered", log_text("tenant", meta->tenant),
        log_text("notification", meta->notification_id),
        log_text("correlation", meta->correlation_id),
        log_text("template", job->request->template_),
        log_text("reason_code", failure_code_name(failure->code)), log_text("reason", reason));
}

// A failure is an operator's to look at; nothing can be done for what has expired and for a
// recipient who was erased.
static bool has_letter(const RenderFailure *failure)
{
    return failure->code != FAILURE_EXPIRED && failure->code != FAILURE_RECIPIENT_ERASED;
}

// The status, then the dead letter, then the ack. Killed in between: the request comes again and
// fails again, with the same ids. Two letters of it, when that was after the duplicate window, are
// sent again as one event, and the dispatcher's ledger has one first attempt.
static void report_failure(
    const Lane *lane, const Job *job, Delivery *delivery, const RenderFailure *failure)
{
    BusOut out;
    Error err = {0};
    if (delivery->message.replayed) {
        // The request was handled before. Its expiry or its recipient's erasure since then must not
        // turn `sent` into `failed`.
        metric_add(lane->renderer->ignored, 1);
        delivery_settle(delivery, NULL);
        return;
    }
    metric_add(lane->renderer->failed[failure->code], 1);
    log_failure(job, failure);
    if (!failed_event(job, failure, &out, &err)) {
        delivery_settle(delivery, &err);
        return;
    }
    delivery_emit(delivery, &out);
    if (!has_letter(failure)) {
        delivery_settle(delivery, NULL);
        return;
    }
    const char *code = failure_code_name(failure->code);
    error_set(&err, ERROR_PERMANENT, "%s: %s", code, failure->reason);
    delivery->reason_code = str_from(code);
    delivery_settle(delivery, &err);
}

// false: since the request was accepted its address was suppressed or its tenant suspended; it has
// been settled. An e-mail may be a redelivery of one sent long ago, and `suppressed` from here
// would win over `sent`: it goes on to the dispatcher, which checks the same and decides through
// its ledger. The other channels never send anything.
static bool pass_second_check(const Lane *lane, const Job *job, Delivery *delivery)
{
    Renderer *renderer = lane->renderer;
    const char *reason = "";
    HashKeys hash_keys = master_hash_keys(service_master_key(renderer->service));
    const char *code = second_check(
        renderer->suppressions,
        senders_get(renderer->senders, str_from(job->request->meta->tenant)), &hash_keys, job,
        &reason);
    bool mail = job->request->channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    if (code == NULL || (mail && !delivery->message.replayed)) {
        return true;
    }
    BusOut out;
    Error err = {0};
    if (delivery->message.replayed) {
        metric_add(renderer->ignored, 1);
        delivery_settle(delivery, NULL);
        return false;
    }
    metric_add(renderer->suppressed, 1);
    bool ok = suppressed_event(job, code, reason, &out, &err);
    if (ok) {
        delivery_emit(delivery, &out);
    }
    delivery_settle(delivery, ok ? NULL : &err);
    return false;
}

void renderer_handle(
    const Lane *lane, const Item *item, DataKey *key, TraceBatch *traced, int64_t now_us)
{
    Delivery *delivery = item->delivery;
    Tracer *tracer = lane->renderer->tracer;
    int64_t started_at_us = tracer != NULL ? clock_now_us() : 0;
    BusOut out;
    RenderFailure failure = {.code = FAILURE_NONE};
    Error err = {0};
    Job job = {
        .request = choose_version(lane, delivery, item->request),
        .key = key,
        .lane = lane->priority,
        .traceparent = delivery->message.traceparent,
        .now_us = now_us,
        .arena = delivery->arena,
    };
    if (!pass_second_check(lane, &job, delivery)) {
        return;
    }
    job.unsubscribe_url = opt_out_link(&lane->renderer->links, &job);
    job.preferences_url = preferences_link(&lane->renderer->links, job.unsubscribe_url, job.arena);
    Result result = render(lane, item, &job, &out, &failure, &err);
    bool is_out = result == RESULT_OUT;
    if (is_out || result == RESULT_FAILED) { // before it is settled, which may free it
        RenderSpan span = {delivery, job.request, is_out ? &out : NULL, &failure, started_at_us};
        render_trace(tracer, traced, &span);
    }
    switch (result) {
    case RESULT_OUT:
        metric_add(lane->rendered, 1);
        delivery_emit(delivery, &out);
        delivery_settle(delivery, NULL);
        break;
    case RESULT_FAILED:
        report_failure(lane, &job, delivery, &failure);
        break;
    case RESULT_LATER:
        delivery_redeliver(delivery, PATIENCE_MS);
        break;
    case RESULT_DEAD:
        delivery_settle(delivery, &err);
        break;
    }
}
