// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/preferences/preference_choices.h"

#include "common/model/suppressions.h"

// The most specific entry wins, as in the gate; NULL: there is none.
static const PersonPreference *entry_of(
    const PreferenceState *state, Category category, Channel channel)
{
    const PersonPreference *best = NULL;
    int best_rank = -1;
    for (size_t i = 0; i < state->entry_count; i++) {
        const PersonPreference *entry = &state->entries[i];
        bool fits = (entry->category == category || entry->category == CATEGORY_NONE) &&
                    (entry->channel == channel || entry->channel == CHANNEL_NONE);
        int rank = 2 * (entry->category != CATEGORY_NONE) + (entry->channel != CHANNEL_NONE);
        if (fits && rank > best_rank) {
            best = entry;
            best_rank = rank;
        }
    }
    return best;
}

static bool is_on(const PreferenceState *state, Category category, Channel channel)
{
    const PersonPreference *entry = entry_of(state, category, channel);
    bool opted_out =
        channel == CHANNEL_EMAIL && (state->opted_out[category] || state->opted_out[CATEGORY_NONE]);
    return !state->unsubscribed && !opted_out && (entry == NULL || !entry->off);
}

size_t preference_choices(const PreferenceState *state, PreferenceChoice ret[CHOICES_MAX])
{
    size_t count = 0;
    for (int category = CATEGORY_NONE + 1; category < CATEGORY_COUNT; category++) {
        for (int channel = CHANNEL_NONE + 1; channel < CHANNEL_COUNT; channel++) {
            bool there = state->channels[channel] || channel == CHANNEL_EMAIL;
            if (there && !category_ignores_opt_out((Category)category)) {
                ret[count++] = (PreferenceChoice){
                    .category = (Category)category,
                    .channel = (Channel)channel,
                    .on = is_on(state, (Category)category, (Channel)channel),
                };
            }
        }
    }
    return count;
}

// ---- what changes ----

// How often stays as it was.
static void add_preference(
    const PreferenceState *state, const PreferenceChoice *choice, PreferencePlan *plan)
{
    const PersonPreference *was = entry_of(state, choice->category, choice->channel);
    PersonFact *fact = &plan->facts[plan->fact_count++];
    *fact = (PersonFact){.part = PERSON_PREFERENCE};
    fact->preference = was != NULL ? *was : (PersonPreference){.frequency = FREQUENCY_IMMEDIATE};
    fact->preference.category = choice->category;
    fact->preference.channel = choice->channel;
    fact->preference.off = !choice->on;
}

static bool any_on(const PreferenceChoice *wanted, size_t count, Channel channel)
{
    for (size_t i = 0; i < count; i++) {
        if (wanted[i].on && (channel == CHANNEL_NONE || wanted[i].channel == channel)) {
            return true;
        }
    }
    return false;
}

// `widens`: an opt-out of every category ends, so each one that stays off needs its own.
static void plan_address(
    const PreferenceState *state, const PreferenceChoice *choice, bool widens, PreferencePlan *plan)
{
    Category category = choice->category;
    bool out = state->opted_out[category];
    plan->release[category] = choice->on && out;
    plan->suppress[category] = !choice->on && !out && (widens || !state->opted_out[CATEGORY_NONE]);
}

void preference_plan(
    const PreferenceState *state, const PreferenceChoice *wanted, size_t count, PreferencePlan *ret)
{
    *ret = (PreferencePlan){.fact_count = 0};
    bool returns = state->has_record && state->unsubscribed && any_on(wanted, count, CHANNEL_NONE);
    bool widens = state->opted_out[CATEGORY_NONE] && any_on(wanted, count, CHANNEL_EMAIL);
    if (returns) {
        ret->facts[ret->fact_count++] =
            (PersonFact){.part = PERSON_UNSUBSCRIPTION, .unsubscribed = false};
    }
    ret->release[CATEGORY_NONE] = widens;
    for (size_t i = 0; i < count; i++) {
        const PreferenceChoice *choice = &wanted[i];
        const PersonPreference *entry = entry_of(state, choice->category, choice->channel);
        bool said_on = entry == NULL || !entry->off;
        if (state->has_record && said_on != choice->on && (returns || !state->unsubscribed)) {
            add_preference(state, choice, ret);
        }
        if (choice->channel == CHANNEL_EMAIL) {
            plan_address(state, choice, widens, ret);
        }
    }
}
