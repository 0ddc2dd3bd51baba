// SPDX-License-Identifier: Apache-2.0
// Whose inbox a token opens: one of POST /v1/inbox/tokens, or one that the tenant's own server has
// signed.
#pragma once

#include "services/gateway/inbox/inbox_public.h"

InboxVerdict inbox_bearer_check(
    const InboxPublic *inbox, const HttpRequest *http, Str token, InboxToken *ret);
const char *inbox_bearer_reason(InboxVerdict verdict);
