// SPDX-License-Identifier: Apache-2.0
// Additions to a mail that its recipient may opt out of (every category but transactional, security
// and compliance): a one-click unsubscribe link, and the sender's physical address at its end. A
// tenant may want its address in every e-mail. Pure.
#pragma once

#include "common/codec/opt_out.h"
#include "common/model/suppressions.h"
#include "common/render/public_url.h"
#include "common/render/render_events.h"

typedef struct OptOutLinks {
    OptOutKey key;
    Str public_url; // without a '/' at its end; empty: no links are made
} OptOutLinks;

// ERROR_CONFIG when `url` is neither empty nor an http or https URL that is fit for a header.
bool opt_out_links_init(
    OptOutLinks *links, const MasterKey *master, const char *url, Arena *arena, Error *err);

// "<public URL>/v1/opt-out/oot_..." in the job's arena; "" when the mail carries none. The same
// request always has the same link.
const char *opt_out_link(const OptOutLinks *links, const Job *job);

// The page with the recipient's choices, by the same token: "<public URL>/v1/preferences/oot_...";
// "" when `link`, of opt_out_link, is.
const char *preferences_link(const OptOutLinks *links, const char *link, Arena *arena);

// Sets {{unsubscribe_url}}, {{preferences_url}} and {{physical_address}}; without a link or an
// address they are empty, unless the caller gave some. A link is never the caller's when there is
// one.
void footer_variables(
    json_t *variables, const char *link, const char *preferences, const char *physical_address);

// Does the mail of this request show the physical address? An e-mail that its recipient may opt out
// of does, whether or not there is a public URL for its link; `in_every`: all e-mails of the tenant
// do.
bool footer_is_wanted(const Request *request, bool in_every);

// Appends the address to the html (before </body>) and to the text, unless the variant of `locale`
// or a partial has it already. FAILURE_RENDER: no room.
bool footer_add(
    Draft *draft, const Stentor__V1__TemplateVersion *version, const char *locale,
    const char *physical_address, RenderFailure *failure);
