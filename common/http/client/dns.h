// SPDX-License-Identifier: Apache-2.0
// Names to addresses on the loop, by c-ares: no thread for a look-up, unlike libcurl's resolver.
// Answers are kept for their TTL, at least 5 s and at most 300 s, failures for 5 s; one query for a
// name is on the way, however many wait for it. Names are taken as they are: no search domains.
// Everything on the loop thread; on_found comes from the loop, never from within dns_find.
#pragma once

#include <sys/socket.h>
#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/http/client/guard.h"

enum { DNS_ADDRESSES_MAX = 16, DNS_NAMES_MAX = 4096 };

typedef struct Dns Dns;
typedef struct DnsLookup DnsLookup;

// Of a name; the first is to be tried first.
typedef struct DnsAddresses {
    struct sockaddr_storage list[DNS_ADDRESSES_MAX];
    size_t count;
    bool more; // the name has more than fit: what is not seen cannot be checked
} DnsAddresses;

// ERROR_TRANSIENT: no answer, or the name has no address (now).
typedef void (*DnsFound)(void *ctx, const DnsAddresses *found, const Error *err);

// servers: "192.0.2.1:53,192.0.2.2"; NULL: those of /etc/resolv.conf, after /etc/hosts.
Dns *dns_new(uv_loop_t *loop, const char *servers, Error *err);
// Look-ups end without on_found; on_freed when the loop has let go of all, from the loop.
void dns_free(Dns *dns, void (*on_freed)(void *ctx), void *ctx);

// What is known and not too old yet; NULL: dns_find asks. Valid until the loop goes on.
const DnsAddresses *dns_known(Dns *dns, const char *name);
DnsLookup *dns_find(Dns *dns, const char *name, DnsFound on_found, void *ctx);
// Whether the guard allows every one of them: one that it denies among several refuses the name.
bool dns_check(const DnsAddresses *found, const HttpGuard *guard, const char *name, Error *err);
void dns_cancel(DnsLookup *lookup); // on_found does not come
// Nothing could be reached at the first address: the next one becomes the first.
void dns_avoid(Dns *dns, const char *name, const struct sockaddr_storage *address);
