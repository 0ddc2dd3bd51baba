// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/dress/send_domains.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/model/sender_domain.h"
#include "stentor/v1/config.pb-c.h"

enum { NAME_SIZE = 300, REASON_SIZE = 200 };
static const int64_t READ_AGAIN_US = 60 * 1000000LL; // a good key
static const int64_t TRY_AGAIN_US = 2 * 1000000LL;   // one that could not be read

typedef struct SendKey {
    char *selector;
    char *reference;
    DkimAlgorithm algorithm;
    DkimKey *key;          // NULL: never read
    int64_t read_at_us;    // 0: not tried yet
    char why[REASON_SIZE]; // the last failure; "": none
} SendKey;

struct SendDomain {
    char *domain;
    char *bounce_domain;
    SendKey keys[SEND_DOMAIN_KEYS_MAX];
    size_t key_count;
};

struct SendDomains {
    Map *by_name; // "<tenant>/<domain>" -> SendDomain
    Arena *scratch;
};

static void free_domain(void *value)
{
    SendDomain *domain = value;
    for (size_t i = 0; i < domain->key_count; i++) {
        free(domain->keys[i].selector);
        free(domain->keys[i].reference);
        dkim_key_free(domain->keys[i].key);
    }
    free(domain->domain);
    free(domain->bounce_domain);
    free(domain);
}

SendDomains *send_domains_new(void)
{
    SendDomains *domains = xcalloc(1, sizeof *domains);
    domains->by_name = map_new(free_domain);
    domains->scratch = arena_new(0);
    return domains;
}

void send_domains_free(SendDomains *domains)
{
    if (domains != NULL) {
        map_free(domains->by_name);
        arena_free(domains->scratch);
        free(domains);
    }
}

// In lower case; empty: too long.
static Str name_of(Str tenant, Str domain, char out[NAME_SIZE])
{
    size_t len = tenant.len + 1 + domain.len;
    if (len > NAME_SIZE) {
        return STR_EMPTY;
    }
    memcpy(out, tenant.ptr, tenant.len);
    out[tenant.len] = '/';
    for (size_t i = 0; i < domain.len; i++) {
        char c = domain.ptr[i];
        out[tenant.len + 1 + i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return str_of(out, len);
}

// ---- configuration ----

static SendDomain *make_domain(const Stentor__V1__MailDomain *entry)
{
    SendDomain *domain = xcalloc(1, sizeof *domain);
    domain->domain = xstrdup(entry->domain);
    domain->bounce_domain = xstrdup(entry->bounce_domain);
    for (size_t i = 0; i < entry->n_dkim && i < SEND_DOMAIN_KEYS_MAX; i++) {
        domain->keys[domain->key_count++] = (SendKey){
            .selector = xstrdup(entry->dkim[i]->selector),
            .reference = xstrdup(entry->dkim[i]->reference),
            .algorithm = dkim_algorithm_from_name(str_from(entry->dkim[i]->algorithm)),
        };
    }
    return domain;
}

bool send_domains_changed(SendDomains *domains, Str tenant, Str key, Str payload, Error *err)
{
    char space[NAME_SIZE];
    Str name = name_of(tenant, key, space);
    if (name.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the domain's name is too long");
    }
    if (payload.len == 0) {
        (void)map_remove(domains->by_name, name);
        return true;
    }
    arena_reset(domains->scratch);
    const Stentor__V1__MailDomain *entry = (const void *)event_unpack(
        &stentor__v1__mail_domain__descriptor, payload, domains->scratch, err);
    if (entry == NULL) {
        return false;
    }
    map_put(domains->by_name, name, make_domain(entry));
    return true;
}

SendDomain *send_domains_find(const SendDomains *domains, Str tenant, Str address)
{
    char space[NAME_SIZE];
    Str domain = sender_domain_of(address);
    SendDomain *own = map_get(domains->by_name, name_of(tenant, domain, space));
    return own != NULL ? own : map_get(domains->by_name, name_of(STR("platform"), domain, space));
}

Str send_domain_bounces(const SendDomain *domain)
{
    return str_from(domain->bounce_domain);
}

// ---- keys ----

static bool read_reference(const char *reference, Buf *out, Error *err)
{
    Str text = str_from(reference);
    if (str_starts(text, STR("file:"))) {
        return file_append(reference + STR("file:").len, out, err);
    }
    if (!str_starts(text, STR("env:"))) {
        return error_set(err, ERROR_CONFIG, "'%.60s' is neither file: nor env:", reference);
    }
    const char *value = getenv(reference + STR("env:").len);
    return (value != NULL && buf_cstr(out, value)) ||
           error_set(err, ERROR_CONFIG, "'%.60s' is not in the environment", reference);
}

static bool read_key(SendKey *at, Error *err)
{
    Buf pem;
    buf_init(&pem, DKIM_KEY_PEM_MAX);
    DkimKey *key = read_reference(at->reference, &pem, err)
                       ? dkim_key_read(at->algorithm, buf_view(&pem), err)
                       : NULL;
    if (pem.len > 0) {
        OPENSSL_cleanse(pem.ptr, pem.len);
    }
    buf_done(&pem);
    if (key == NULL) {
        return false;
    }
    dkim_key_free(at->key);
    at->key = key;
    return true;
}

static void refresh(const SendDomain *domain, SendKey *at, int64_t now_us)
{
    int64_t age_us = now_us - at->read_at_us;
    if (at->read_at_us != 0 && age_us >= 0 &&
        age_us < (at->why[0] == '\0' ? READ_AGAIN_US : TRY_AGAIN_US)) {
        return;
    }
    Error err = {0};
    bool had_failed = at->why[0] != '\0';
    at->read_at_us = now_us;
    at->why[0] = '\0';
    if (read_key(at, &err)) {
        return;
    }
    (void)str_to_c(str_slice(str_from(err.text), 0, REASON_SIZE - 1), at->why, REASON_SIZE);
    if (!had_failed) {
        LOG(LOG_WARN,
            at->key != NULL ? "a DKIM key cannot be read again; the one that was read before signs"
                            : "a DKIM key cannot be read; mails from its domain wait",
            log_text("domain", domain->domain), log_text("selector", at->selector),
            log_error(&err));
    }
}

bool send_domain_signers(
    SendDomain *domain, int64_t now_us, DkimSigner out[SEND_DOMAIN_KEYS_MAX], size_t *ret_count,
    Error *err)
{
    for (size_t i = 0; i < domain->key_count; i++) {
        SendKey *at = &domain->keys[i];
        refresh(domain, at, now_us);
        if (at->key == NULL) {
            return error_set(
                err, ERROR_TRANSIENT, "DKIM key '%s' of %s: %s (HINT: stentor mail-domain show %s)",
                at->selector, domain->domain, at->why, domain->domain);
        }
        out[i] = (DkimSigner){str_from(domain->domain), str_from(at->selector), at->key};
    }
    *ret_count = domain->key_count;
    return true;
}

void send_domains_warn(const SendDomains *domains, Buf *warning)
{
    size_t count = 0;
    const SendDomain *named = NULL;
    const SendKey *failed = NULL;
    Str name;
    void *value;
    for (size_t i = 0; map_next(domains->by_name, &i, &name, &value);) {
        const SendDomain *domain = value;
        for (size_t k = 0; k < domain->key_count; k++) {
            if (domain->keys[k].why[0] != '\0') {
                count++;
                named = domain;
                failed = &domain->keys[k];
            }
        }
    }
    if (count > 0) {
        buf_printf(
            warning, "%s%zu DKIM key%s cannot be read: '%s' of %s: %s",
            warning->len > 0 ? "; " : "", count, count == 1 ? "" : "s", failed->selector,
            named->domain, failed->why);
    }
}
