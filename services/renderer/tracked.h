// SPDX-License-Identifier: Apache-2.0
// Which mails are tracked, and how: those whose From's domain has it in CONFIG. Off without such an
// entry, for a tenant without a sender of its own (the dispatcher decides their From), and for the
// category security: a link that lets in must not pass through another address. Pure.
#pragma once

#include <jansson.h>

#include "common/render/mail_domains.h"
#include "common/render/render_events.h"
#include "common/render/tracking.h"

typedef struct Tracked {
    MailLinkKey key;
    MailDomains *domains;
    Str public_url; // where the domain has no tracking_url; empty: none
} Tracked;

// Rewrites the html of the job's mail. variables: those that it was rendered with, for the links
// that stay as they are. The number of links that are tracked now.
size_t tracked_apply(
    const Tracked *tracked, const Job *job, const Sender *sender, const json_t *variables,
    Buf *html);
