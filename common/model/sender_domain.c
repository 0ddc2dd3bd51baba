// SPDX-License-Identifier: Apache-2.0
#include "common/model/sender_domain.h"

#include <stdio.h>

#define BELOW STR("*.")

static bool refuse(char reason[ADDRESS_REASON_SIZE], const char *why)
{
    (void)snprintf(reason, ADDRESS_REASON_SIZE, "%s", why);
    return false;
}

bool sender_domain_parse(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    bool below = str_starts(text, BELOW);
    Str domain = below ? str_slice(text, BELOW.len, text.len) : text;
    Str address = STR_EMPTY;
    if (domain.len > 4 * (size_t)ADDRESS_MAX || str_find(domain, '@') >= 0) {
        return refuse(reason, "not a domain such as 'acme.test'");
    }
    // An address of the domain has every check of a domain.
    Str sample = str_from(arena_printf(arena, "x@" STR_FMT, STR_ARG(domain)));
    if (!str_is_utf8(domain)) {
        return refuse(reason, "the domain is not valid UTF-8");
    }
    if (!address_parse(sample, arena, &address, reason)) {
        return false;
    }
    Str plain = str_slice(address, 2, address.len);
    if (str_find(plain, '.') < 0) {
        return refuse(reason, "the domain has no dot");
    }
    *ret = str_from(arena_printf(arena, "%s" STR_FMT, below ? "*." : "", STR_ARG(plain)));
    return true;
}

Str sender_domain_of(Str address)
{
    size_t at = address.len;
    while (at > 0 && address.ptr[at - 1] != '@') {
        at--;
    }
    return at == 0 ? STR_EMPTY : str_slice(address, at, address.len);
}

static bool covers(Str verified, Str domain)
{
    if (!str_starts(verified, BELOW)) {
        return str_eq_nocase(verified, domain);
    }
    Str tail = str_slice(verified, 1, verified.len); // ".acme.test"
    return domain.len > tail.len &&
           str_eq_nocase(str_slice(domain, domain.len - tail.len, domain.len), tail);
}

bool sender_may_use(const SenderRule *rule, Str address)
{
    Str domain = sender_domain_of(address);
    if (domain.len == 0) {
        return false;
    }
    for (size_t i = 0; i < rule->domain_count; i++) {
        if (covers(str_from(rule->domains[i]), domain)) {
            return true;
        }
    }
    return rule->domain_count == 0 && str_eq_nocase(sender_domain_of(rule->address), domain);
}
