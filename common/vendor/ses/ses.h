// SPDX-License-Identifier: Apache-2.0
// Amazon SES, API v2: SendEmail with the whole mail (Content.Raw), signed with Signature Version 4.
// The credential's id is the access key's, its secret the secret access key, or both with a session
// token (ses_key.h). Settings: region; configuration_set (needed for events), bounce_domain (return
// paths in it become FeedbackForwardingEmailAddress). No idempotency keys, and it cannot be asked:
// EmailTags come back in its events. Source: docs.aws.amazon.com/ses/latest/APIReference-V2,
// SendEmail and GetAccount.
#pragma once

#include "common/vendor/vendor_api.h"

extern const VendorApi ses_api;

bool ses_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
// GetAccount, whose answer also has the quota and the rate.
bool ses_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
// Its SendQuota: MaxSendRate, Max24HourSend (-1: no limit) and SentLast24Hours.
bool ses_quota(const VendorAnswer *answer, Arena *arena, VendorQuota *ret);
void ses_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
