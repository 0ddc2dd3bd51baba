// SPDX-License-Identifier: Apache-2.0
// The dispatcher's copy of CONFIG: each tenant's sender, the suppressions, and the template
// versions that bodies are compressed against. It is in memory, follows the stream, and is read by
// key without waiting. Law: a version is kept as its packed event; its prefix is made at first use,
// and the least recently used ones are dropped.
#pragma once

#include "common/codec/body.h"
#include "common/config/config_mirror.h"
#include "common/model/suppressions.h"
#include "services/dispatcher/dress/send_domains.h"
#include "stentor/v1/rendered.pb-c.h"

enum { DIRECTORY_PREFIXES_MAX = 256 };

typedef struct Directory Directory;

Directory *directory_new(Secrets *secrets); // of DKIM keys; borrowed; NULL: none can be read
void directory_free(Directory *directory);
// A ConfigChanged; ctx is the Directory.
bool directory_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err);

// A ConfigUnreadable: a tenant whose entry cannot be read and is not known counts as suspended, an
// address as suppressed.
void directory_unreadable(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence);

// Name and address of the tenant's sender; false: it has none of its own. Valid until the next
// change.
bool directory_sender(const Directory *directory, Str tenant, Str *ret_name, Str *ret_address);

// Is the address of a domain that the operator has verified for the tenant? false too when the
// tenant is not known here (yet).
bool directory_may_send_as(const Directory *directory, Str tenant, Str address);

// The prefix that the content was compressed against: of the tenant's template version, or of the
// platform's with the same name. NULL: not here (yet). Valid until the next call.
const BodyPrefix *directory_prefix(
    Directory *directory, const Stentor__V1__Rendered *rendered, Str tenant);

// What CONFIG says of a channel's vendor (common/config/channel_health.h); key "email_smtp".
typedef struct ChannelState {
    int64_t down_since_us;     // 0: nothing is known against it
    int64_t changed_at_us;     // 0: there is no entry
    uint64_t sequence;         // of the entry
    int64_t disabled_until_us; // an operator has suspended it; 0: not; INT64_MAX: until resumed
} ChannelState;
ChannelState directory_channel(const Directory *directory, Str key);

SendDomains *directory_send_domains(const Directory *directory);
const Suppressions *directory_suppressions(const Directory *directory);
bool directory_is_suspended(const Directory *directory, Str tenant);
