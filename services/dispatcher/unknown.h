// SPDX-License-Identifier: Apache-2.0
// What is done with a mail that may have been sent and whose outcome nobody knows: the policy of
// each channel, as STENTOR_DISPATCHER_UNKNOWN says it. Pure.
#pragma once

#include "common/base/error.h"
#include "common/model/enums.h"

typedef enum UnknownPolicy {
    UNKNOWN_RESEND, // again, with the same Message-ID
    UNKNOWN_PARK,   // left to a person
} UnknownPolicy;

typedef struct UnknownPolicies {
    UnknownPolicy of[CHANNEL_COUNT];
} UnknownPolicies;

// "park" for every channel, or "email=park,sms=resend"; channels that are not named resend.
// ERROR_CONFIG names the option, what is wrong and what is expected.
bool unknown_policies_parse(Str text, UnknownPolicies *ret, Error *err);
