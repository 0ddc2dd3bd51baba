// SPDX-License-Identifier: Apache-2.0
// The policy of each channel for a mail that may have been sent and whose outcome is unknown, as
// set by STENTOR_DISPATCHER_UNKNOWN. Pure.
#pragma once

#include "common/base/error.h"
#include "common/model/enums.h"

typedef enum UnknownPolicy {
    UNKNOWN_RESEND, // send it again, with the same Message-ID
    UNKNOWN_PARK,   // make a dead letter for an operator
} UnknownPolicy;

typedef struct UnknownPolicies {
    UnknownPolicy of[CHANNEL_COUNT];
} UnknownPolicies;

// "park" for every channel, or "email=park,sms=resend"; channels that are not named resend.
// ERROR_CONFIG names the option, what is wrong and what is expected.
bool unknown_policies_parse(Str text, UnknownPolicies *ret, Error *err);
