// SPDX-License-Identifier: Apache-2.0
// Whose mailboxes an address's domain is of: the large providers by name, each with all its
// domains, because each judges a sender by its own users. Every other domain is "other": a domain
// of a company or a family would say who got a mail. Pure.
#pragma once

#include "common/base/str.h"

#define MAIL_PROVIDER_OTHER "other"

// "gmail.com" for ada@googlemail.com; static. Empty: it is no address.
Str mail_provider(Str address);
// All of them, one after another, "other" too; NULL: no more.
const char *mail_provider_name(size_t at);
// The part behind the last '@', as it stands there; empty: none.
Str mail_domain_of(Str address);
