// SPDX-License-Identifier: Apache-2.0
// How long history keeps a notification, by category. Pure.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/model/enums.h"

enum { RETENTION_MONTHS_MIN = 3, RETENTION_MONTHS_MAX = 1200, RETENTION_RULE_SIZE = 48 };

// Every category. Where one is named twice, the last value counts.
#define RETENTION_DEFAULT                                                                          \
    "transactional=84,billing=84,compliance=84,security=84,academic=84,"                           \
    "operational=24,reminder=24,marketing=24,system=24,social=24"

typedef struct Retention {
    int months[CATEGORY_COUNT]; // [CATEGORY_NONE], of rows that name none: the longest
} Retention;

// "marketing=12,social=6" over the defaults. ERROR_CONFIG names the faulty part.
bool retention_parse(Str text, Retention *ret, Error *err);
// "marketing=24 months", as stentor.drop_expired_history takes it.
void retention_rule(const Retention *retention, Category category, char out[RETENTION_RULE_SIZE]);
