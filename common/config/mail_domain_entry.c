// SPDX-License-Identifier: Apache-2.0
#include "common/config/mail_domain_entry.h"

#include <string.h>

#include "common/codec/event.h"

Str mail_domain_name(char out[MAIL_DOMAIN_NAME_SIZE], Str tenant, Str domain)
{
    if (tenant.len + 1 + domain.len >= MAIL_DOMAIN_NAME_SIZE) {
        return STR_EMPTY;
    }
    size_t len = tenant.len;
    memcpy(out, tenant.ptr, len);
    out[len++] = '/';
    for (size_t i = 0; i < domain.len; i++) {
        char c = domain.ptr[i];
        out[len++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    out[len] = '\0';
    return str_of(out, len);
}

const Stentor__V1__MailDomain *mail_domain_read(Str tenant, Str payload, Arena *arena, Error *err)
{
    const Stentor__V1__MailDomain *entry = (const Stentor__V1__MailDomain *)event_unpack(
        &stentor__v1__mail_domain__descriptor, payload, arena, err);
    if (entry == NULL) {
        return NULL;
    }
    if (entry->domain[0] == '\0' || strlen(entry->domain) >= MAIL_DOMAIN_NAME_SIZE) {
        (void)error_set(err, ERROR_PERMANENT, "'domain' is empty or too long");
        return NULL;
    }
    if (!str_eq(str_from(entry->tenant), tenant)) {
        (void)error_set(err, ERROR_PERMANENT, "the entry's tenant is not the subject's");
        return NULL;
    }
    return entry;
}
