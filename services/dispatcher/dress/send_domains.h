// SPDX-License-Identifier: Apache-2.0
// The domains that mails are from, as configured (cfg.mail_domain.<tenant>.<domain>): which DKIM
// keys sign them, and where their bounces come back to. Keys are read from where their references
// point, at first use and again every minute, so a replaced file counts without a restart. Law: a
// domain with a key that cannot be read signs nothing at all, so its mails wait; a key that was
// read once stays in use while its file cannot be read. Reads small local files on the loop.
#pragma once

#include "common/base/buf.h"
#include "common/bus/jetstream/bus.h"
#include "common/mime/dkim.h"

#define MAIL_DOMAIN_KIND "mail_domain"

enum { SEND_DOMAIN_KEYS_MAX = DKIM_PER_MAIL_MAX };

typedef struct SendDomains SendDomains;
typedef struct SendDomain SendDomain;

SendDomains *send_domains_new(void);
void send_domains_free(SendDomains *domains); // NULL-safe
// tenant and key are the subject's; an empty payload removes the entry.
bool send_domains_changed(SendDomains *domains, Str tenant, Str key, Str payload, Error *err);
// Of the address that a mail of the tenant is from: the tenant's own entry for its domain, else the
// platform's; NULL: none. Valid until the next change.
SendDomain *send_domains_find(const SendDomains *domains, Str tenant, Str address);
// How many of its keys cannot be read now: for /readyz, with one of them.
void send_domains_warn(const SendDomains *domains, Buf *warning);

Str send_domain_bounces(const SendDomain *domain); // empty: none
// Its keys, ready to sign; valid until the next change or call. ERROR_TRANSIENT names the key that
// cannot be read.
bool send_domain_signers(
    SendDomain *domain, int64_t now_us, DkimSigner out[SEND_DOMAIN_KEYS_MAX], size_t *ret_count,
    Error *err);
