// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/bulkhead.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/map.h"

enum { NAME_SIZE = 128 };

typedef struct Part {
    size_t mails;
} Part;

typedef struct LaneCompany {
    uint64_t last; // hash of who came last
    int64_t until_us;
} LaneCompany;

struct Bulkhead {
    Map *parts; // "<lane>|<tenant>|<vendor>" -> Part; exists while it has mails
    LaneCompany company[PRIORITY_COUNT];
};

Bulkhead *bulkhead_new(void)
{
    Bulkhead *bulkhead = xcalloc(1, sizeof *bulkhead);
    bulkhead->parts = map_new(free);
    return bulkhead;
}

void bulkhead_free(Bulkhead *bulkhead)
{
    if (bulkhead != NULL) {
        map_free(bulkhead->parts);
        free(bulkhead);
    }
}

static Str name_of(Priority lane, Str tenant, Str vendor, char name[NAME_SIZE])
{
    int used = snprintf(
        name, NAME_SIZE, "%d|" STR_FMT "|" STR_FMT, (int)lane, STR_ARG(tenant), STR_ARG(vendor));
    assert(used > 0 && used < NAME_SIZE);
    return (Str){name, (size_t)used};
}

static bool note_company(LaneCompany *company, Str name, int64_t now_us)
{
    uint64_t who = str_hash(name);
    if (company->last != 0 && company->last != who) {
        company->until_us = now_us + BULKHEAD_COMPANY_S * INT64_C(1000000);
    }
    company->last = who;
    return now_us < company->until_us;
}

bool bulkhead_enter(
    Bulkhead *bulkhead, Priority lane, Str tenant, Str vendor, size_t room, int64_t now_us)
{
    char text[NAME_SIZE];
    Str name = name_of(lane, tenant, vendor, text);
    Part *part = map_get(bulkhead->parts, name);
    if (part == NULL) {
        part = xcalloc(1, sizeof *part);
        map_put(bulkhead->parts, name, part);
    }
    part->mails++;
    bool has_company = note_company(&bulkhead->company[lane], name, now_us);
    return has_company && part->mails > room / BULKHEAD_SHARE;
}

void bulkhead_leave(Bulkhead *bulkhead, Priority lane, Str tenant, Str vendor)
{
    char text[NAME_SIZE];
    Str name = name_of(lane, tenant, vendor, text);
    Part *part = map_get(bulkhead->parts, name);
    assert(part != NULL && part->mails > 0);
    if (--part->mails == 0) {
        (void)map_remove(bulkhead->parts, name);
    }
}

size_t bulkhead_count(const Bulkhead *bulkhead, Priority lane, Str tenant, Str vendor)
{
    char text[NAME_SIZE];
    const Part *part = map_get(bulkhead->parts, name_of(lane, tenant, vendor, text));
    return part != NULL ? part->mails : 0;
}

int64_t bulkhead_back_ms(double random01)
{
    return BULKHEAD_BACK_MIN_MS +
           (int64_t)(random01 * (BULKHEAD_BACK_MAX_MS - BULKHEAD_BACK_MIN_MS));
}
