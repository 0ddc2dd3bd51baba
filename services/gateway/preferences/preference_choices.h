// SPDX-License-Identifier: Apache-2.0
// What a recipient gets and may choose by the link of a mail: each category that can be opted out
// of, on each channel on which it has an address. From its preferences and the opt-outs of the
// mail's address; and what has to change so that its choices hold. Pure.
#pragma once

#include "services/gateway/recipients/recipient_events.h"

enum { CHOICES_MAX = CATEGORY_COUNT * CHANNEL_COUNT };

typedef struct PreferenceState {
    bool has_record;   // else only the address's own opt-outs count, and only e-mail is there
    bool unsubscribed; // from everything
    bool channels[CHANNEL_COUNT];
    const PersonPreference *entries;
    size_t entry_count;
    bool opted_out[CATEGORY_COUNT]; // the address, by an opt-out; of CATEGORY_NONE: every category
} PreferenceState;

typedef struct PreferenceChoice {
    Category category;
    Channel channel;
    bool on;
} PreferenceChoice;

// All that can be chosen, as it is, in the order of categories and channels. Their number.
size_t preference_choices(const PreferenceState *state, PreferenceChoice ret[CHOICES_MAX]);

// What makes `wanted` (of preference_choices, with other values of `on`) hold. Of the facts the
// recipient's id is the caller's to add; there are none without a record.
typedef struct PreferencePlan {
    PersonFact facts[CHOICES_MAX + 1];
    size_t fact_count;
    bool suppress[CATEGORY_COUNT]; // the address, of e-mails
    bool release[CATEGORY_COUNT];  // of CATEGORY_NONE: the opt-out of every category
} PreferencePlan;

void preference_plan(
    const PreferenceState *state, const PreferenceChoice *wanted, size_t count,
    PreferencePlan *ret);
