// SPDX-License-Identifier: Apache-2.0
// An entry cfg.mail_domain.<tenant>.<domain>: a domain that mails are from, as every process reads
// it. What a process keeps of it is its own.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "stentor/v1/config.pb-c.h"

#define MAIL_DOMAIN_KIND "mail_domain"

enum { MAIL_DOMAIN_NAME_SIZE = 320 }; // with NUL

// "<tenant>/<domain>" in lower case, for maps. Empty: too long to be one.
Str mail_domain_name(char out[MAIL_DOMAIN_NAME_SIZE], Str tenant, Str domain);
// In `arena`. NULL: ERROR_PERMANENT, it is no MailDomain, names no domain, or is another tenant's.
const Stentor__V1__MailDomain *mail_domain_read(Str tenant, Str payload, Arena *arena, Error *err);
