// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/unknown.h"

static bool policy_from_name(Str name, UnknownPolicy *ret)
{
    *ret = str_eq(name, STR("park")) ? UNKNOWN_PARK : UNKNOWN_RESEND;
    return *ret == UNKNOWN_PARK || str_eq(name, STR("resend"));
}

static bool read_entry(
    Str entry, bool named[CHANNEL_COUNT], UnknownPolicies *policies, const char **ret_what)
{
    Channel channel = CHANNEL_NONE;
    Str name = STR_EMPTY;
    bool parted = str_split(&entry, '=', &name) && entry.ptr != NULL;
    if (!parted || !channel_from_name(str_trim(name), &channel)) {
        *ret_what = "a part does not have the form <channel>=<policy>";
        return false;
    }
    if (!policy_from_name(str_trim(entry), &policies->of[channel])) {
        *ret_what = "a policy is neither resend nor park";
        return false;
    }
    *ret_what = "a channel is named twice";
    bool first = !named[channel];
    named[channel] = true;
    return first;
}

bool unknown_policies_parse(Str text, UnknownPolicies *ret, Error *err)
{
    UnknownPolicies policies = {0};
    bool named[CHANNEL_COUNT] = {false};
    UnknownPolicy all = UNKNOWN_RESEND;
    if (policy_from_name(str_trim(text), &all)) {
        for (int channel = 0; channel < CHANNEL_COUNT; channel++) {
            policies.of[channel] = all;
        }
        *ret = policies;
        return true;
    }
    Str rest = text;
    Str entry;
    const char *what = "";
    while (str_split(&rest, ',', &entry)) {
        if (!read_entry(entry, named, &policies, &what)) {
            return error_set(
                err, ERROR_CONFIG,
                "STENTOR_DISPATCHER_UNKNOWN is '%.*s': %s; expected resend, park, or channels like "
                "email=park,sms=resend",
                STR_ARG(str_slice(text, 0, 64)), what);
        }
    }
    *ret = policies;
    return true;
}
