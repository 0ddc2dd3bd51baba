// SPDX-License-Identifier: Apache-2.0
// One past request with the content that was frozen and with the new one. Pure: what CONFIG holds
// is put in, the recipient's key is an argument.
#pragma once

#include "common/render/render_events.h"
#include "common/replay/shadow/shadow.h"

typedef struct ShadowContent ShadowContent;

ShadowContent *shadow_content_new(const ShadowPlan *plan);
void shadow_content_free(ShadowContent *content);
// An entry of CONFIG; those of other kinds and templates are passed over.
bool shadow_content_put(
    ShadowContent *content, Str kind, Str tenant, Str key, Str payload, Error *err);
// Once CONFIG is read: did any version get the new content? ERROR_CONFIG says what is not there.
bool shadow_content_found(ShadowContent *content, Error *err);
// Counts the request in `tally`. false with ERROR_PERMANENT when the new content is no template:
// there is nothing to compare then. `scratch` is the caller's to reset.
bool shadow_content_compare(
    ShadowContent *content, const Job *job, Arena *scratch, ShadowTally *tally, Error *err);
