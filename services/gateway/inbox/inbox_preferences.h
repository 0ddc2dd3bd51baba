// SPDX-License-Identifier: Apache-2.0
// GET and PUT /v1/inbox/preferences: the choices of the recipient whose inbox a token opens, those
// of the preference page, with the same effect. Only where there is a record: an address alone has
// no preferences.
#pragma once

#include "services/gateway/inbox/inbox_public.h"

bool inbox_preferences_admit(InboxPublic *inbox, HttpRequest *http); // false: answered
void inbox_preferences_handle(InboxPublic *inbox, HttpRequest *http, const InboxToken *token);
