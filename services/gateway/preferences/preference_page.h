// SPDX-License-Identifier: Apache-2.0
// The preference page as HTML and as JSON, and what comes back from either. It runs no script, and
// shows only text of ours: nothing of a request, and nothing of a recipient but its choices. Pure.
#pragma once

#include "common/api/api_json.h"
#include "common/base/buf.h"
#include "services/gateway/preferences/preference_choices.h"

enum { PREFERENCE_BODY_MAX = 8 * 1024 };

void preference_page_html(Buf *out, const PreferenceChoice *choices, size_t count, bool stored);
void preference_page_json(Buf *out, const PreferenceChoice *choices, size_t count);

// A form of the page: "on=marketing.email" for each that is chosen, "do=save", "do=none" (all off)
// or "do=all". A choice that the form does not name is off. false: it is no such form.
bool preference_form_read(Str form, PreferenceChoice *choices, size_t count);
// {"preferences": [{"category": "marketing", "channel": "email", "on": false}]}: what it does not
// name stays. false: the body's problem names the field.
bool preference_json_read(ApiBody *body, PreferenceChoice *choices, size_t count);
