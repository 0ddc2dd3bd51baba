// SPDX-License-Identifier: Apache-2.0
// links: svc_gateway
// Any bytes as the form and as the JSON of a preference page: choices, or a refusal that says why.
#include <stdlib.h>

#include "services/gateway/preferences/preference_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PreferenceChoice choices[CHOICES_MAX];
    PreferenceState state = {.has_record = true, .channels = {[CHANNEL_SMS] = true}};
    PreferencePlan plan;
    size_t count = preference_choices(&state, choices);
    Arena *arena = arena_new(0);
    if (preference_form_read(str_of(data, size), choices, count)) {
        preference_plan(&state, choices, count, &plan);
        require(plan.fact_count <= count);
    }
    ApiBody body = {0};
    bool ok = api_body_parse(&body, str_of(data, size), arena) &&
              preference_json_read(&body, choices, count);
    require(ok == (body.problem.status == 0));
    api_body_free(&body);
    arena_free(arena);
    return 0;
}
