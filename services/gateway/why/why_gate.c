// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/gate_trace.h"
#include "services/gateway/why/why_list.h"

// One question of the gate on its way into the list.
typedef struct Asked {
    const WhyFacts *facts;
    WhyList *list;
    const GateTraceStep *step;
    Category category;
    Channel channel;
} Asked;

static bool is_rule(const Asked *asked, const char *rule)
{
    return str_eq(asked->step->rule, str_from(rule));
}

static WhyOutcome outcome_of(GateOutcome outcome)
{
    switch (outcome) {
    case GATE_REFUSED:
        return WHY_STOPPED;
    case GATE_DEFERRED:
    case GATE_GATHERED:
        return WHY_WAITS;
    case GATE_PASSED:
    case GATE_WAIVED:
        break;
    }
    return WHY_OK;
}

typedef struct Words {
    const char *question;
    const char *passed, *refused, *deferred, *waived;
} Words;

// By GateStep; of those that differ by their rule the functions below say more.
static const Words WORDS[GATE_STEP_COUNT] = {
    [GATE_STEP_GUARDIAN] =
        {"Does a guardian get it?", "Yes, in the place of the minor", NULL, NULL, NULL},
    [GATE_STEP_TENANT] = {"May the tenant send?", "Yes", "No: it is suspended", NULL, NULL},
    [GATE_STEP_POLICY] =
        {"Does the tenant's policy allow it?", "Yes",
         "No: its notification_policy has this category switched off", NULL, NULL},
    [GATE_STEP_EXPIRY] =
        {"Is there time until it expires?", "Yes", "No: it had expired", NULL, NULL},
    [GATE_STEP_SUPPRESSION] =
        {"Is the address suppressed?", "No", "Yes", NULL,
         "Yes, by an opt-out, which does not count for this category"},
    [GATE_STEP_OPT_OUT] =
        {"Has the recipient unsubscribed from everything?", "No", "Yes", NULL,
         "Yes, which does not count for this category or priority"},
    [GATE_STEP_CONSENT] =
        {"Is there the recipient's consent?", "Yes",
         "No: marketing needs one that was granted, and there is none", NULL,
         "It was refused, which does not count for this category"},
    [GATE_STEP_PREFERENCE] =
        {"Do the recipient's preferences allow it?", "Yes",
         "No: the recipient has switched this off", NULL,
         "It is switched off, which does not count for this category"},
    [GATE_STEP_ADDRESS] =
        {"Is there an address?", "Yes",
         "No: the recipient has no active address on this channel, or is not known", NULL, NULL},
    [GATE_STEP_LIMITS] =
        {"Is there room within the limits?", "Yes", "No, and what is over them is not sent",
         "Not now: it waits for its turn", "No, but critical ones do not wait for the tenant's"},
    [GATE_STEP_SCHEDULE] =
        {"Is it for later?", NULL, NULL, "Yes: it was scheduled by its caller", NULL},
    [GATE_STEP_QUIET_HOURS] =
        {"Do quiet hours hold it up?", "No: it does not fall into them", NULL,
         "Yes: it waits for their end", "No: it is urgent, so they do not count"},
    [GATE_STEP_DIGEST] =
        {"Is it gathered into a digest?", NULL, NULL, "Yes",
         "No: it is urgent, or no template shows a digest"},
};

static const char *answer_of(const Asked *asked)
{
    const Words *words = &WORDS[asked->step->step];
    switch (asked->step->outcome) {
    case GATE_PASSED:
        return words->passed;
    case GATE_REFUSED:
        return words->refused;
    case GATE_DEFERRED:
    case GATE_GATHERED:
        return words->deferred;
    case GATE_WAIVED:
        return words->waived;
    }
    return NULL;
}

// What a rule says beyond that; NULL: no more.
static const char *answer_of_rule(const Asked *asked)
{
    static const struct {
        GateStep step;
        const char *rule, *answer;
    } said[] = {
        {GATE_STEP_GUARDIAN, "copy", "It is the guardian's own copy"},
        {GATE_STEP_POLICY, "channel", "No: its notification_policy has this channel switched off"},
        {GATE_STEP_EXPIRY, "later", "No: it would expire before it could go out"},
        {GATE_STEP_CONSENT, "caller", "Yes, as the caller said"},
        {GATE_STEP_CONSENT, "owner", "No: another recipient who has this address gave none"},
        {GATE_STEP_OPT_OUT, "owner", "Another recipient who has this address has"},
        {GATE_STEP_PREFERENCE, "owner",
         "No: another recipient who has this address has switched this off"},
        {GATE_STEP_ADDRESS, "erased", "No: the recipient's data was erased or is restricted"},
        {GATE_STEP_ADDRESS, "guardian", "No: it goes to the guardian, and there is none"},
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        if (asked->step->step == said[i].step && is_rule(asked, said[i].rule)) {
            return said[i].answer;
        }
    }
    bool refused = asked->step->step == GATE_STEP_CONSENT && asked->step->rule.len > 0 &&
                   asked->step->outcome == GATE_REFUSED;
    return refused ? "No: it was refused" : NULL;
}

// ---- evidence ----

bool why_in_force(const WhySuppression *entry, Category category, int64_t at_us)
{
    return (entry->category == CATEGORY_NONE || entry->category == category) &&
           entry->made_us <= at_us && (entry->released_us == 0 || entry->released_us > at_us) &&
           (entry->expires_us == 0 || entry->expires_us > at_us);
}

static void add_suppressions(const Asked *asked, WhyItem *item)
{
    const WhyFacts *facts = asked->facts;
    why_text(asked->list, item, "list", asked->step->rule);
    for (size_t i = 0; i < facts->suppression_count; i++) {
        const WhySuppression *entry = &facts->suppressions[i];
        if (why_in_force(entry, asked->category, facts->row->created_at_us)) {
            why_text(asked->list, item, "reason", str_from(suppression_reason_name(entry->reason)));
            why_text(asked->list, item, "suppression_id", entry->id);
            why_time(asked->list, item, "since", entry->made_us);
            why_text(asked->list, item, "made_by", entry->made_by);
            why_time(asked->list, item, "released_at", entry->released_us);
            return;
        }
    }
    if (facts->suppressions_unread) {
        why_text(asked->list, item, "entry", STR("could not be read now"));
    }
}

// "5/1" as names.
static bool read_entry(Str rule, Category *ret_category, Channel *ret_channel)
{
    Str category = STR_EMPTY;
    int64_t numbers[2] = {0};
    if (!str_split(&rule, '/', &category) || !str_to_i64(category, &numbers[0]) ||
        !str_to_i64(rule, &numbers[1]) || numbers[0] < 0 || numbers[0] >= CATEGORY_COUNT ||
        numbers[1] < 0 || numbers[1] >= CHANNEL_COUNT) {
        return false;
    }
    *ret_category = (Category)numbers[0];
    *ret_channel = (Channel)numbers[1];
    return true;
}

static void add_consent(const Asked *asked, WhyItem *item, Category category, Channel channel)
{
    const WhyPerson *person = &asked->facts->person;
    for (size_t i = 0; i < person->consent_count; i++) {
        const WhyConsent *consent = &person->consents[i];
        if (consent->category == category && consent->channel == channel) {
            why_text(asked->list, item, "now", consent->granted ? STR("granted") : STR("refused"));
            why_text(asked->list, item, "source", consent->source);
            why_time(asked->list, item, "given_at", consent->given_us);
        }
    }
}

static void add_preference(const Asked *asked, WhyItem *item, Category category, Channel channel)
{
    const WhyPerson *person = &asked->facts->person;
    for (size_t i = 0; i < person->preference_count; i++) {
        const WhyPreference *preference = &person->preferences[i];
        if (preference->category == category && preference->channel == channel) {
            why_text(asked->list, item, "now", preference->off ? STR("off") : STR("on"));
            why_time(asked->list, item, "changed_at", preference->changed_us);
        }
    }
}

static void add_entry(const Asked *asked, WhyItem *item)
{
    Category category = CATEGORY_NONE;
    Channel channel = CHANNEL_NONE;
    if (!read_entry(asked->step->rule, &category, &channel)) {
        return;
    }
    why_text(
        asked->list, item, "category",
        category == CATEGORY_NONE ? STR("any") : str_from(category_name(category)));
    why_text(
        asked->list, item, "channel",
        channel == CHANNEL_NONE ? STR("any") : str_from(channel_name(channel)));
    if (asked->step->step == GATE_STEP_CONSENT) {
        add_consent(asked, item, category, channel);
    } else {
        add_preference(asked, item, category, channel);
    }
}

// "r2200-0700": whose, and from when to when.
static void add_hours(const Asked *asked, WhyItem *item)
{
    Str rule = asked->step->rule;
    if (rule.len != 10) {
        return;
    }
    why_text(
        asked->list, item, "of", rule.ptr[0] == 'r' ? STR("the recipient") : STR("the tenant"));
    why_text(
        asked->list, item, "hours",
        str_from(arena_printf(
            asked->list->arena, "%.2s:%.2s to %.2s:%.2s", rule.ptr + 1, rule.ptr + 3, rule.ptr + 6,
            rule.ptr + 8)));
}

static void add_evidence(const Asked *asked, WhyItem *item)
{
    const WhyFacts *facts = asked->facts;
    switch ((int)asked->step->step) {
    case GATE_STEP_SUPPRESSION:
        if (asked->step->outcome != GATE_PASSED) {
            add_suppressions(asked, item);
        }
        break;
    case GATE_STEP_CONSENT:
    case GATE_STEP_PREFERENCE:
        add_entry(asked, item);
        break;
    case GATE_STEP_OPT_OUT:
        why_time(asked->list, item, "unsubscribed_at", facts->person.unsubscribed_us);
        break;
    case GATE_STEP_QUIET_HOURS:
        add_hours(asked, item);
        break;
    case GATE_STEP_LIMITS:
        why_text(asked->list, item, "limit", asked->step->rule);
        break;
    case GATE_STEP_DIGEST:
        why_text(asked->list, item, "frequency", asked->step->rule);
        break;
    case GATE_STEP_SCHEDULE:
        why_time(asked->list, item, "scheduled_for", facts->row->at_us[FOLD_SCHEDULED_FOR]);
        break;
    default:
        break;
    }
}

bool why_gate(const WhyFacts *facts, WhyList *list)
{
    GateTraceStep steps[GATE_TRACE_STEPS_MAX];
    size_t count = gate_trace_read(facts->gate_trace, steps);
    Asked asked = {.facts = facts, .list = list};
    (void)category_from_name(facts->row->text[FOLD_CATEGORY], &asked.category);
    (void)channel_from_name(facts->row->text[FOLD_CHANNEL], &asked.channel);
    for (size_t i = 0; i < count; i++) {
        asked.step = &steps[i];
        const char *answer = answer_of_rule(&asked);
        answer = answer != NULL ? answer : answer_of(&asked);
        if (answer != NULL) { // else a sign that such a question never has
            WhyItem *item = why_add(
                list, WORDS[steps[i].step].question, outcome_of(steps[i].outcome), "%s", answer);
            add_evidence(&asked, item);
        }
    }
    return count > 0;
}
