// SPDX-License-Identifier: Apache-2.0
// Who a request comes from: addresses, the proxies that are trusted to name one, and how many
// places each address has. Pure. Law: X-Forwarded-For is read from its right end, and only behind
// a trusted proxy: what stands left of the first address that is no such proxy may be the client's
// invention. An IPv6 client is its /64, which is what one customer gets.
#pragma once

#include "common/base/error.h"
#include "common/base/map.h"

enum { HTTP_PROXIES_MAX = 64 };

enum { HTTP_ADDRESS_TEXT_SIZE = 48 };

typedef struct HttpAddress {
    uint8_t bytes[16]; // IPv4 as ::ffff:a.b.c.d
} HttpAddress;

typedef struct HttpProxies {
    struct {
        HttpAddress address;
        unsigned bits;
    } ranges[HTTP_PROXIES_MAX];
    size_t count;
} HttpProxies;

// "10.0.0.0/8, 192.0.2.7, ::1"; empty: none. ERROR_CONFIG names the item.
bool http_proxies_parse(Str list, HttpProxies *ret, Error *err);
// "192.0.2.7", "2001:db8::1"; "-" where there is none (all zero).
void http_address_format(const HttpAddress *address, char out[HTTP_ADDRESS_TEXT_SIZE]);
// The same for ranges that are no proxies': every one is looked at, whichever fits.
bool http_ranges_have(const HttpProxies *ranges, const HttpAddress *address);
bool http_address_is_loopback(const HttpAddress *address);
bool http_proxies_has(const HttpProxies *proxies, const HttpAddress *address);
// One value of X-Forwarded-For, the last header first: goes on from *at (the peer at first) to the
// left. true: *at is the client, or the last trusted hop where an item is no address.
bool http_client_of(const HttpProxies *proxies, Str forwarded, HttpAddress *at);

// ---- places ----

typedef struct HttpPlaces HttpPlaces;

HttpPlaces *http_places_new(void);
void http_places_free(HttpPlaces *places); // NULL-safe
// One more for this client; false when it has `max` already (0: no limit).
bool http_places_take(HttpPlaces *places, const HttpAddress *client, unsigned max);
void http_places_give(HttpPlaces *places, const HttpAddress *client);
// Memory of its bodies: `more` may be negative. false: over `max`, and nothing changed.
bool http_places_bytes(HttpPlaces *places, const HttpAddress *client, int64_t more, int64_t max);
