// SPDX-License-Identifier: Apache-2.0
// Company: has more than one tenant sent something lately? Holding one tenant back
// helps no other while it sends alone. Pure: time is an argument, of any clock that does not go
// back.
#pragma once

#include "common/base/str.h"

enum {
    COMPANY_MS = 10 * 1000, // so long after two tenants sent in turn
    COMPANY_NAME_SIZE = 40, // a tenant's id and its NUL
};

typedef struct Company {
    char last[COMPANY_NAME_SIZE]; // who sent last; empty: none yet
    int64_t until_us;
} Company; // {0} to begin with

void company_note(Company *company, Str tenant, int64_t now_us);
bool company_is(const Company *company, int64_t now_us);
