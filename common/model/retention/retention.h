// SPDX-License-Identifier: Apache-2.0
// Retention: how long a notification is kept, by class. Pure.
// Law: a notification's class stands in its id, as the first character of the ULID's random part,
// and never changes: so each of its events finds the partition, the archive's unit and the log
// segment without a look-up. A character that is no class counts as `record`: what is not known
// is kept longest. The class is set where the id is made, from category and tenant (DECISIONS.md).
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/model/enums.h"

typedef enum RetentionClass {
    RETENTION_RECORD,   // what may have to be proved
    RETENTION_STANDARD, // what nothing must be proved by
    RETENTION_BRIEF,    // what a tenant or the installation wants to keep shortly
    RETENTION_CLASS_COUNT
} RetentionClass;

enum { RETENTION_CLASS_AT = 10 };  // index in the ULID
enum { RETENTION_CODE_ANY = '0' }; // stands in an id that was derived where the class is not known

char retention_class_code(RetentionClass value);        // 'R', 'S', 'B'
const char *retention_class_name(RetentionClass value); // "record", "standard", "brief"
bool retention_class_from_name(Str name, RetentionClass *ret);
RetentionClass retention_class_from_code(char code); // any other: RETENTION_RECORD
// Of an id whose last 26 characters are its ULID ("ntf_", "dbt_"); a shorter one: RETENTION_RECORD.
RetentionClass retention_class_of_id(Str id);
// Writes the class, or RETENTION_CODE_ANY, into such an id.
void retention_id_set_code(char *id, char code);

// ---- which class a category has ----

typedef struct RetentionClasses {
    RetentionClass of[CATEGORY_COUNT]; // [CATEGORY_NONE] is RETENTION_RECORD
} RetentionClasses;

// The defaults: transactional, billing, compliance, security, academic are records, marketing,
// operational, reminder, system, social are standard; over them "marketing=brief,social=brief".
// ERROR_CONFIG names the faulty part.
bool retention_classes_parse(Str text, RetentionClasses *ret, Error *err);

// ---- how long a class is kept, and where ----

typedef enum RetentionPeriod { RETENTION_MONTH, RETENTION_DAY } RetentionPeriod;

typedef struct RetentionSpan {
    int months; // of the calendar, in UTC
    int days;
} RetentionSpan;

// Ages, each counted from the end of the period that a notification was made in. hot <= warm <=
// kept. Without object storage only `kept` counts.
typedef struct RetentionSpans {
    RetentionSpan hot;  // in Postgres
    RetentionSpan warm; // in object storage, quick to read; from then on cold
    RetentionSpan kept; // then it is removed
    RetentionPeriod period;
} RetentionSpans;

typedef struct RetentionPlan {
    RetentionSpans of[RETENTION_CLASS_COUNT];
} RetentionPlan;

enum { RETENTION_SPAN_SIZE = 32, RETENTION_YEARS_MAX = 100 };

// A preset ("default", "bookworm", "large"; none: default), then changes of it, by comma:
// "bookworm,brief=7d:30d:60d/day". Units: d days, m months, y years. ERROR_CONFIG names the faulty
// part.
bool retention_plan_parse(Str text, RetentionPlan *ret, Error *err);
// One span: "30d", "18m", "7y".
bool retention_span_parse(Str text, RetentionSpan *ret);
// "24 months", "30 days": as Postgres reads an interval.
void retention_span_text(RetentionSpan span, char out[RETENTION_SPAN_SIZE]);
const char *retention_period_name(RetentionPeriod period); // "month", "day"
