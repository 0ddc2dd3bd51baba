// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/tracked.h"

static Str variable(const json_t *variables, const char *name)
{
    return str_from(json_string_value(json_object_get(variables, name)));
}

static Str below(const Job *job, Str url, const char *path)
{
    return url.len == 0 ? STR_EMPTY
                        : str_from(arena_printf(job->arena, STR_FMT "%s", STR_ARG(url), path));
}

size_t tracked_apply(
    const Tracked *tracked, const Job *job, const Sender *sender, const json_t *variables,
    Buf *html)
{
    const Request *request = job->request;
    Str tenant = str_from(request->meta->tenant);
    const MailDomain *domain = mail_domains_of(tracked->domains, tenant, str_from(sender->address));
    if (domain == NULL || (!domain->track_clicks && !domain->track_opens) ||
        request->channel != STENTOR__V1__CHANNEL__CHANNEL_EMAIL ||
        request->category == STENTOR__V1__CATEGORY__CATEGORY_SECURITY) {
        return 0;
    }
    Str own = str_from(domain->tracking_url);
    Str url = own.len > 0 ? own : tracked->public_url;
    // A caller's own unsubscribe link is one too.
    const Str untouched[] = {
        variable(variables, "unsubscribe_url"),
        variable(variables, "preferences_url"),
        below(job, tracked->public_url, "/v1/opt-out/"),
        below(job, tracked->public_url, "/v1/preferences/"),
        below(job, url, "/v1/click/"),
    };
    Tracking tracking = {
        .key = &tracked->key,
        .url = url,
        .tenant = tenant,
        .notification_id = str_from(request->meta->notification_id),
        .who = request->address_hash.len == ADDRESS_HASH_LEN ? request->address_hash.data : NULL,
        .issued_at_us =
            request->scheduled_for_us > 0 ? request->scheduled_for_us : request->accepted_at_us,
        .clicks = domain->track_clicks,
        .opens = domain->track_opens,
        .untouched = untouched,
        .untouched_count = sizeof untouched / sizeof *untouched,
    };
    return tracking_apply(&tracking, html);
}
