// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/dress/send_domains.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/codec/hash.h"
#include "common/model/sender_domain.h"

enum { SECRET_SIZE = 400, REASON_SIZE = 200 };

typedef struct SendKey {
    char *selector;
    char *secret; // its name among the secrets: "<domain>/<selector>"
    DkimAlgorithm algorithm;
    DkimKey *key;             // NULL: never read
    uint8_t mark[SHA256_LEN]; // of the text that was last looked at
    char why[REASON_SIZE];    // that one is no key, or is not read at all; "": none
} SendKey;

struct SendDomain {
    Secrets *secrets;
    char *tenant;
    char *domain;
    char *bounce_domain;
    SendKey keys[SEND_DOMAIN_KEYS_MAX];
    size_t key_count;
};

struct SendDomains {
    Secrets *secrets;
    Map *by_name; // "<tenant>/<domain>" -> SendDomain
    Arena *scratch;
};

static void free_domain(void *value)
{
    SendDomain *domain = value;
    for (size_t i = 0; i < domain->key_count; i++) {
        free(domain->keys[i].selector);
        free(domain->keys[i].secret);
        dkim_key_free(domain->keys[i].key);
    }
    free(domain->tenant);
    free(domain->domain);
    free(domain->bounce_domain);
    free(domain);
}

SendDomains *send_domains_new(Secrets *secrets)
{
    SendDomains *domains = xcalloc(1, sizeof *domains);
    domains->secrets = secrets;
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

// ---- configuration ----

static SecretName secret_of(const SendDomain *domain, const SendKey *key)
{
    return (SecretName){str_from(domain->tenant), STR("dkim"), str_from(key->secret)};
}

static void set_why(SendKey *key, const char *text)
{
    (void)str_to_c(str_slice(str_from(text), 0, REASON_SIZE - 1), key->why, REASON_SIZE);
}

static void add_key(SendDomain *domain, const Stentor__V1__DkimKey *entry)
{
    char secret[SECRET_SIZE];
    Error err = {0};
    (void)snprintf(secret, sizeof secret, "%s/%s", domain->domain, entry->selector);
    SendKey *key = &domain->keys[domain->key_count++];
    *key = (SendKey){
        .selector = xstrdup(entry->selector),
        .secret = xstrdup(secret),
        .algorithm = dkim_algorithm_from_name(str_from(entry->algorithm)),
    };
    const SecretName name = secret_of(domain, key);
    if (domain->secrets == NULL) {
        set_why(key, "no secrets are read here");
    } else if (!secrets_want(domain->secrets, &name, str_from(entry->reference), &err)) {
        secrets_forget(domain->secrets, &name); // what it referred to before
        set_why(key, err.text);
        LOG(LOG_WARN, "a DKIM key cannot be read; mails from its domain wait",
            log_text("domain", domain->domain), log_text("selector", key->selector),
            log_error(&err));
    }
}

static SendDomain *make_domain(
    Secrets *secrets, const char *tenant, const Stentor__V1__MailDomain *entry)
{
    SendDomain *domain = xcalloc(1, sizeof *domain);
    domain->secrets = secrets;
    domain->tenant = xstrdup(tenant);
    domain->domain = xstrdup(entry->domain);
    domain->bounce_domain = xstrdup(entry->bounce_domain);
    for (size_t i = 0; i < entry->n_dkim && i < SEND_DOMAIN_KEYS_MAX; i++) {
        add_key(domain, entry->dkim[i]);
    }
    return domain;
}

static bool has_secret(const SendDomain *domain, const char *secret)
{
    for (size_t i = 0; domain != NULL && i < domain->key_count; i++) {
        if (strcmp(domain->keys[i].secret, secret) == 0) {
            return true;
        }
    }
    return false;
}

// Those of the entry that is there, but for those that the next one has too. next NULL: none.
static void forget_secrets(const SendDomains *domains, Str name, const SendDomain *next)
{
    const SendDomain *there = map_get(domains->by_name, name);
    for (size_t i = 0; there != NULL && i < there->key_count; i++) {
        const SecretName secret = secret_of(there, &there->keys[i]);
        if (domains->secrets != NULL && !has_secret(next, there->keys[i].secret)) {
            secrets_forget(domains->secrets, &secret);
        }
    }
}

bool send_domains_changed(SendDomains *domains, Str tenant, Str key, Str payload, Error *err)
{
    char space[MAIL_DOMAIN_NAME_SIZE];
    Str name = mail_domain_name(space, tenant, key);
    if (name.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the domain's name is too long");
    }
    if (payload.len == 0) {
        forget_secrets(domains, name, NULL);
        (void)map_remove(domains->by_name, name);
        return true;
    }
    arena_reset(domains->scratch);
    const Stentor__V1__MailDomain *entry = mail_domain_read(tenant, payload, domains->scratch, err);
    if (entry == NULL) {
        return false;
    }
    SendDomain *domain = make_domain(domains->secrets, arena_cstr(domains->scratch, tenant), entry);
    forget_secrets(domains, name, domain);
    map_put(domains->by_name, name, domain);
    return true;
}

SendDomain *send_domains_find(const SendDomains *domains, Str tenant, Str address)
{
    char space[MAIL_DOMAIN_NAME_SIZE];
    Str domain = sender_domain_of(address);
    SendDomain *own = map_get(domains->by_name, mail_domain_name(space, tenant, domain));
    return own != NULL
               ? own
               : map_get(domains->by_name, mail_domain_name(space, STR("platform"), domain));
}

Str send_domain_bounces(const SendDomain *domain)
{
    return str_from(domain->bounce_domain);
}

// ---- keys ----

// Another text than the one that was looked at last. One that is no key leaves the key before in
// use.
static void take_text(const SendDomain *domain, SendKey *at, Str pem)
{
    uint8_t mark[SHA256_LEN];
    Error err = {0};
    sha256(pem, mark);
    if (memcmp(mark, at->mark, sizeof mark) == 0) {
        return;
    }
    memcpy(at->mark, mark, sizeof mark);
    DkimKey *key = dkim_key_read(at->algorithm, pem, &err);
    set_why(at, err.text);
    if (key != NULL) {
        dkim_key_free(at->key);
        at->key = key;
        return;
    }
    LOG(LOG_WARN,
        at->key != NULL ? "a DKIM key was replaced by what is none; the one before signs"
                        : "a DKIM key is none; mails from its domain wait",
        log_text("domain", domain->domain), log_text("selector", at->selector), log_error(&err));
}

// false: CANCELLED while its first reading is under way.
static bool refresh(const SendDomain *domain, SendKey *at, Error *err)
{
    const SecretName name = secret_of(domain, at);
    Str pem = STR_EMPTY;
    if (domain->secrets != NULL && secrets_use(domain->secrets, &name, &pem, err)) {
        take_text(domain, at, pem);
    } else if (domain->secrets != NULL && err->kind == ERROR_TRANSIENT) {
        err->kind = ERROR_CANCELLED;
        return false;
    }
    const char *why = at->why[0] != '\0' ? at->why : err->text;
    char shown[REASON_SIZE];
    (void)str_to_c(str_slice(str_from(why), 0, sizeof shown - 1), shown, sizeof shown);
    return at->key != NULL ||
           error_set(
               err, ERROR_TRANSIENT, "DKIM key '%s' of %s: %s (HINT: stentor mail-domain show %s)",
               at->selector, domain->domain, shown, domain->domain);
}

bool send_domain_signers(
    SendDomain *domain, DkimSigner out[SEND_DOMAIN_KEYS_MAX], size_t *ret_count, Error *err)
{
    for (size_t i = 0; i < domain->key_count; i++) {
        SendKey *at = &domain->keys[i];
        if (!refresh(domain, at, err)) {
            return false;
        }
        out[i] = (DkimSigner){
            str_from(domain->domain), str_from(at->selector), at->key, .rewritten = false};
    }
    *ret_count = domain->key_count;
    return true;
}

static bool has_failed(const SendDomain *domain, const SendKey *key, Error *ret)
{
    const SecretName name = secret_of(domain, key);
    if (key->why[0] != '\0') {
        return !error_set(ret, ERROR_CONFIG, "%s", key->why);
    }
    return domain->secrets != NULL && secrets_failed(domain->secrets, &name, ret);
}

void send_domains_warn(const SendDomains *domains, Buf *warning)
{
    size_t count = 0;
    const SendDomain *named = NULL;
    const SendKey *failed = NULL;
    Error err = {0};
    Str name;
    void *value;
    for (size_t i = 0; map_next(domains->by_name, &i, &name, &value);) {
        const SendDomain *domain = value;
        for (size_t k = 0; k < domain->key_count; k++) {
            if (has_failed(domain, &domain->keys[k], &err)) {
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
            named->domain, err.text);
    }
}
