// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/mail_domains_api.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/api/config_change.h"
#include "common/api/config_write.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/credential/reference.h"
#include "common/mime/dkim.h"
#include "common/model/sender_domain.h"
#include "common/render/public_url.h"

enum { ALGORITHM_MAX = 32 };

typedef Stentor__V1__MailDomain MailDomainEntry;

typedef struct Kept {
    uint64_t sequence;
    size_t len;
    char bytes[];
} Kept;

struct MailDomainsApi {
    Bus *bus;
    Map *entries; // "<tenant>/<domain>" -> Kept
};

typedef struct Change {
    ConfigChange base; // first
    MailDomainEntry entry;
} Change;

MailDomainsApi *mail_domains_api_new(Bus *bus)
{
    MailDomainsApi *api = xcalloc(1, sizeof *api);
    api->bus = bus;
    api->entries = map_new(free);
    return api;
}

void mail_domains_api_free(MailDomainsApi *api)
{
    if (api != NULL) {
        map_free(api->entries);
        free(api);
    }
}

// ---- what is known ----

void mail_domains_api_changed(
    MailDomainsApi *api, Str tenant, Str domain, Str payload, uint64_t sequence)
{
    char space[MAIL_DOMAIN_NAME_SIZE];
    Str path = mail_domain_name(space, tenant, domain);
    if (payload.len == 0) {
        (void)map_remove(api->entries, path);
        return;
    }
    Kept *kept = xmalloc(sizeof *kept + payload.len);
    kept->sequence = sequence;
    kept->len = payload.len;
    memcpy(kept->bytes, payload.ptr, payload.len);
    map_put(api->entries, path, kept);
}

static const MailDomainEntry *unpack(const ApiCall *call, const Kept *kept)
{
    return mail_domain_read(
        str_from(call->tenant), str_of(kept->bytes, kept->len), call->http->arena, NULL);
}

// ---- answers ----

static json_t *show_keys(const MailDomainEntry *entry, Arena *arena)
{
    json_t *list = json_array();
    for (size_t i = 0; i < entry->n_dkim; i++) {
        const Stentor__V1__DkimKey *key = entry->dkim[i];
        (void)json_array_append_new(
            list, json_pack(
                      "{s:s,s:s,s:s,s:s}", "selector", key->selector, "algorithm", key->algorithm,
                      "reference", key->reference, "dns_name",
                      arena_printf(arena, "%s._domainkey.%s", key->selector, entry->domain)));
    }
    return list;
}

static json_t *show(const MailDomainEntry *entry, Arena *arena)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(entry->updated_at_us, at);
    return json_pack(
        "{s:s,s:o,s:s,s:s,s:b,s:b,s:s,s:s}", "domain", entry->domain, "dkim",
        show_keys(entry, arena), "bounce_domain", entry->bounce_domain, "tracking_url",
        entry->tracking_url, "track_opens", entry->track_opens, "track_clicks", entry->track_clicks,
        "updated_at", at, "updated_by", entry->updated_by);
}

static void answer_unknown(ApiCall *call)
{
    Str domain = str_slice(call->params[0], 0, 100);
    api_answer_missing(
        call, arena_printf(call->http->arena, "mail domain '" STR_FMT "'", STR_ARG(domain)));
}

// ---- reading ----

static int by_domain(const void *a, const void *b)
{
    return strcmp(
        (*(const MailDomainEntry *const *)a)->domain, (*(const MailDomainEntry *const *)b)->domain);
}

static size_t count_of(const MailDomainsApi *api, const char *tenant)
{
    size_t count = 0;
    Str path;
    void *value;
    Str own = str_from(tenant);
    for (size_t i = 0; map_next(api->entries, &i, &path, &value);) {
        count += path.len > own.len && str_starts(path, own) && path.ptr[own.len] == '/' ? 1 : 0;
    }
    return count;
}

static void get_domains(ApiCall *call)
{
    const MailDomainsApi *api = call->ctx;
    Arena *arena = call->http->arena;
    Page page;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    Str prefix = str_from(arena_printf(arena, "%s/", call->tenant));
    const MailDomainEntry **all =
        arena_array(arena, map_count(api->entries) + 1, sizeof(MailDomainEntry *));
    size_t count = 0;
    Str path;
    void *value;
    for (size_t i = 0; map_next(api->entries, &i, &path, &value);) {
        bool wanted = str_starts(path, prefix) &&
                      str_cmp(str_slice(path, prefix.len, path.len), page.after) > 0;
        const MailDomainEntry *entry = wanted ? unpack(call, value) : NULL;
        if (entry != NULL) {
            all[count++] = entry;
        }
    }
    qsort(all, count, sizeof(MailDomainEntry *), by_domain);
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < page.limit; i++) {
        (void)json_array_append_new(list, show(all[i], arena));
    }
    page_answer(call, list, count > page.limit ? str_from(all[page.limit - 1]->domain) : STR_EMPTY);
}

static void get_domain(ApiCall *call)
{
    const MailDomainsApi *api = call->ctx;
    char space[MAIL_DOMAIN_NAME_SIZE];
    const Kept *kept =
        map_get(api->entries, mail_domain_name(space, str_from(call->tenant), call->params[0]));
    const MailDomainEntry *entry = kept != NULL ? unpack(call, kept) : NULL;
    if (entry == NULL) {
        answer_unknown(call);
        return;
    }
    precondition_tag(call, kept->sequence);
    api_answer_json(call, 200, show(entry, call->http->arena));
}

// ---- what may be put ----

static void take_key(ApiBody *body, json_t *object, Stentor__V1__DkimKey *key, const char *at)
{
    ApiBody inside = api_body_inside(body, object, at);
    Str selector = STR_EMPTY;
    Str algorithm = STR("rsa-sha256");
    Str reference = STR_EMPTY;
    Reference parsed;
    Error err = {0};
    (void)api_read_text(&inside, "selector", DKIM_SELECTOR_MAX, &selector);
    (void)api_read_text(&inside, "algorithm", ALGORITHM_MAX, &algorithm);
    (void)api_read_text(&inside, "reference", REFERENCE_MAX, &reference);
    (void)api_body_end(&inside);
    if (!dkim_is_selector(selector)) {
        (void)api_body_fail(&inside, "selector", "required: labels of DNS, such as 's1'");
    }
    if (dkim_algorithm_from_name(algorithm) == DKIM_NONE) {
        (void)api_body_fail(&inside, "algorithm", "'rsa-sha256' or 'ed25519-sha256'");
    }
    if (!reference_parse(reference, &parsed, &err)) {
        (void)api_body_fail(&inside, "reference", "%s", err.text);
    }
    stentor__v1__dkim_key__init(key);
    key->selector = arena_cstr(body->arena, selector);
    key->algorithm = arena_cstr(body->arena, algorithm);
    key->reference = arena_cstr(body->arena, reference);
    (void)api_body_inside_end(body, &inside);
}

static void check_selectors(ApiBody *body, const MailDomainEntry *entry)
{
    for (size_t i = 0; i < entry->n_dkim; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(entry->dkim[i]->selector, entry->dkim[k]->selector) == 0) {
                (void)api_body_fail(
                    body, "dkim", "selector '%s' is there twice", entry->dkim[i]->selector);
            }
        }
    }
}

static void take_keys(ApiBody *body, MailDomainEntry *entry)
{
    json_t *list = NULL;
    if (!api_read_array(body, "dkim", MAIL_DOMAIN_KEYS_MAX, &list) || list == NULL) {
        return;
    }
    size_t count = json_array_size(list);
    entry->dkim = arena_array(body->arena, count + 1, sizeof *entry->dkim);
    for (size_t i = 0; i < count; i++) {
        const char *at = arena_printf(body->arena, "dkim[%zu].", i);
        if (!json_is_object(json_array_get(list, i))) {
            (void)api_body_fail(body, "dkim", "item %zu is not an object", i + 1);
            return;
        }
        entry->dkim[entry->n_dkim] = arena_alloc(body->arena, sizeof **entry->dkim);
        take_key(body, json_array_get(list, i), entry->dkim[entry->n_dkim++], at);
    }
    check_selectors(body, entry);
}

// One domain, no "*.": in lower case, as A-labels.
static bool read_name(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    if (str_starts(text, STR("*."))) {
        (void)str_to_c(STR("one domain, without '*.'"), reason, ADDRESS_REASON_SIZE);
        return false;
    }
    return sender_domain_parse(text, arena, ret, reason);
}

static void take_places(ApiBody *body, MailDomainEntry *entry)
{
    char reason[ADDRESS_REASON_SIZE];
    Str bounces = STR_EMPTY;
    Str url = STR_EMPTY;
    Error err = {0};
    (void)api_read_text(body, "bounce_domain", ADDRESS_MAX, &bounces);
    (void)api_read_text(body, "tracking_url", PUBLIC_URL_MAX, &url);
    if (bounces.len > 0 && !read_name(bounces, body->arena, &bounces, reason)) {
        (void)api_body_fail(body, "bounce_domain", "%s", reason);
    }
    if (!public_url_read(arena_cstr(body->arena, url), body->arena, &url, &err)) {
        (void)api_body_fail(body, "tracking_url", "an address such as 'https://links.example.com'");
    }
    bool opens = false;
    bool clicks = false;
    (void)api_read_bool(body, "track_opens", &opens);
    (void)api_read_bool(body, "track_clicks", &clicks);
    entry->bounce_domain = arena_cstr(body->arena, bounces);
    entry->tracking_url = arena_cstr(body->arena, url);
    entry->track_opens = opens;
    entry->track_clicks = clicks;
}

// false: answered.
static bool read_entry(Change *change)
{
    ApiBody body = {0};
    ApiCall *call = change->base.call;
    MailDomainEntry *entry = &change->entry;
    stentor__v1__mail_domain__init(entry);
    entry->tenant = call->tenant;
    entry->domain = arena_cstr(call->http->arena, change->base.key);
    entry->updated_at_us = call->http->received_at_us;
    entry->updated_by = arena_cstr(call->http->arena, call->key_id);
    bool ok = api_body_parse(&body, call->http->body, call->http->arena);
    if (ok) {
        take_keys(&body, entry);
        take_places(&body, entry);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- changing ----

static bool take_stored(ConfigChange *base, Str payload, uint64_t sequence)
{
    mail_domains_api_changed(
        base->call->ctx, str_from(base->call->tenant), base->key, payload, sequence);
    return true;
}

// But for who put it and when, which stay when nothing else differs.
static bool make_put(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    Change *change = (Change *)base;
    Arena *arena = base->call->http->arena;
    const MailDomainEntry *old =
        there.len == 0 ? NULL : mail_domain_read(str_from(base->call->tenant), there, arena, NULL);
    *ret = &change->entry.base;
    if (old != NULL) {
        MailDomainEntry same = change->entry;
        same.updated_at_us = old->updated_at_us;
        same.updated_by = old->updated_by;
        change->entry = config_is_same(&same.base, there, arena) ? same : change->entry;
    }
    return true;
}

static void answer_put(ConfigChange *base, Str payload)
{
    (void)payload;
    const Change *change = (const Change *)base;
    api_answer_json(
        base->call, base->stands.len == 0 ? 201 : 200,
        show(&change->entry, base->call->http->arena));
}

// NULL: answered.
static Change *new_change(ApiCall *call)
{
    const MailDomainsApi *api = call->ctx;
    Arena *arena = call->http->arena;
    char reason[ADDRESS_REASON_SIZE];
    Str domain = STR_EMPTY;
    if (!read_name(call->params[0], arena, &domain, reason)) {
        (void)api_refuse_field(call, "domain", "%s", reason);
        return NULL;
    }
    Change *change =
        (Change *)config_change_new(call, sizeof *change, api->bus, MAIL_DOMAIN_KIND, domain);
    change->base.take = take_stored;
    return change;
}

static void put_domain(ApiCall *call)
{
    Change *change = new_change(call);
    if (change == NULL || !read_entry(change)) {
        return;
    }
    if (count_of(call->ctx, call->tenant) >= MAIL_DOMAINS_OF_TENANT_MAX) {
        (void)api_refuse_field(
            call, "domain", "the tenant has %d mail domains; delete one first",
            MAIL_DOMAINS_OF_TENANT_MAX);
        return;
    }
    change->base.make = make_put;
    change->base.answer = answer_put;
    config_change_run(&change->base);
}

static void delete_domain(ApiCall *call)
{
    Change *change = new_change(call);
    if (change != NULL) {
        config_change_remove(&change->base, answer_unknown);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/mail-domains", SCOPE_TENANTS_OPERATE, get_domains, "limit cursor", false},
    {"GET", "/v1/mail-domains/{}", SCOPE_TENANTS_OPERATE, get_domain, NULL, false},
    {"PUT", "/v1/mail-domains/{}", SCOPE_TENANTS_OPERATE, put_domain, NULL, true},
    {"DELETE", "/v1/mail-domains/{}", SCOPE_TENANTS_OPERATE, delete_domain, NULL, true},
};

void mail_domains_api_add(Api *api, MailDomainsApi *domains)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], domains);
}
