// SPDX-License-Identifier: Apache-2.0
// For ses_callback.c.
#pragma once

#include "common/vendor/ses/sns.h"

enum { SNS_REPEATS_S = 3900 }; // it repeats for an hour, with the time of the first

bool sns_verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key);
