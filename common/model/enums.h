// SPDX-License-Identifier: Apache-2.0
// The enumerations of the domain: one table each (value, name, rank). Values are those of
// proto/stentor/v1/common.proto, so an enum travels without a translation; a test compares both,
// and the SQL CHECKs, with these tables.
#pragma once

#include "common/base/str.h"

typedef enum Channel {
    CHANNEL_NONE = 0,
    CHANNEL_EMAIL,
    CHANNEL_SMS,
    CHANNEL_WHATSAPP,
    CHANNEL_PUSH,
    CHANNEL_INAPP,
    CHANNEL_VOICE,
    CHANNEL_WEBHOOK,
    CHANNEL_COUNT
} Channel;

typedef enum Category {
    CATEGORY_NONE = 0,
    CATEGORY_TRANSACTIONAL,
    CATEGORY_OPERATIONAL,
    CATEGORY_SECURITY,
    CATEGORY_REMINDER,
    CATEGORY_MARKETING,
    CATEGORY_SYSTEM,
    CATEGORY_ACADEMIC,
    CATEGORY_BILLING,
    CATEGORY_SOCIAL,
    CATEGORY_COMPLIANCE,
    CATEGORY_COUNT
} Category;

// A priority is also the lane that its notification travels in.
typedef enum Priority {
    PRIORITY_NONE = 0,
    PRIORITY_CRITICAL,
    PRIORITY_HIGH,
    PRIORITY_NORMAL,
    PRIORITY_LOW,
    PRIORITY_COUNT
} Priority;

typedef enum Status {
    STATUS_NONE = 0,
    STATUS_QUEUED,
    STATUS_SCHEDULED,
    STATUS_RENDERING,
    STATUS_SENDING,
    STATUS_SENT,
    STATUS_DELIVERED,
    STATUS_OPENED,
    STATUS_CLICKED,
    STATUS_SUPPRESSED,
    STATUS_SUPERSEDED,
    STATUS_FAILED,
    STATUS_BOUNCED,
    STATUS_COMPLAINED,
    STATUS_COUNT
} Status;

typedef enum Outcome {
    OUTCOME_NONE = 0,
    OUTCOME_ACCEPTED,
    OUTCOME_REJECTED_RETRYABLE,
    OUTCOME_REJECTED_TERMINAL,
    OUTCOME_TIMEOUT,
    OUTCOME_DELIVERED,
    OUTCOME_BOUNCE,
    OUTCOME_COMPLAINT,
    OUTCOME_OPENED,
    OUTCOME_CLICKED,
    OUTCOME_FAILED,
    OUTCOME_COUNT
} Outcome;

// The name, or "" for a value outside the enumeration (never NULL).
const char *channel_name(Channel channel);
const char *category_name(Category category);
const char *priority_name(Priority priority);
const char *status_name(Status status);
const char *outcome_name(Outcome outcome);

// false: not a name. priority_from_name also takes "urgent" for critical.
bool channel_from_name(Str name, Channel *ret);
bool category_from_name(Str name, Category *ret);
bool priority_from_name(Str name, Priority *ret);
bool status_from_name(Str name, Status *ret);

// The lanes' stream suffix in upper case: "CRITICAL" ...
const char *priority_stream_suffix(Priority priority);
