// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_bearer.h"

#include "common/feed/feed_event.h"
#include "common/feed/inbox_signed.h"
#include "common/model/channel_address.h"

static InboxVerdict check_signed(
    const InboxPublic *inbox, const HttpRequest *http, Str token, InboxToken *ret)
{
    InboxSigned read;
    Str address;
    char reason[ADDRESS_REASON_SIZE];
    const InboxKeyKnown *key =
        inbox_signed_read(token, &read) ? inbox_keys_find(inbox->keys, read.key_id) : NULL;
    if (key == NULL) {
        return INBOX_BAD;
    }
    InboxVerdict verdict = inbox_signed_check(&read, str_from(key->secret), http->received_at_us);
    if (verdict == INBOX_GOOD &&
        !people_address_check(CHANNEL_INAPP, str_from(read.to), http->arena, &address, reason)) {
        verdict = INBOX_BAD;
    }
    if (verdict == INBOX_GOOD) {
        *ret = (InboxToken){.expires_at_us = read.expires_at_us};
        (void)str_to_c(str_from(key->tenant), ret->tenant, sizeof ret->tenant);
        (void)str_to_c(address, ret->address, sizeof ret->address);
        feed_recipient(inbox->master, str_from(key->tenant), address, ret->recipient);
    }
    return verdict;
}

InboxVerdict inbox_bearer_check(
    const InboxPublic *inbox, const HttpRequest *http, Str token, InboxToken *ret)
{
    return inbox_is_signed(token)
               ? check_signed(inbox, http, token, ret)
               : inbox_token_check(inbox->master, token, http->received_at_us, ret);
}

const char *inbox_bearer_reason(InboxVerdict verdict)
{
    switch (verdict) {
    case INBOX_EXPIRED:
        return "the token has expired; get a new one from the application's server";
    case INBOX_TOO_LONG:
        return "a token that the application's server signs may be good for 24 hours at most";
    case INBOX_GOOD:
    case INBOX_BAD:
        break;
    }
    return "send 'Authorization: Bearer inb_...', a token of POST /v1/inbox/tokens, or one that is "
           "signed with a key of POST /v1/inbox/keys";
}
