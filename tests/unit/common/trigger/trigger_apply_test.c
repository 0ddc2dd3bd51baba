// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/trigger/trigger_apply.h"
#include "stentor/v1/deferred.pb-c.h"

#define NOW_US INT64_C(1795199136000000) // 2026-11-20T18:25:36Z
#define HOUR_US INT64_C(3600000000)
#define DAY_US (24 * HOUR_US)
#define RCP "rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV"

typedef Stentor__V1__Trigger Trigger;

typedef struct Scene {
    Arena *arena;
    Trigger trigger;
    DomainEvent event;
} Scene;

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void read_event(Scene *s, const char *payload, int64_t stored_at_us)
{
    json_decref(s->event.data);
    DomainInput input = {
        .tenant = STR("acme"),
        .type = STR("stay.confirmed"),
        .payload = str_from(payload),
        .message_id = STR("e-1"),
        .stream = "EVENTS",
        .stored_at_us = stored_at_us,
    };
    Error err = {0};
    if (!domain_event_read(&input, s->arena, &s->event, &err)) {
        fail_msg("%s", err.text);
    }
}

static int set_up(void **state)
{
    static Scene s;
    s = (Scene){.arena = arena_new(0)};
    stentor__v1__trigger__init(&s.trigger);
    s.trigger.tenant = text("acme");
    s.trigger.key = text("remind");
    s.trigger.event_type = text("stay.confirmed");
    s.trigger.template_ = text("welcome");
    s.trigger.resolver = text("address:guest.email");
    s.trigger.name_path = text("guest.name");
    s.trigger.subject_path = text("stay.id");
    read_event(
        &s,
        "{\"guest\":{\"email\":\"Alice@Example.com\",\"name\":\"Alice\",\"id\":\"g-1\"},"
        "\"stay\":{\"id\":\"s-1\",\"start\":\"2026-12-24\"},\"who\":\"" RCP "\","
        "\"all\":[\"" RCP "\",\"bob\",\"" RCP "\"]}",
        NOW_US);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    domain_event_free(&s->event);
    arena_free(s->arena);
    return 0;
}

static TriggerPlan plan_good(Scene *s, int64_t now_us)
{
    TriggerPlan plan;
    Error err = {0};
    if (!trigger_plan(&s->trigger, NULL, &s->event, now_us, s->arena, &plan, &err)) {
        fail_msg("%s", err.text);
    }
    return plan;
}

static Request request_good(Scene *s, const TriggerPlan *plan)
{
    Request request;
    Error err = {0};
    if (!trigger_request(plan, &plan->targets[0], NOW_US, s->arena, &request, &err)) {
        fail_msg("%s", err.text);
    }
    return request;
}

static void an_event_becomes_a_checked_request(void **state)
{
    Scene *s = *state;
    TriggerPlan plan = plan_good(s, NOW_US);
    assert_int_equal(plan.count, 1);
    assert_false(plan.late);
    Request request = request_good(s, &plan);
    assert_true(str_eq(request.to, STR("Alice@example.com")));
    assert_true(str_eq(request.to_name, STR("Alice")));
    assert_true(str_eq(request.template_key, STR("welcome")));
    assert_true(str_eq(request.source_event_id, STR("e-1")));
    assert_true(str_eq(request.trigger_key, STR("remind")));
    assert_true(str_eq(request.variables, s->event.variables));
    assert_int_equal(request.channel, CHANNEL_EMAIL);
    assert_int_equal(request.scheduled_for_us, 0);
    assert_int_equal(request.cancel_key.len, 0); // nothing can cancel it
}

static void an_event_may_say_where_its_address_consented(void **state)
{
    static const struct {
        const char *consent;
        bool taken;
    } cases[] = {
        {"{\"source\":\"form\",\"given_at\":\"2026-05-01T12:00:00Z\"}", true},
        {"{\"source\":\"form\"}", false},
        {"{\"source\":\"form\",\"given_at\":\"2099-05-01T12:00:00Z\"}", false},
        {"{\"granted\":true}", false},
        {"true", false},
    };
    Scene *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domain_event_free(&s->event);
        read_event(
            s,
            arena_printf(
                s->arena, "{\"guest\":{\"email\":\"a@b.c\"},\"consent\":%s}", cases[i].consent),
            NOW_US);
        TriggerPlan plan = plan_good(s, NOW_US);
        Request request = request_good(s, &plan);
        assert_true(str_eq(request.consent_source, cases[i].taken ? STR("form") : STR_EMPTY));
        assert_int_equal(request.consent_at_us, cases[i].taken ? INT64_C(1777636800000000) : 0);
    }
}

typedef struct TimeCase {
    const char *anchor;
    int64_t offset_s;
    int64_t produced_ago_us; // before it was stored
    int64_t stored_ago_us;   // before now
    bool late;
    int64_t in_us; // from now; 0: at once
} TimeCase;

static void when_it_goes_out(void **state)
{
    Scene *s = *state;
    // From 2026-11-20T18:25:36Z to 2026-12-24T00:00:00Z.
    static const int64_t TO_STAY_US = (INT64_C(33) * 86400 + 5 * 3600 + 34 * 60 + 24) * 1000000;
    static const TimeCase CASES[] = {
        {"", 0, 0, 0, false, 0},
        {"event_produced_at", 0, 0, 0, false, 0},
        {"", 3600, 0, 0, false, HOUR_US},
        {"", 3600, HOUR_US / 2, 0, false, HOUR_US / 2},
        {"stay.start", 0, 0, 0, false, TO_STAY_US},
        {"stay.start", -86400, 0, 0, false, TO_STAY_US - 24 * HOUR_US},
        {"stay.start", -34 * 86400, 0, 0, false, 0}, // 18 hours ago
        {"stay.start", -35 * 86400, 0, 0, true, 0},  // 42 hours ago
        {"", 0, 23 * HOUR_US, 0, false, 0},          // an old event
        {"", 0, 25 * HOUR_US, 0, true, 0},           // a filled in past
        {"", 0, 0, 72 * HOUR_US, false, 0},          // we were away ourselves
        {"", 3600, 0, 72 * HOUR_US, true, 0},        // a reminder of two days ago
        {"stay.start", -34 * 86400, 0, 72 * HOUR_US, false, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const TimeCase *c = &CASES[i];
        s->trigger.anchor = text(c->anchor);
        s->trigger.offset_s = c->offset_s;
        s->event.stored_at_us = NOW_US - c->stored_ago_us;
        s->event.produced_at_us = s->event.stored_at_us - c->produced_ago_us;
        s->event.seen_at_us = s->event.stored_at_us;
        TriggerPlan plan = plan_good(s, NOW_US);
        if (plan.late != c->late || (plan.count == 0) != c->late) {
            fail_msg("case %zu: late %d, %zu targets", i, plan.late, plan.count);
        }
        int64_t want_us = c->in_us == 0 ? 0 : NOW_US + c->in_us;
        if (plan.draft.scheduled_for_us != want_us) {
            fail_msg("case %zu: in %lld us", i, (long long)(plan.draft.scheduled_for_us - NOW_US));
        }
    }
}

// A command of the saga: it has the check-out's time, and may have waited for days in between.
static void what_follows_from_a_fresh_event_is_not_late(void **state)
{
    Scene *s = *state;
    s->event.stored_at_us = NOW_US;
    s->event.produced_at_us = NOW_US - 30 * HOUR_US;
    s->event.seen_at_us = NOW_US - 30 * HOUR_US;
    assert_false(plan_good(s, NOW_US).late);
    s->event.seen_at_us = NOW_US - 2 * HOUR_US; // its cause was old already
    assert_true(plan_good(s, NOW_US).late);
}

static void what_a_person_sends_again_is_never_late(void **state)
{
    Scene *s = *state;
    s->event.produced_at_us = NOW_US - 100 * HOUR_US;
    assert_true(plan_good(s, NOW_US).late);
    s->event.only = STR("remind");
    TriggerPlan plan = plan_good(s, NOW_US);
    assert_false(plan.late);
    assert_int_equal(plan.count, 1);
}

static void each_resolver_finds_its_targets(void **state)
{
    Scene *s = *state;
    s->trigger.resolver = text("recipient:who");
    TriggerPlan plan = plan_good(s, NOW_US);
    assert_int_equal(plan.targets[0].kind, TARGET_RECIPIENT);
    assert_true(str_eq(plan.targets[0].value, STR(RCP)));
    s->trigger.resolver = text("identity:guest:guest.id");
    plan = plan_good(s, NOW_US);
    assert_int_equal(plan.targets[0].kind, TARGET_IDENTITY);
    assert_int_equal(plan.targets[0].identity, IDENTITY_GUEST);
    assert_true(str_eq(plan.targets[0].value, STR("g-1")));
    s->trigger.resolver = text("recipients:all");
    plan = plan_good(s, NOW_US);
    assert_int_equal(plan.count, 2); // twice the same: one notification by its id
    assert_non_null(strstr(plan.bad_target, "entry 1 of path 'all'"));
}

// ---- named resolvers ----

static TriggerPlan plan_named(Scene *s, const char *resolver, const char *payload)
{
    read_event(s, payload, NOW_US);
    s->trigger.resolver = text(resolver);
    s->trigger.subject_path = text("");
    return plan_good(s, NOW_US);
}

static void assert_target(const TriggerPlan *plan, size_t at, TargetKind kind, const char *value)
{
    assert_true(at < plan->count);
    assert_int_equal(plan->targets[at].kind, kind);
    if (!str_eq(plan->targets[at].value, str_from(value))) {
        fail_msg("%zu: " STR_FMT, at, STR_ARG(plan->targets[at].value));
    }
}

static void the_documents_names_find_their_members_however_they_are_spelled(void **state)
{
    static const struct {
        const char *resolver, *payload, *value;
        Identity identity;
    } cases[] = {
        {"iam_subject", "{\"subject\":\"u-1\"}", "u-1", IDENTITY_USER},
        {"iam_subject", "{\"subject\":{\"id\":\"u-2\"},\"actor\":\"u-9\"}", "u-2", IDENTITY_USER},
        {"iam_subject", "{\"actorId\":17}", "17", IDENTITY_USER},
        {"iam_subject", "{\"user_id\":\"u-3\"}", "u-3", IDENTITY_USER},
        {"primary_guest", "{\"primaryGuest\":{\"id\":\"g-1\"}}", "g-1", IDENTITY_GUEST},
        {"primary_guest", "{\"guest\":{\"id\":\"g-2\"}}", "g-2", IDENTITY_GUEST},
        {"primary_guest", "{\"guests\":[{\"id\":\"g-3\"},{\"id\":\"g-4\"}]}", "g-3",
         IDENTITY_GUEST},
        {"vendor_assignee", "{\"vendorId\":\"v-1\"}", "v-1", IDENTITY_VENDOR},
        {"vendor_assignee", "{\"assignee\":{\"id\":\"v-2\"}}", "v-2", IDENTITY_VENDOR},
    };
    Scene *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TriggerPlan plan = plan_named(s, cases[i].resolver, cases[i].payload);
        assert_target(&plan, 0, TARGET_IDENTITY, cases[i].value);
        assert_int_equal(plan.targets[0].identity, cases[i].identity);
        assert_true(plan.chooses);
    }
}

static void the_first_rule_that_finds_a_recipient_counts(void **state)
{
    Scene *s = *state;
    Error err = {0};
    const char *both = "{\"guest_id\":\"g-1\",\"guest_email\":\"a@example.com\"}";
    TriggerPlan plan = plan_named(s, "primary_guest", both);
    assert_int_equal(plan.count, 2);
    assert_int_equal(trigger_choose(&plan, &s->event, s->arena, &err), TRIGGER_CHOSEN);
    assert_int_equal(plan.count, 1);
    assert_target(&plan, 0, TARGET_ADDRESS, "a@example.com"); // no recipient has the identity
    plan = plan_named(s, "primary_guest", both);
    plan.targets[0].recipient_id = STR(RCP);
    assert_int_equal(trigger_choose(&plan, &s->event, s->arena, &err), TRIGGER_CHOSEN);
    assert_int_equal(plan.count, 1);
    assert_target(&plan, 0, TARGET_IDENTITY, "g-1");
}

static void a_label_is_each_recipient_that_has_it(void **state)
{
    Scene *s = *state;
    Error err = {0};
    Str members[] = {STR(RCP), STR("rcp_01ARZ3NDEKTSV4RRFFQ69G5FAW")};
    TriggerPlan plan = plan_named(s, "tenant_admins", "{\"name\":\"A\"}");
    assert_target(&plan, 0, TARGET_LABEL, "admin");
    plan.targets[0].members = members;
    plan.targets[0].member_count = 2;
    assert_int_equal(trigger_choose(&plan, &s->event, s->arena, &err), TRIGGER_CHOSEN);
    assert_int_equal(plan.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(plan.targets[i].kind, TARGET_RECIPIENT);
        assert_true(str_eq(plan.targets[i].recipient_id, members[i]));
    }
}

static void none_and_too_many_name_the_resolver_and_the_event(void **state)
{
    Scene *s = *state;
    Error err = {0};
    TriggerPlan plan = plan_named(s, "label:night", "{\"name\":\"A\"}");
    assert_int_equal(trigger_choose(&plan, &s->event, s->arena, &err), TRIGGER_NOT_FOUND);
    assert_string_equal(
        err.text,
        "trigger 'remind': resolver 'label:night' found no recipient for event 'e-1': tenant "
        "'acme' has none with label 'night'");
    plan.targets[0].members = arena_array(s->arena, RESOLVER_LABEL_MAX + 1, sizeof(Str));
    plan.targets[0].member_count = RESOLVER_LABEL_MAX + 1;
    assert_int_equal(trigger_choose(&plan, &s->event, s->arena, &err), TRIGGER_TOO_MANY);
    assert_non_null(
        strstr(err.text, "more than 1000 recipients for event 'e-1', by label 'night'"));
    plan = plan_named(s, "iam_subject", "{\"subject\":\"u-1\"}");
    assert_int_equal(trigger_choose(&plan, &s->event, s->arena, &err), TRIGGER_NOT_FOUND);
    assert_non_null(strstr(err.text, "'iam_subject' found no recipient for event 'e-1'"));
    assert_non_null(strstr(err.text, "none with user 'u-1'"));
}

static void a_name_that_finds_nothing_in_the_event_says_what_it_sought(void **state)
{
    Scene *s = *state;
    TriggerPlan plan;
    Error err = {0};
    read_event(s, "{\"subject\":{\"name\":\"x\"}}", NOW_US);
    s->trigger.resolver = text("tenant_owner");
    assert_false(trigger_plan(&s->trigger, NULL, &s->event, NOW_US, s->arena, &plan, &err));
    assert_true(plan.unknown);
    assert_string_equal(err.text, "trigger 'remind': there is no resolver 'tenant_owner'");
    s->trigger.resolver = text("vendor_assignee");
    assert_false(trigger_plan(&s->trigger, NULL, &s->event, NOW_US, s->arena, &plan, &err));
    assert_false(plan.unknown);
    assert_non_null(strstr(err.text, "resolver 'vendor_assignee' found no recipient: event 'e-1'"));
    assert_non_null(strstr(err.text, "vendor_id"));
}

typedef struct BadCase {
    const char *resolver, *anchor, *subject;
    const char *words;
} BadCase;

static void what_fails_names_the_trigger_and_the_path(void **state)
{
    Scene *s = *state;
    static const BadCase CASES[] = {
        {"address:host.email", "", "stay.id",
         "trigger 'remind': the event has nothing at path 'host.email'"},
        {"recipient:guest.id", "", "stay.id", "not a recipient's id"},
        {"recipients:who", "", "stay.id", "not an array"},
        {"address:guest.email", "stay.end", "stay.id",
         "trigger 'remind': anchor: the event has nothing at path 'stay.end'"},
        {"address:guest.email", "guest.name", "stay.id", "not a date"},
        {"address:guest.email", "", "stay.number",
         "subject_path: the event has nothing at path 'stay.number'"},
    };
    char *obsoleted_by[] = {text("stay.cancelled")};
    s->trigger.obsoleted_by = obsoleted_by;
    s->trigger.n_obsoleted_by = 1;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        TriggerPlan plan;
        Error err = {0};
        s->trigger.resolver = text(CASES[i].resolver);
        s->trigger.anchor = text(CASES[i].anchor);
        s->trigger.subject_path = text(CASES[i].subject);
        assert_false(trigger_plan(&s->trigger, NULL, &s->event, NOW_US, s->arena, &plan, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, CASES[i].words) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
    }
}

static void an_address_that_is_none_is_reported_with_its_path(void **state)
{
    Scene *s = *state;
    s->trigger.resolver = text("address:guest.name");
    TriggerPlan plan = plan_good(s, NOW_US);
    Request request;
    Error err = {0};
    assert_false(trigger_request(&plan, &plan.targets[0], NOW_US, s->arena, &request, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "trigger 'remind', recipient at path 'guest.name': to:"));
}

// Derives from five things, and from nothing else.
static void one_source_template_recipient_and_channel_is_one_notification(void **state)
{
    Scene *s = *state;
    TriggerPlan plan = plan_good(s, NOW_US);
    Request first = request_good(s, &plan);
    Str first_key = STR_EMPTY;
    trigger_identify(&plan, &s->event, &first, s->arena, &first_key);
    Request same = first;
    same.trigger_key = STR("another");
    same.scheduled_for_us = NOW_US + HOUR_US;
    same.template_version = STR("2.0.0");
    same.variables = STR("{}");
    same.to = STR("ALICE@example.com");
    Str key = STR_EMPTY;
    trigger_identify(&plan, &s->event, &same, s->arena, &key);
    assert_string_equal(same.given_id, first.given_id);
    assert_true(str_eq(key, first_key) && key.len == EVENT_ID_LEN);
    int64_t at_ms = 0;
    assert_true(id_parse(str_from(first.given_id), "ntf_", &at_ms));
    assert_int_equal(at_ms, NOW_US / 1000);

    same.retention = RETENTION_BRIEF; // after a change: another id, and the key of the first
    trigger_identify(&plan, &s->event, &same, s->arena, &key);
    assert_int_equal(first.given_id[14], 'R');
    assert_int_equal(same.given_id[14], 'B');
    assert_true(str_eq(key, first_key));

    Request others[4] = {first, first, first, first};
    others[0].template_key = STR("other");
    others[1].to = STR("bob@example.com");
    others[2].channel = CHANNEL_SMS;
    others[3].recipient_id = STR(RCP);
    for (size_t i = 0; i < 4; i++) {
        trigger_identify(&plan, &s->event, &others[i], s->arena, &key);
        assert_string_not_equal(others[i].given_id, first.given_id);
        assert_false(str_eq(key, first_key));
    }
    DomainEvent elsewhere = s->event;
    elsewhere.tenant = STR("other");
    trigger_identify(&plan, &elsewhere, &same, s->arena, &key);
    assert_false(str_eq(key, first_key));
    elsewhere = s->event;
    DomainEvent other_type = s->event; // finding 12: the id is chosen by whoever publishes the type
    other_type.type = STR("another.type");
    trigger_identify(&plan, &other_type, &same, s->arena, &key);
    assert_false(str_eq(key, first_key));
    elsewhere.identity = STR("e-2");
    trigger_identify(&plan, &elsewhere, &same, s->arena, &key);
    assert_false(str_eq(key, first_key));
}

// Dunning steps: one template, several triggers.
static void a_triggers_key_counts_when_it_says_so(void **state)
{
    Scene *s = *state;
    TriggerPlan plan = plan_good(s, NOW_US);
    Request shared = request_good(s, &plan);
    Request first = shared;
    Request second = shared;
    Request again = shared;
    second.trigger_key = STR("remind-2");
    Str shared_key, first_key, second_key, again_key;
    trigger_identify(&plan, &s->event, &shared, s->arena, &shared_key);
    s->trigger.per_trigger = true;
    plan = plan_good(s, NOW_US);
    trigger_identify(&plan, &s->event, &first, s->arena, &first_key);
    trigger_identify(&plan, &s->event, &second, s->arena, &second_key);
    trigger_identify(&plan, &s->event, &again, s->arena, &again_key);
    assert_string_not_equal(first.given_id, shared.given_id);
    assert_string_not_equal(first.given_id, second.given_id);
    assert_string_equal(first.given_id, again.given_id);
    assert_false(str_eq(first_key, shared_key) || str_eq(first_key, second_key));
    assert_true(str_eq(first_key, again_key));
}

static void what_waits_for_a_date_supersedes_by_the_events_own_time(void **state)
{
    Scene *s = *state;
    s->trigger.anchor = text("stay.start");
    TriggerPlan plan = plan_good(s, NOW_US);
    assert_true(plan.draft.supersedes);
    assert_true(str_eq(plan.draft.cancel_key, STR("remind/s-1")));
    assert_int_equal(plan.draft.source_event_at_us, s->event.produced_at_us);
    s->event.produced_at_us = NOW_US - 30 * DAY_US; // older than a time in an id may be
    assert_int_equal(plan_good(s, NOW_US).draft.source_event_at_us, NOW_US - 30 * DAY_US);
    s->event.produced_at_us = NOW_US + 30 * DAY_US; // a clock that is ahead
    assert_int_equal(plan_good(s, NOW_US).draft.source_event_at_us, s->event.id_at_us);
    s->trigger.keep_earlier = true;
    plan = plan_good(s, NOW_US);
    assert_false(plan.draft.supersedes);
    assert_int_equal(plan.draft.cancel_key.len, 0);
}

static void a_date_moved_into_the_past_supersedes_without_a_request(void **state)
{
    Scene *s = *state;
    s->trigger.anchor = text("stay.start");
    read_event(s, "{\"stay\":{\"id\":\"s-1\",\"start\":\"2001-01-01\"}}", NOW_US + 1234567);
    TriggerPlan plan = plan_good(s, NOW_US);
    assert_true(plan.late && plan.draft.supersedes);
    BusOut out;
    assert_true(trigger_supersede(&plan, &s->event, STR("tp"), s->arena, &out, NULL));
    assert_string_equal(out.subject, "ntf.deferred.cancel.acme");
    const Stentor__V1__Deferred *deferred = (const Stentor__V1__Deferred *)event_unpack(
        &stentor__v1__deferred__descriptor, out.payload, s->arena, NULL);
    assert_string_equal(deferred->cancel->cancel_key, "remind/s-1");
    assert_int_equal(deferred->cancel->newer_at_us, NOW_US + 1234567);
    assert_int_equal(deferred->cancel->before_us, NOW_US + 1234000); // whole milliseconds, as ids
    assert_true(str_eq(str_from(deferred->cancel->newer_event_id), s->event.identity));
    read_event(s, "{\"stay\":{\"start\":\"2001-01-01\"}}", NOW_US);
    plan = plan_good(s, NOW_US); // nothing to find it by, and nothing to send: no failure
    assert_true(plan.late && !plan.draft.supersedes);
}

static void a_cancellation_names_what_the_request_was_made_under(void **state)
{
    Scene *s = *state;
    char *obsoleted_by[] = {text("stay.cancelled")};
    s->trigger.obsoleted_by = obsoleted_by;
    s->trigger.n_obsoleted_by = 1;
    TriggerPlan plan = plan_good(s, NOW_US);
    assert_true(str_eq(plan.draft.cancel_key, STR("remind/s-1")));
    read_event(s, "{\"stay\":{\"id\":\"s-1\"}}", NOW_US + 1234567);
    BusOut out;
    Error err = {0};
    assert_true(trigger_cancel(&s->trigger, &s->event, STR("tp"), s->arena, &out, &err));
    assert_string_equal(out.subject, "ntf.deferred.cancel.acme");
    assert_true(str_eq(out.traceparent, STR("tp")));
    const Stentor__V1__Deferred *deferred = (const Stentor__V1__Deferred *)event_unpack(
        &stentor__v1__deferred__descriptor, out.payload, s->arena, NULL);
    assert_string_equal(deferred->reason, "cancel");
    assert_string_equal(deferred->cancel->cancel_key, "remind/s-1");
    assert_int_equal(deferred->cancel->before_us, NOW_US + 1234000); // whole milliseconds, as ids
    assert_true(str_eq(out.event_id, str_from(deferred->meta->event_id)));
    BusOut again;
    assert_true(trigger_cancel(&s->trigger, &s->event, STR_EMPTY, s->arena, &again, &err));
    assert_true(str_eq(again.event_id, out.event_id));
    read_event(s, "{\"stay\":{\"id\":\"s-2\"}}", NOW_US);
    assert_true(trigger_cancel(&s->trigger, &s->event, STR_EMPTY, s->arena, &again, &err));
    assert_false(str_eq(again.event_id, out.event_id));
    read_event(s, "{}", NOW_US);
    assert_false(trigger_cancel(&s->trigger, &s->event, STR_EMPTY, s->arena, &again, &err));
    assert_non_null(strstr(err.text, "trigger 'remind', obsoleted_by: subject_path"));
}

// It cancels what earlier events made, and makes it again.
static void an_event_does_not_cancel_what_it_makes_itself(void **state)
{
    Scene *s = *state;
    char *obsoleted_by[] = {text("stay.confirmed")};
    s->trigger.obsoleted_by = obsoleted_by;
    s->trigger.n_obsoleted_by = 1;
    s->event.id_at_us = NOW_US + 999;
    TriggerPlan plan = plan_good(s, NOW_US);
    Request request = request_good(s, &plan);
    Str key = STR_EMPTY;
    trigger_identify(&plan, &s->event, &request, s->arena, &key);
    int64_t made_ms = 0;
    assert_true(id_parse(str_from(request.given_id), "ntf_", &made_ms));
    BusOut out;
    assert_true(trigger_cancel(&s->trigger, &s->event, STR_EMPTY, s->arena, &out, NULL));
    const Stentor__V1__Deferred *deferred = (const Stentor__V1__Deferred *)event_unpack(
        &stentor__v1__deferred__descriptor, out.payload, s->arena, NULL);
    assert_true(made_ms * 1000 >= deferred->cancel->before_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_event_becomes_a_checked_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_event_may_say_where_its_address_consented, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_it_goes_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_follows_from_a_fresh_event_is_not_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_person_sends_again_is_never_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_resolver_finds_its_targets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_documents_names_find_their_members_however_they_are_spelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_first_rule_that_finds_a_recipient_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_label_is_each_recipient_that_has_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            none_and_too_many_name_the_resolver_and_the_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_name_that_finds_nothing_in_the_event_says_what_it_sought, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_fails_names_the_trigger_and_the_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_address_that_is_none_is_reported_with_its_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            one_source_template_recipient_and_channel_is_one_notification, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_triggers_key_counts_when_it_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_waits_for_a_date_supersedes_by_the_events_own_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_date_moved_into_the_past_supersedes_without_a_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_cancellation_names_what_the_request_was_made_under, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_event_does_not_cancel_what_it_makes_itself, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
