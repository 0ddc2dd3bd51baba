// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/lmtp/bounce_domains.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/config/mail_domain_entry.h"

enum { DOMAIN_MAX = 253, NAME_SIZE = 33 };

typedef struct Tenant {
    uint8_t mark[BOUNCE_MARK_LEN];
    char name[NAME_SIZE];
} Tenant;

typedef struct Entry {
    char tenant[NAME_SIZE];
    char domain[DOMAIN_MAX + 1]; // the bounce domain, lower case
} Entry;

typedef struct Use {
    size_t entries;
    bool shared;       // by several tenants
    const char *first; // of an entry
} Use;

struct BounceDomains {
    Map *tenants; // name -> Tenant
    Map *marks;   // mark -> one Tenant of it (borrowed); two of a mark are looked for one by one
    Map *entries; // mail_domain_name() -> Entry
    Map *uses;    // bounce domain -> Use; made of `entries` when it is asked
    bool stale;
};

BounceDomains *bounce_domains_new(void)
{
    BounceDomains *domains = xcalloc(1, sizeof *domains);
    domains->tenants = map_new(free);
    domains->marks = map_new(NULL);
    domains->entries = map_new(free);
    domains->uses = map_new(free);
    return domains;
}

void bounce_domains_free(BounceDomains *domains)
{
    if (domains == NULL) {
        return;
    }
    map_free(domains->uses);
    map_free(domains->entries);
    map_free(domains->marks);
    map_free(domains->tenants);
    free(domains);
}

static Str mark_of(const Tenant *tenant)
{
    return str_of(tenant->mark, sizeof tenant->mark);
}

void bounce_domains_tenant_changed(BounceDomains *domains, Str tenant, Str payload)
{
    Tenant *known = map_get(domains->tenants, tenant);
    if (payload.len > 0 && known == NULL) {
        Tenant *added = xcalloc(1, sizeof *added);
        bounce_tenant_mark(tenant, added->mark);
        (void)str_to_c(tenant, added->name, sizeof added->name);
        map_put(domains->tenants, tenant, added);
        map_put(domains->marks, mark_of(added), added);
    } else if (payload.len == 0 && known != NULL) {
        if (map_get(domains->marks, mark_of(known)) == known) {
            (void)map_remove(domains->marks, mark_of(known));
        }
        (void)map_remove(domains->tenants, tenant);
    }
}

// Lower case; "" when it does not fit.
static Str fold_domain(Str domain, char out[DOMAIN_MAX + 1])
{
    (void)str_to_c(domain, out, DOMAIN_MAX + 1);
    for (char *c = out; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    return str_from(out);
}

static void put_entry(BounceDomains *domains, Str key, Str tenant, Str bounce_domain)
{
    char folded[DOMAIN_MAX + 1];
    if (fold_domain(bounce_domain, folded).len == 0) {
        (void)map_remove(domains->entries, key);
        return;
    }
    Entry *entry = xcalloc(1, sizeof *entry);
    (void)str_to_c(tenant, entry->tenant, sizeof entry->tenant);
    memcpy(entry->domain, folded, sizeof entry->domain);
    map_put(domains->entries, key, entry);
}

bool bounce_domains_changed(BounceDomains *domains, Str tenant, Str key, Str payload, Error *err)
{
    Arena *arena = arena_new(0);
    char space[MAIL_DOMAIN_NAME_SIZE];
    Str name = mail_domain_name(space, tenant, key);
    bool good = true;
    domains->stale = true;
    if (payload.len == 0) {
        (void)map_remove(domains->entries, name);
    } else {
        const Stentor__V1__MailDomain *entry = mail_domain_read(tenant, payload, arena, err);
        good = entry != NULL;
        if (good) {
            put_entry(domains, name, tenant, str_from(entry->bounce_domain));
        }
    }
    arena_free(arena);
    return good;
}

static void add_use(Map *uses, const Entry *entry)
{
    Use *use = map_get(uses, str_from(entry->domain));
    if (use == NULL) {
        use = xcalloc(1, sizeof *use);
        use->first = entry->tenant;
        map_put(uses, str_from(entry->domain), use);
    }
    use->entries++;
    use->shared = use->shared || strcmp(use->first, entry->tenant) != 0;
}

// Made again after a change only: changes come in bursts, at the start.
static const Use *find_use(const BounceDomains *domains, Str domain)
{
    BounceDomains *own = (BounceDomains *)(uintptr_t)domains;
    if (own->stale) {
        map_free(own->uses);
        own->uses = map_new(free);
        void *entry = NULL;
        Str key = STR_EMPTY;
        for (size_t i = 0; map_next(own->entries, &i, &key, &entry);) {
            add_use(own->uses, entry);
        }
        own->stale = false;
    }
    char folded[DOMAIN_MAX + 1];
    return map_get(own->uses, fold_domain(domain, folded));
}

bool bounce_domains_has(const BounceDomains *domains, Str domain)
{
    return domain.len > 0 && find_use(domains, domain) != NULL;
}

Str bounce_domains_sole_tenant(const BounceDomains *domains, Str domain)
{
    const Use *use = domain.len > 0 ? find_use(domains, domain) : NULL;
    bool sole = use != NULL && !use->shared && !str_eq(str_from(use->first), STR("platform"));
    return sole ? str_from(use->first) : STR_EMPTY;
}

Str bounce_domains_tenant_of(
    const BounceDomains *domains, const BounceKey *key, const BounceToken *token)
{
    const Tenant *tenant =
        map_get(domains->marks, str_of(token->tenant_mark, sizeof token->tenant_mark));
    if (tenant == NULL) {
        return STR_EMPTY;
    }
    if (bounce_token_check(key, token, str_from(tenant->name))) {
        return str_from(tenant->name);
    }
    void *other = NULL;
    Str name = STR_EMPTY;
    for (size_t i = 0; map_next(domains->tenants, &i, &name, &other);) {
        const Tenant *same = other;
        if (same != tenant && memcmp(same->mark, token->tenant_mark, BOUNCE_MARK_LEN) == 0 &&
            bounce_token_check(key, token, name)) {
            return name;
        }
    }
    return STR_EMPTY;
}
