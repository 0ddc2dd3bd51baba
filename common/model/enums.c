// SPDX-License-Identifier: Apache-2.0
#include "common/model/enums.h"

// clang-format off
static const char *const channel_names[CHANNEL_COUNT] = {
    [CHANNEL_NONE]     = "",
    [CHANNEL_EMAIL]    = "email",
    [CHANNEL_SMS]      = "sms",
    [CHANNEL_WHATSAPP] = "whatsapp",
    [CHANNEL_PUSH]     = "push",
    [CHANNEL_INAPP]    = "inapp",
    [CHANNEL_VOICE]    = "voice",
    [CHANNEL_WEBHOOK]  = "webhook",
};

static const char *const category_names[CATEGORY_COUNT] = {
    [CATEGORY_NONE]          = "",
    [CATEGORY_TRANSACTIONAL] = "transactional",
    [CATEGORY_OPERATIONAL]   = "operational",
    [CATEGORY_SECURITY]      = "security",
    [CATEGORY_REMINDER]      = "reminder",
    [CATEGORY_MARKETING]     = "marketing",
    [CATEGORY_SYSTEM]        = "system",
    [CATEGORY_ACADEMIC]      = "academic",
    [CATEGORY_BILLING]       = "billing",
    [CATEGORY_SOCIAL]        = "social",
    [CATEGORY_COMPLIANCE]    = "compliance",
};

static const char *const priority_names[PRIORITY_COUNT] = {
    [PRIORITY_NONE]     = "",
    [PRIORITY_CRITICAL] = "critical",
    [PRIORITY_HIGH]     = "high",
    [PRIORITY_NORMAL]   = "normal",
    [PRIORITY_LOW]      = "low",
};

static const char *const stream_suffixes[PRIORITY_COUNT] = {
    [PRIORITY_NONE]     = "",
    [PRIORITY_CRITICAL] = "CRITICAL",
    [PRIORITY_HIGH]     = "HIGH",
    [PRIORITY_NORMAL]   = "NORMAL",
    [PRIORITY_LOW]      = "LOW",
};

static const char *const status_names[STATUS_COUNT] = {
    [STATUS_NONE]       = "",
    [STATUS_QUEUED]     = "queued",
    [STATUS_SCHEDULED]  = "scheduled",
    [STATUS_RENDERING]  = "rendering",
    [STATUS_SENDING]    = "sending",
    [STATUS_SENT]       = "sent",
    [STATUS_DELIVERED]  = "delivered",
    [STATUS_OPENED]     = "opened",
    [STATUS_CLICKED]    = "clicked",
    [STATUS_SUPPRESSED] = "suppressed",
    [STATUS_SUPERSEDED] = "superseded",
    [STATUS_FAILED]     = "failed",
    [STATUS_BOUNCED]    = "bounced",
    [STATUS_COMPLAINED] = "complained",
};

static const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_NONE]               = "",
    [OUTCOME_ACCEPTED]           = "accepted",
    [OUTCOME_REJECTED_RETRYABLE] = "rejected_retryable",
    [OUTCOME_REJECTED_TERMINAL]  = "rejected_terminal",
    [OUTCOME_TIMEOUT]            = "timeout",
    [OUTCOME_DELIVERED]          = "delivered",
    [OUTCOME_BOUNCE]             = "bounce",
    [OUTCOME_COMPLAINT]          = "complaint",
    [OUTCOME_OPENED]             = "opened",
    [OUTCOME_CLICKED]            = "clicked",
    [OUTCOME_FAILED]             = "failed",
};

static const char *const suppression_names[SUPPRESSION_COUNT] = {
    [SUPPRESSION_NONE]            = "",
    [SUPPRESSION_HARD_BOUNCE]     = "hard_bounce",
    [SUPPRESSION_COMPLAINT]       = "complaint",
    [SUPPRESSION_INVALID_ADDRESS] = "invalid_address",
    [SUPPRESSION_OPT_OUT]         = "opt_out",
    [SUPPRESSION_MANUAL]          = "manual",
    [SUPPRESSION_COMPLIANCE]      = "compliance",
    [SUPPRESSION_RATE_LIMIT]      = "rate_limit",
    [SUPPRESSION_UNREADABLE]      = "unreadable",
};

static const char *const identity_names[IDENTITY_COUNT] = {
    [IDENTITY_NONE]      = "",
    [IDENTITY_GUEST]     = "guest",
    [IDENTITY_USER]      = "user",
    [IDENTITY_VENDOR]    = "vendor",
    [IDENTITY_ANONYMOUS] = "anonymous",
};

static const char *const address_status_names[ADDRESS_STATUS_COUNT] = {
    [ADDRESS_NONE]       = "",
    [ADDRESS_ACTIVE]     = "active",
    [ADDRESS_SUPPRESSED] = "suppressed",
    [ADDRESS_REVOKED]    = "revoked",
};

static const char *const frequency_names[FREQUENCY_COUNT] = {
    [FREQUENCY_NONE]      = "",
    [FREQUENCY_IMMEDIATE] = "immediate",
    [FREQUENCY_HOURLY]    = "hourly",
    [FREQUENCY_DAILY]     = "daily",
    [FREQUENCY_WEEKLY]    = "weekly",
};

static const char *const guardian_names[GUARDIAN_COUNT] = {
    [GUARDIAN_UNSAID]   = "",
    [GUARDIAN_NONE]     = "none",
    [GUARDIAN_COPY]     = "copy",
    [GUARDIAN_REDIRECT] = "redirect",
};
// clang-format on

// An enum may carry any number that came over the wire.
static const char *name_of(const char *const *names, unsigned count, unsigned value)
{
    return value < count ? names[value] : "";
}

// The value whose name it is; 0: none.
static unsigned value_of(const char *const *names, unsigned count, Str name)
{
    for (unsigned value = 1; value < count; value++) {
        if (str_eq(name, str_from(names[value]))) {
            return value;
        }
    }
    return 0;
}

const char *channel_name(Channel channel)
{
    return name_of(channel_names, CHANNEL_COUNT, (unsigned)channel);
}

const char *category_name(Category category)
{
    return name_of(category_names, CATEGORY_COUNT, (unsigned)category);
}

const char *priority_name(Priority priority)
{
    return name_of(priority_names, PRIORITY_COUNT, (unsigned)priority);
}

const char *priority_stream_suffix(Priority priority)
{
    return name_of(stream_suffixes, PRIORITY_COUNT, (unsigned)priority);
}

const char *status_name(Status status)
{
    return name_of(status_names, STATUS_COUNT, (unsigned)status);
}

const char *outcome_name(Outcome outcome)
{
    return name_of(outcome_names, OUTCOME_COUNT, (unsigned)outcome);
}

bool channel_from_name(Str name, Channel *ret)
{
    unsigned value = value_of(channel_names, CHANNEL_COUNT, name);
    if (value != 0) {
        *ret = (Channel)value;
    }
    return value != 0;
}

bool category_from_name(Str name, Category *ret)
{
    unsigned value = value_of(category_names, CATEGORY_COUNT, name);
    if (value != 0) {
        *ret = (Category)value;
    }
    return value != 0;
}

bool priority_from_name(Str name, Priority *ret)
{
    bool urgent = str_eq(name, STR("urgent"));
    unsigned value = urgent ? PRIORITY_CRITICAL : value_of(priority_names, PRIORITY_COUNT, name);
    if (value != 0) {
        *ret = (Priority)value;
    }
    return value != 0;
}

bool status_from_name(Str name, Status *ret)
{
    unsigned value = value_of(status_names, STATUS_COUNT, name);
    if (value != 0) {
        *ret = (Status)value;
    }
    return value != 0;
}

const char *suppression_reason_name(SuppressionReason reason)
{
    return name_of(suppression_names, SUPPRESSION_COUNT, (unsigned)reason);
}

bool suppression_is_given(SuppressionReason reason)
{
    return reason > SUPPRESSION_NONE && reason < SUPPRESSION_UNREADABLE;
}

bool suppression_reason_from_name(Str name, SuppressionReason *ret)
{
    unsigned value = value_of(suppression_names, SUPPRESSION_COUNT, name);
    if (!suppression_is_given((SuppressionReason)value)) {
        return false;
    }
    *ret = (SuppressionReason)value;
    return true;
}

const char *identity_name(Identity identity)
{
    return name_of(identity_names, IDENTITY_COUNT, (unsigned)identity);
}

bool identity_from_name(Str name, Identity *ret)
{
    unsigned value = value_of(identity_names, IDENTITY_COUNT, name);
    if (value != 0) {
        *ret = (Identity)value;
    }
    return value != 0;
}

const char *address_status_name(AddressStatus status)
{
    return name_of(address_status_names, ADDRESS_STATUS_COUNT, (unsigned)status);
}

bool address_status_from_name(Str name, AddressStatus *ret)
{
    unsigned value = value_of(address_status_names, ADDRESS_STATUS_COUNT, name);
    if (value != 0) {
        *ret = (AddressStatus)value;
    }
    return value != 0;
}

const char *frequency_name(Frequency frequency)
{
    return name_of(frequency_names, FREQUENCY_COUNT, (unsigned)frequency);
}

bool frequency_from_name(Str name, Frequency *ret)
{
    unsigned value = value_of(frequency_names, FREQUENCY_COUNT, name);
    if (value != 0) {
        *ret = (Frequency)value;
    }
    return value != 0;
}

const char *guardian_routing_name(GuardianRouting routing)
{
    return name_of(guardian_names, GUARDIAN_COUNT, (unsigned)routing);
}

bool guardian_routing_from_name(Str name, GuardianRouting *ret)
{
    unsigned value = value_of(guardian_names, GUARDIAN_COUNT, name);
    if (value != 0) {
        *ret = (GuardianRouting)value;
    }
    return value != 0;
}
