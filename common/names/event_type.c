// SPDX-License-Identifier: Apache-2.0
#include "common/names/event_type.h"

static const char *const known[] = {
    "UserCheckedOut", "StatusChanged", "PlaceOrder",       "CompleteOrder",
    "CancelOrder",    "OrderFailed",   "CleanUpSentEmail", "ResendErrorEmail",
};

bool event_type_is_known(Str plain)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (str_eq(plain, str_from(known[i]))) {
            return true;
        }
    }
    return false;
}

Str event_type_plain(Str written)
{
    static const char *const endings[] = {"IntegrationEvent", "Event", "Command"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        Str ending = str_from(endings[i]);
        Str plain = str_ends(written, ending) ? str_slice(written, 0, written.len - ending.len)
                                              : STR_EMPTY;
        if (event_type_is_known(plain)) {
            return plain;
        }
    }
    return written;
}

// What stands behind the last of these.
static Str behind(Str text, char separator)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        from = text.ptr[i] == separator ? i + 1 : from;
    }
    return str_slice(text, from, text.len);
}

Str event_type_of_urn(Str urn)
{
    Str prefix = STR("urn:message:");
    if (!str_starts(urn, prefix)) {
        return STR_EMPTY;
    }
    Str rest = str_slice(urn, prefix.len, urn.len);
    Str type = STR_EMPTY; // without the arguments of a generic type: "MassTransit:Fault[[...]]"
    (void)str_split(&rest, '[', &type);
    return behind(behind(type, ':'), '+');
}
