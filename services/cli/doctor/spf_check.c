// SPDX-License-Identifier: Apache-2.0
#include "services/cli/doctor/spf_check.h"

#include <string.h>

enum { DEPTH_MAX = 10 };

static SpfResult walk(SpfCheck *check, const char *domain, int depth);

static SpfResult broken(SpfCheck *check, const char *fault)
{
    check->fault = fault;
    return SPF_PERMERROR;
}

static SpfResult result_of(char qualifier)
{
    switch (qualifier) {
    case '-':
        return SPF_FAIL;
    case '~':
        return SPF_SOFTFAIL;
    case '?':
        return SPF_NEUTRAL;
    default:
        return SPF_PASS;
    }
}

// The one record; *ret_result is set when there is none, or more.
static bool find_record(SpfCheck *check, const char *domain, Str *ret, SpfResult *ret_result)
{
    DnsAnswer answer;
    Error err = {0};
    size_t found = 0;
    DnsResult result = dns_ask(check->dns, domain, DNS_TXT, check->arena, &answer, &err);
    if (result == DNS_FAILED) {
        check->fault = arena_cstr(check->arena, str_from(err.text));
        *ret_result = SPF_TEMPERROR;
        return false;
    }
    for (size_t i = 0; i < answer.count; i++) {
        if (spf_is_record(answer.records[i].text)) {
            *ret = answer.records[i].text;
            found++;
        }
    }
    if (found > 1) {
        *ret_result = broken(
            check, arena_printf(
                       check->arena, "'%s' has %zu SPF records; receivers take that for none",
                       domain, found));
    } else if (found == 0) {
        *ret_result = SPF_NONE;
    }
    return found == 1;
}

// Has the host, or a host that is its MX, the address?
static bool hosts_have(SpfCheck *check, const char *host, const SpfTerm *term)
{
    DnsAnswer hosts;
    DnsAnswer answer;
    Error ignored = {0};
    hosts.count = 1;
    hosts.records[0] = (DnsRecord){.text = str_from(host)};
    if (term->name == SPF_MX &&
        dns_ask(check->dns, host, DNS_MX, check->arena, &hosts, &ignored) != DNS_FOUND) {
        return false;
    }
    DnsType type = strchr(check->address, ':') != NULL ? DNS_AAAA : DNS_A;
    for (size_t i = 0; i < hosts.count && i < SPF_LOOKUPS_MAX; i++) {
        const char *name = arena_cstr(check->arena, hosts.records[i].text);
        (void)dns_ask(check->dns, name, type, check->arena, &answer, &ignored);
        for (size_t k = 0; k < answer.count; k++) {
            if (spf_network_has(answer.records[k].text, term->bits4, term->bits6, check->address)) {
                return true;
            }
        }
    }
    return false;
}

// *ret_result other than SPF_NONE: it ends there, the record is broken.
static bool matches(
    SpfCheck *check, const SpfTerm *term, const char *domain, int depth, SpfResult *ret_result)
{
    const char *target = term->value.len > 0 ? arena_cstr(check->arena, term->value) : domain;
    *ret_result = SPF_NONE;
    if (term->name == SPF_INCLUDE) {
        SpfResult inner = walk(check, target, depth + 1);
        if (inner == SPF_NONE) {
            *ret_result = broken(
                check, arena_printf(
                           check->arena, "it includes '%.100s', which has no SPF record", target));
        } else if (inner == SPF_PERMERROR || inner == SPF_TEMPERROR) {
            *ret_result = inner;
        }
        return inner == SPF_PASS;
    }
    if (term->name == SPF_ALL) {
        return true;
    }
    if (check->address == NULL) {
        return false;
    }
    if (term->name == SPF_IP4 || term->name == SPF_IP6) {
        return spf_network_has(term->value, term->bits4, term->bits6, check->address);
    }
    return (term->name == SPF_A || term->name == SPF_MX) && hosts_have(check, target, term);
}

// SPF_NONE: go on.
static SpfResult take_term(SpfCheck *check, const SpfTerm *term, const char *domain, int depth)
{
    if (term->name == SPF_UNKNOWN) {
        return broken(check, "it has a mechanism that no receiver knows");
    }
    check->lookups += spf_asks_dns(term->name) ? 1 : 0;
    if (check->lookups > SPF_LOOKUPS_MAX) {
        return broken(check, "it costs more than ten look-ups, beyond which receivers give up");
    }
    if (term->name == SPF_ALL && term->qualifier == '+' && depth == 0) {
        check->takes_all = true;
    }
    SpfResult failed = SPF_NONE;
    bool match = matches(check, term, domain, depth, &failed);
    return failed != SPF_NONE ? failed : match ? result_of(term->qualifier) : SPF_NONE;
}

// Goes through all terms, also behind the one that decides: their look-ups count.
static SpfResult walk(SpfCheck *check, const char *domain, int depth)
{
    Str record = STR_EMPTY;
    SpfResult result = SPF_NONE;
    if (depth > DEPTH_MAX) {
        return broken(check, "its includes go in a circle");
    }
    if (!find_record(check, domain, &record, &result)) {
        return result;
    }
    check->record = depth == 0 ? record : check->record;
    Str rest = str_slice(record, strlen("v=spf1"), record.len);
    const char *redirect = NULL;
    SpfTerm term;
    SpfResult decided = SPF_NONE;
    while (spf_next(&rest, &term)) {
        if (term.name == SPF_REDIRECT) {
            check->lookups++;
            redirect = arena_cstr(check->arena, term.value);
            continue;
        }
        result = term.name == SPF_OTHER ? SPF_NONE : take_term(check, &term, domain, depth);
        if (result == SPF_PERMERROR || result == SPF_TEMPERROR) {
            return result;
        }
        decided = decided == SPF_NONE ? result : decided;
    }
    if (decided == SPF_NONE && redirect != NULL) {
        return walk(check, redirect, depth + 1);
    }
    return decided == SPF_NONE ? SPF_NEUTRAL : decided;
}

SpfResult spf_check(SpfCheck *check, const char *domain)
{
    check->lookups = 0;
    check->takes_all = false;
    check->fault = "";
    check->record = STR_EMPTY;
    return walk(check, domain, 0);
}
