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

typedef enum SuppressionReason {
    SUPPRESSION_NONE = 0,
    SUPPRESSION_HARD_BOUNCE,
    SUPPRESSION_COMPLAINT,
    SUPPRESSION_INVALID_ADDRESS,
    SUPPRESSION_OPT_OUT,
    SUPPRESSION_MANUAL,
    SUPPRESSION_COMPLIANCE,
    SUPPRESSION_RATE_LIMIT,
    SUPPRESSION_UNREADABLE, // its entry cannot be read; never stored in one
    SUPPRESSION_COUNT
} SuppressionReason;

typedef enum Identity {
    IDENTITY_NONE = 0,
    IDENTITY_GUEST,
    IDENTITY_USER,
    IDENTITY_VENDOR,
    IDENTITY_ANONYMOUS,
    IDENTITY_COUNT
} Identity;

typedef enum AddressStatus {
    ADDRESS_NONE = 0, // active
    ADDRESS_ACTIVE,
    ADDRESS_SUPPRESSED,
    ADDRESS_REVOKED,
    ADDRESS_STATUS_COUNT
} AddressStatus;

// How often a recipient wants messages of a category on a channel.
typedef enum Frequency {
    FREQUENCY_NONE = 0, // immediate
    FREQUENCY_IMMEDIATE,
    FREQUENCY_HOURLY,
    FREQUENCY_DAILY,
    FREQUENCY_WEEKLY,
    FREQUENCY_COUNT
} Frequency;

// What happens with a minor's notification.
typedef enum GuardianRouting {
    GUARDIAN_UNSAID = 0, // the tenant's
    GUARDIAN_NONE,
    GUARDIAN_COPY,
    GUARDIAN_REDIRECT,
    GUARDIAN_COUNT
} GuardianRouting;

// For an error about a channel's name.
#define CHANNEL_NAMES "email, sms, whatsapp, push, inapp, voice or webhook"

// The name, or "" for a value outside the enumeration (never NULL).
const char *channel_name(Channel channel);
const char *category_name(Category category);
const char *priority_name(Priority priority);
const char *status_name(Status status);
const char *outcome_name(Outcome outcome);
const char *suppression_reason_name(SuppressionReason reason);
const char *identity_name(Identity identity);
const char *address_status_name(AddressStatus status);
const char *frequency_name(Frequency frequency);
const char *guardian_routing_name(GuardianRouting routing);

// false: not a name. priority_from_name also takes "urgent" for critical.
bool channel_from_name(Str name, Channel *ret);
bool category_from_name(Str name, Category *ret);
bool priority_from_name(Str name, Priority *ret);
bool status_from_name(Str name, Status *ret);
// A reason that an entry may give.
bool suppression_is_given(SuppressionReason reason);
// Of those alone.
bool suppression_reason_from_name(Str name, SuppressionReason *ret);
bool identity_from_name(Str name, Identity *ret);
bool address_status_from_name(Str name, AddressStatus *ret);
bool frequency_from_name(Str name, Frequency *ret);
bool guardian_routing_from_name(Str name, GuardianRouting *ret);

// The lanes' stream suffix in upper case: "CRITICAL" ...
const char *priority_stream_suffix(Priority priority);
