// SPDX-License-Identifier: Apache-2.0
#include "common/gate/gate_run.h"

#include <stdlib.h>
#include <string.h>

#include "common/codec/suppressed.h"
#include "common/gate/gate_owners.h"
#include "common/model/retention/retention.h"

#define PLATFORM STR("platform")

static const TenantSettings *settings_of(const GateRun *run, const Notice *notice)
{
    return catalog_tenant(run->gate->catalog, notice->tenant);
}

static void finish(GateRun *run, const Error *err)
{
    records_done(&run->records);
    counters_done(&run->counters);
    run->done(run->ctx, err);
}

// ---- who it is for ----

// Every recipient has an inbox: without an in-app address of their own it is named by their id.
static bool is_own_inbox(const Notice *notice)
{
    const Request *request = &notice->request;
    return request->channel == CHANNEL_INAPP && request->to.len == 0 && notice->record != NULL &&
           !notice->record->addresses[CHANNEL_INAPP].there;
}

// An address that the caller gave wins over the recipient's own.
static void find_address(const GateRun *run, Notice *notice)
{
    Request *request = &notice->request;
    if (is_own_inbox(notice)) {
        request->to = request->recipient_id;
    }
    notice->has_address = request->to.len > 0;
    notice->sealed = STR_EMPTY;
    if (notice->has_address) {
        address_hash(
            run->gate->hash_key, notice->tenant, request->channel, request->to, notice->hash);
        return;
    }
    const RecordAddress *address =
        notice->record == NULL ? NULL : &notice->record->addresses[request->channel];
    if (address != NULL && address->there) {
        notice->has_address = true;
        notice->sealed = address->sealed;
        memcpy(notice->hash, address->hash, ADDRESS_HASH_LEN);
    }
}

// Copied: the group waits for its keys afterwards, and the tenant's entry may change meanwhile.
static void find_locale(const GateRun *run, Notice *notice)
{
    if (notice->request.locale.len == 0 && notice->record != NULL) {
        notice->request.locale = notice->record->locale;
    }
    if (notice->request.locale.len == 0) {
        notice->request.locale =
            arena_str(run->arena, str_from(settings_of(run, notice)->default_locale));
    }
}

// Those who have the address besides the recipient who is named.
static void find_owners(const GateRun *run, Notice *notice)
{
    const GatePerson **owners = arena_array(run->arena, notice->owner_count, sizeof *owners);
    notice->other_owners = 0;
    for (size_t i = 0; i < notice->owner_count; i++) {
        const Record *record = records_find(&run->records, notice->tenant, notice->owner_ids[i]);
        if (record != NULL && record != notice->record) {
            owners[notice->other_owners++] = &record->facts;
        }
    }
    notice->owners = owners;
}

static void find_record(const GateRun *run, Notice *notice)
{
    Str id = notice->request.recipient_id;
    notice->record = id.len == 0 ? NULL : records_find(&run->records, notice->tenant, id);
    notice->person = notice->record == NULL ? NULL : &notice->record->facts;
    find_address(run, notice);
    if (notice->owner_count > 0) {
        find_owners(run, notice);
    }
}

// The hash under the platform's name, and those under other hash keys, need the address itself;
// that of a stored one is not opened here, and the renderer, which has it, asks again (of a pause
// for one provider the dispatcher).
static SuppressionReason find_suppression(
    const GateRun *run, const Notice *notice, GateListing *ret_listing)
{
    const Suppressions *suppressions = run->gate->suppressions;
    *ret_listing = GATE_LISTING_NONE;
    if (suppressions == NULL || !notice->has_address) {
        return SUPPRESSION_NONE;
    }
    const Request *request = &notice->request;
    uint8_t hash[ADDRESS_HASH_LEN];
    bool platform = suppressions_count_of_platform(suppressions) > 0 && request->to.len > 0;
    if (platform) {
        address_hash(run->gate->hash_key, PLATFORM, request->channel, request->to, hash);
    }
    SuppressionReason found = suppressions_classify(
        suppressions, notice->tenant, request->channel, request->category, notice->hash,
        platform ? hash : NULL, run->now_us);
    if (found != SUPPRESSION_NONE) {
        bool tenants = suppressions_classify(
                           suppressions, notice->tenant, request->channel, request->category,
                           notice->hash, NULL, run->now_us) != SUPPRESSION_NONE;
        *ret_listing = tenants ? GATE_LISTING_TENANT : GATE_LISTING_PLATFORM;
        return found;
    }
    found = suppressed_under_any(
        suppressions, &run->gate->hash_keys, notice->tenant, request->channel, request->category,
        request->to, run->now_us);
    *ret_listing = found != SUPPRESSION_NONE ? GATE_LISTING_OLD_KEY : GATE_LISTING_DOMAIN;
    return found != SUPPRESSION_NONE
               ? found
               : mail_scope_suppressed(
                     suppressions, notice->tenant, request->channel, request->category,
                     str_from(settings_of(run, notice)->from_domain), request->to, run->now_us);
}

static GateCase case_of(const GateRun *run, const Notice *notice)
{
    const Request *request = &notice->request;
    GateListing listing = GATE_LISTING_NONE;
    SuppressionReason suppression = find_suppression(run, notice, &listing);
    return (GateCase){
        .tenant = &settings_of(run, notice)->gate,
        .person = notice->person,
        .owners = notice->owners,
        .owner_count = notice->other_owners,
        .has_consent = request->consent_source.len > 0,
        .utc = zones_get(catalog_zones(run->gate->catalog), STR_EMPTY, NULL),
        .category = request->category,
        .channel = request->channel,
        .priority = request->priority,
        .scheduled_for_us = request->scheduled_for_us,
        .expires_at_us = request->expires_at_us,
        .has_address = notice->has_address,
        .suppression = suppression,
        .listing = listing,
        .routed = notice->routed,
        .now_us = run->now_us,
    };
}

// ---- guardians ----

// The guardian's own record, but for who looks after the guardian.
static void take_guardian(const GateRun *run, Notice *notice, Str guardian_id)
{
    notice->request.recipient_id = guardian_id;
    notice->request.to = STR_EMPTY;
    notice->request.to_name = STR_EMPTY;
    notice->owner_count = 0;
    notice->other_owners = 0;
    notice->request.locale = notice->asked_locale;
    find_record(run, notice);
    if (notice->person != NULL) {
        GatePerson *adult = arena_copy(run->arena, notice->person, sizeof *notice->person);
        adult->minor = false;
        notice->person = adult;
    }
}

// The same cause makes the same id, and its time is the first one's.
static const char *derive_id(const GateRun *run, const Notice *first)
{
    char *cause = arena_printf(run->arena, "guardian|%s", first->id);
    uint8_t hash[SHA256_LEN];
    sha256(str_from(cause), hash);
    int64_t at_ms = 0;
    (void)id_parse(str_from(first->id), "ntf_", &at_ms);
    char *id = arena_alloc(run->arena, ID_SIZE);
    id_derived("ntf_", at_ms * 1000, hash, id);
    RetentionClass class = retention_class_of_id(str_from(first->id));
    retention_id_set_code(id, retention_class_code(class));
    return id;
}

static void judge(const GateRun *run, Notice *notice)
{
    GateCase facts = case_of(run, notice);
    notice->decision.reason = gate_refuse(&facts);
    notice->decision.verdict = notice->decision.reason == GATE_NO_REASON ? GATE_GO : GATE_SUPPRESS;
    if (notice->decision.verdict == GATE_SUPPRESS) {
        gate_trace(&facts, &notice->decision, notice->trace);
    }
}

static void add_copy(GateRun *run, const Notice *first, Str guardian_id)
{
    Notice *copy = &run->notices[run->count++];
    *copy = *first;
    copy->first = (size_t)(first - run->notices);
    copy->id = derive_id(run, first);
    copy->request.copy_of = str_from(first->id);
    copy->request.mail = NULL; // whom the first one is copied to has it already
    copy->routed = GUARDIAN_COPY;
    take_guardian(run, copy, guardian_id);
    judge(run, copy);
}

// A suppressed notification is not copied. Without a guardian there is no copy, and a redirected
// notification has no address.
static void judge_and_route(GateRun *run, Notice *notice)
{
    find_record(run, notice);
    judge(run, notice);
    GuardianRouting routing = gate_route(&settings_of(run, notice)->gate, notice->person);
    if (notice->decision.verdict == GATE_SUPPRESS || routing == GUARDIAN_NONE) {
        return;
    }
    Str guardian_id = notice->record->guardian_id;
    if (guardian_id.len == 0 && routing == GUARDIAN_REDIRECT) {
        GateCase facts = case_of(run, notice);
        notice->decision = (GateDecision){.verdict = GATE_SUPPRESS, .reason = GATE_NO_ADDRESS};
        gate_trace(&facts, &notice->decision, notice->trace);
    } else if (routing == GUARDIAN_REDIRECT) {
        notice->routed = GUARDIAN_REDIRECT;
        take_guardian(run, notice, guardian_id);
        judge(run, notice);
    } else if (guardian_id.len > 0) {
        add_copy(run, notice, guardian_id);
    }
}

// ---- limits ----

static Str subject_of(const GateRun *run, const Notice *notice)
{
    if (notice->request.recipient_id.len > 0) {
        return notice->request.recipient_id;
    }
    char *hex = arena_alloc(run->arena, 2 * ADDRESS_HASH_LEN + 1);
    hex_encode(notice->hash, ADDRESS_HASH_LEN, hex);
    return str_from(hex);
}

static void want_places(GateRun *run, Notice *notice)
{
    const GateTenant *tenant = &settings_of(run, notice)->gate;
    Channel channel = notice->request.channel;
    const struct {
        const Limits *limits;
        bool of_recipient;
        Channel channel;
    } kinds[GATE_COUNTERS] = {
        [GATE_COUNTER_TENANT] = {&tenant->limits, false, CHANNEL_NONE},
        [GATE_COUNTER_RECIPIENT] = {&tenant->recipient_limits, true, CHANNEL_NONE},
        [GATE_COUNTER_CHANNEL] = {&tenant->channel_limits[channel], false, channel},
        [GATE_COUNTER_RECIPIENT_CHANNEL] =
            {&tenant->recipient_channel_limits[channel], true, channel},
    };
    for (int i = 0; i < GATE_COUNTERS && notice->decision.verdict != GATE_SUPPRESS; i++) {
        if (limits_any(kinds[i].limits)) {
            notice->counters[i] = counters_want(
                &run->counters,
                &(Counter){
                    .tenant = notice->tenant,
                    .subject = kinds[i].of_recipient ? subject_of(run, notice) : STR_EMPTY,
                    .channel = kinds[i].channel,
                    .limits = *kinds[i].limits,
                    .over_limit = tenant->over_limit,
                });
        }
    }
}

static LimitPlace place_in(const Notice *notice, GateCounter which)
{
    Counter *counter = notice->counters[which];
    return counter == NULL ? (LimitPlace){0, 0} : counters_next(counter);
}

// ---- the decision ----

static void decide(const GateRun *run, Notice *notice)
{
    find_locale(run, notice);
    GateCase facts = case_of(run, notice);
    facts.tenant_place = place_in(notice, GATE_COUNTER_TENANT);
    facts.recipient_place = place_in(notice, GATE_COUNTER_RECIPIENT);
    facts.channel_place = place_in(notice, GATE_COUNTER_CHANNEL);
    facts.recipient_channel_place = place_in(notice, GATE_COUNTER_RECIPIENT_CHANNEL);
    notice->decision = gate_decide(&facts);
    if (notice->decision.verdict == GATE_GATHER &&
        !catalog_digest(
            run->gate->catalog, notice->tenant, &notice->request, run->arena, &notice->digest)) {
        facts.no_digest = true;
        notice->decision = gate_decide(&facts);
    }
    gate_trace(&facts, &notice->decision, notice->trace);
}

static void decide_all(GateRun *run)
{
    for (size_t i = 0; i < run->count; i++) {
        if (run->notices[i].decision.verdict != GATE_SUPPRESS) {
            decide(run, &run->notices[i]);
        }
    }
    finish(run, NULL);
}

static void on_db_places(void *ctx, DbTxn *txn, const Error *err)
{
    GateRun *run = ctx;
    if (err != NULL) {
        finish(run, err);
    } else if (!counters_read(&run->counters, txn, &run->err)) {
        finish(run, &run->err);
    } else {
        decide_all(run);
    }
}

static void judge_all(GateRun *run)
{
    for (size_t i = 0; i < run->asked; i++) {
        judge_and_route(run, &run->notices[i]);
    }
    counters_init(&run->counters, run->arena, GATE_COUNTERS * run->count);
    run->counters.dry = run->dry;
    for (size_t i = 0; i < run->count; i++) {
        want_places(run, &run->notices[i]);
    }
    if (run->counters.count == 0) {
        decide_all(run);
        return;
    }
    DbTxn *txn = db_txn_new(run->gate->pool);
    counters_ask(&run->counters, txn, run->now_us);
    db_txn_submit(txn, on_db_places, run);
}

// ---- the look-up ----

static void want_guardians(GateRun *run)
{
    for (size_t i = 0; i < run->asked; i++) {
        const Notice *notice = &run->notices[i];
        Str id = notice->request.recipient_id;
        const Record *minor = id.len == 0 ? NULL : records_find(&run->records, notice->tenant, id);
        bool routed = minor != NULL && minor->guardian_id.len > 0 &&
                      gate_route(&settings_of(run, notice)->gate, &minor->facts) != GUARDIAN_NONE;
        if (routed) {
            (void)records_want(&run->records, notice->tenant, minor->guardian_id);
        }
    }
}

static OwnersAsk owners_of(GateRun *run)
{
    return (OwnersAsk){
        .keys = &run->gate->hash_keys,
        .hash_key = run->gate->hash_key,
        .notices = run->notices,
        .count = run->asked,
        .arena = run->arena,
    };
}

// An address of exactly one recipient is that recipient; the others are asked for what they refuse.
static void want_owners(GateRun *run)
{
    for (size_t i = 0; i < run->asked; i++) {
        Notice *notice = &run->notices[i];
        if (notice->owner_count == 1 && notice->request.recipient_id.len == 0) {
            notice->request.recipient_id = notice->owner_ids[0];
        }
        for (size_t n = 0; n < notice->owner_count; n++) {
            (void)records_want(&run->records, notice->tenant, notice->owner_ids[n]);
        }
    }
}

static void look_up(GateRun *run);

static void on_db_records(void *ctx, DbTxn *txn, const Error *err)
{
    GateRun *run = ctx;
    if (err != NULL) {
        finish(run, err);
        return;
    }
    bool owners = run->owners_asked && !run->owners_read;
    if (run->records_asked) {
        records_read(&run->records, txn, owners ? 1 : 0, catalog_zones(run->gate->catalog));
    }
    if (owners) {
        OwnersAsk ask = owners_of(run);
        owners_read(&ask, db_txn_result(txn, 0));
        run->owners_read = true;
        want_owners(run);
    }
    want_guardians(run);
    look_up(run);
}

// What was wanted and not read yet, then on. Guardians have no guardians here, so it ends.
static void look_up(GateRun *run)
{
    bool owners = !run->owners_asked && owners_wanted(run->notices, run->asked);
    run->records_asked = run->records.read < run->records.count;
    if (!owners && !run->records_asked) {
        judge_all(run);
        return;
    }
    DbTxn *txn = db_txn_new(run->gate->pool);
    if (owners) {
        OwnersAsk ask = owners_of(run);
        owners_ask(&ask, txn);
        run->owners_asked = true;
    }
    if (run->records_asked) {
        records_ask(&run->records, txn);
    }
    db_txn_submit(txn, on_db_records, run);
}

void gate_run(GateRun *run)
{
    run->asked = run->count;
    run->owners_asked = false;
    run->owners_read = false;
    records_init(&run->records, run->arena, 2 * run->count);
    for (size_t i = 0; i < run->count; i++) {
        Notice *notice = &run->notices[i];
        notice->asked_locale = notice->request.locale;
        if (notice->request.recipient_id.len > 0) {
            (void)records_want(&run->records, notice->tenant, notice->request.recipient_id);
        }
    }
    look_up(run);
}
