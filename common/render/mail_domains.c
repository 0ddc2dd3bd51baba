// SPDX-License-Identifier: Apache-2.0
#include "common/render/mail_domains.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/render/public_url.h"

struct MailDomains {
    Map *by_name;    // "<tenant>/<domain>" -> MailDomain
    Map *by_subject; // "<tenant>/<key>" -> the name above: an empty message does not say which
};

static void free_domain(void *value)
{
    MailDomain *domain = value;
    free(domain->tracking_url);
    free(domain);
}

MailDomains *mail_domains_new(void)
{
    MailDomains *domains = xcalloc(1, sizeof *domains);
    domains->by_name = map_new(free_domain);
    domains->by_subject = map_new(free);
    return domains;
}

void mail_domains_free(MailDomains *domains)
{
    if (domains != NULL) {
        map_free(domains->by_name);
        map_free(domains->by_subject);
        free(domains);
    }
}

static void remove_of(MailDomains *domains, Str subject)
{
    const char *name = map_get(domains->by_subject, subject);
    if (name != NULL) {
        (void)map_remove(domains->by_name, str_from(name));
        (void)map_remove(domains->by_subject, subject);
    }
}

static bool take(
    MailDomains *domains, const Stentor__V1__MailDomain *entry, Str subject, Arena *arena,
    Error *err)
{
    char text[MAIL_DOMAIN_NAME_SIZE];
    Str name = mail_domain_name(text, str_from(entry->tenant), str_from(entry->domain));
    Str url = STR_EMPTY;
    if (name.len == 0) {
        return error_set(err, ERROR_PERMANENT, "'domain' is too long");
    }
    if (!public_url_read(entry->tracking_url, arena, &url, NULL)) {
        return error_set(
            err, ERROR_PERMANENT, "'tracking_url' of domain '%.100s' is no https:// URL",
            entry->domain);
    }
    remove_of(domains, subject);
    MailDomain *domain = xcalloc(1, sizeof *domain);
    domain->tracking_url = xstrdup(arena_cstr(arena, url));
    domain->track_opens = entry->track_opens;
    domain->track_clicks = entry->track_clicks;
    map_put(domains->by_name, name, domain);
    map_put(domains->by_subject, subject, xstrdup(text));
    return true;
}

bool mail_domains_put(MailDomains *domains, Str tenant, Str key, Str payload, Error *err)
{
    char text[MAIL_DOMAIN_NAME_SIZE];
    Str subject = mail_domain_name(text, tenant, key);
    if (subject.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the subject is too long");
    }
    if (payload.len == 0) {
        remove_of(domains, subject);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__MailDomain *entry = mail_domain_read(tenant, payload, arena, err);
    bool ok = entry != NULL && take(domains, entry, subject, arena, err);
    arena_free(arena);
    return ok;
}

static const MailDomain *find(const MailDomains *domains, Str tenant, Str domain)
{
    char text[MAIL_DOMAIN_NAME_SIZE];
    Str name = mail_domain_name(text, tenant, domain);
    return name.len > 0 ? map_get(domains->by_name, name) : NULL;
}

const MailDomain *mail_domains_of(const MailDomains *domains, Str tenant, Str address)
{
    ptrdiff_t at = -1;
    for (size_t i = 0; i < address.len; i++) {
        at = address.ptr[i] == '@' ? (ptrdiff_t)i : at;
    }
    if (at < 0 || (size_t)at + 1 >= address.len) {
        return NULL;
    }
    Str domain = str_slice(address, (size_t)at + 1, address.len);
    const MailDomain *own = find(domains, tenant, domain);
    return own != NULL ? own : find(domains, STR("platform"), domain);
}
