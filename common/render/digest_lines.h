// SPDX-License-Identifier: Apache-2.0
// What a digest says of each notification that it took up: the notification's own subject.
#pragma once

#include "common/render/render_events.h"
#include "common/render/template_cache.h"

// Adds {{subject_line}} to each item of the {{list}} that digest_variables made: the subject, else
// the title, that the item's template version gives with the item's variables, in the language of
// the digest's request (else `sender`'s). An item has none when its version is gone or broken, when
// it cannot be rendered, or when context->meter is over. One that the caller gave stays.
// The versions are looked up in `templates`, so a version found before is no longer valid.
void digest_subject_lines(
    TemplateCache *templates, const Job *job, const Sender *sender, const ContentContext *context,
    json_t *variables);
