// SPDX-License-Identifier: Apache-2.0
// Where a request may go: rules for URLs and for addresses, so that a URL that a caller wrote never
// reaches a machine inside the operator's network (SSRF). Pure. Law: the URL is checked when it is
// registered and at each call; every address of its name is checked before a connection is made,
// and the one that is connected to once more in libcurl's open-socket callback. What is not
// plainly a public unicast address is denied, and so is IPv6 that carries IPv4.
#pragma once

#include <sys/socket.h>

#include "common/base/error.h"
#include "common/http/client_address.h"

enum { GUARD_HOST_MAX = 253 };

// Two rule sets: an origin that the operator configures, and a target that a tenant wrote.
typedef struct HttpGuard {
    bool tenant;         // a tenant's: https, port 443, 8443 or at least 1024
    bool allow_private;  // 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7, NAT64 of allowed ones
    bool allow_loopback; // for tests and a vendor's double beside us: 127/8, ::1, and http to them
    const HttpProxies *also; // ranges that are denied too: public ones of the operator; NULL: none
} HttpGuard;

typedef struct GuardedUrl {
    bool https;
    bool is_address; // the host is one, and it is allowed
    uint16_t port;
    char host[GUARD_HOST_MAX + 1]; // lower case; IPv6 without brackets
} GuardedUrl;

// "private", "loopback", or both with a ',' between them: what an operator allows. CONFIG.
bool guard_allow(HttpGuard *guard, Str list, Error *err);
// false: ERROR_CONFIG (the operator's) or ERROR_PERMANENT (a tenant's), which names what to change.
// It asks libcurl's own parser, so that both read the same host.
bool guard_url(const HttpGuard *guard, const char *url, GuardedUrl *ret, Error *err);
// AF_INET or AF_INET6; what is neither is denied. The error names the kind of range.
bool guard_address(const HttpGuard *guard, const struct sockaddr *address, Error *err);
