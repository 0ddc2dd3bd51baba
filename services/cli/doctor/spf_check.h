// SPDX-License-Identifier: Apache-2.0
// What a receiver makes of a domain's SPF record (RFC 7208): how many look-ups it costs, and
// whether an address may send. It asks DNS, and so blocks.
#pragma once

#include "services/cli/doctor/dns.h"
#include "services/cli/doctor/domain_records.h"

enum { SPF_LOOKUPS_MAX = 10 };

typedef enum SpfResult {
    SPF_NONE, // no record
    SPF_PASS,
    SPF_FAIL,
    SPF_SOFTFAIL,
    SPF_NEUTRAL,
    SPF_PERMERROR, // the record is broken: *fault
    SPF_TEMPERROR, // DNS did not answer: *fault
} SpfResult;

typedef struct SpfCheck {
    Dns *dns;
    Arena *arena;
    const char *address; // NULL: the record alone is looked at
    // What was found:
    int lookups;
    bool takes_all; // "+all"
    const char *fault;
    Str record; // of the domain itself
} SpfCheck;

SpfResult spf_check(SpfCheck *check, const char *domain);
