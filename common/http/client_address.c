// SPDX-License-Identifier: Apache-2.0
#include "common/http/client_address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

enum { ADDRESS_TEXT_MAX = 64, V4_BITS_FROM = 96, V6_CLIENT_BYTES = 8 };

// ---- addresses ----

static const uint8_t V4_PREFIX[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool parse_bare(Str text, HttpAddress *ret)
{
    char buffer[ADDRESS_TEXT_MAX];
    if (text.len == 0 || !str_to_c(text, buffer, sizeof buffer)) {
        return false;
    }
    if (inet_pton(AF_INET, buffer, ret->bytes + sizeof V4_PREFIX) == 1) {
        memcpy(ret->bytes, V4_PREFIX, sizeof V4_PREFIX);
        return true;
    }
    return inet_pton(AF_INET6, buffer, ret->bytes) == 1;
}

// "192.0.2.1", "2001:db8::1", also in brackets and with a port.
static bool http_address_parse(Str text, HttpAddress *ret)
{
    text = str_trim(text);
    if (str_starts(text, STR("["))) {
        ptrdiff_t end = str_find(text, ']');
        return end > 0 && parse_bare(str_slice(text, 1, (size_t)end), ret);
    }
    ptrdiff_t colon = str_find(text, ':');
    Str behind = colon < 0 ? STR_EMPTY : str_slice(text, (size_t)colon + 1, text.len);
    if (colon > 0 && str_find(behind, ':') < 0) { // one colon: a port behind IPv4
        text = str_slice(text, 0, (size_t)colon);
    }
    return parse_bare(text, ret);
}

// ---- proxies ----

static bool parse_range(Str text, HttpAddress *ret_address, unsigned *ret_bits)
{
    ptrdiff_t slash = str_find(text, '/');
    Str address = slash < 0 ? text : str_slice(text, 0, (size_t)slash);
    if (!parse_bare(address, ret_address)) {
        return false;
    }
    int64_t widest = str_find(address, ':') < 0 ? 32 : 128;
    int64_t bits = widest;
    if (slash >= 0 && (!str_to_i64(str_slice(text, (size_t)slash + 1, text.len), &bits) ||
                       bits < 0 || bits > widest)) {
        return false;
    }
    *ret_bits = (unsigned)(bits + (widest == 32 ? V4_BITS_FROM : 0));
    return true;
}

bool http_proxies_parse(Str list, HttpProxies *ret, Error *err)
{
    HttpProxies proxies = {.count = 0};
    Str item = STR_EMPTY;
    while (str_split(&list, ',', &item)) {
        item = str_trim(item);
        if (item.len == 0) {
            continue;
        }
        if (proxies.count == HTTP_PROXIES_MAX) {
            return error_set(err, ERROR_CONFIG, "at most %d proxies", (int)HTTP_PROXIES_MAX);
        }
        if (!parse_range(
                item, &proxies.ranges[proxies.count].address,
                &proxies.ranges[proxies.count].bits)) {
            return error_set(
                err, ERROR_CONFIG,
                "'" STR_FMT "' is neither an address nor a range such as 10.0.0.0/8",
                STR_ARG(str_slice(item, 0, ADDRESS_TEXT_MAX)));
        }
        proxies.count++;
    }
    *ret = proxies;
    return true;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    if (memcmp(a, b, bits / 8) != 0) {
        return false;
    }
    unsigned rest = bits % 8;
    return rest == 0 || ((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)) == 0;
}

bool http_proxies_has(const HttpProxies *proxies, const HttpAddress *address)
{
    for (size_t i = 0; i < proxies->count; i++) {
        if (same_bits(proxies->ranges[i].address.bytes, address->bytes, proxies->ranges[i].bits)) {
            return true;
        }
    }
    return false;
}

bool http_ranges_have(const HttpProxies *ranges, const HttpAddress *address)
{
    bool found = false;
    for (size_t i = 0; i < ranges->count; i++) {
        found |= same_bits(ranges->ranges[i].address.bytes, address->bytes, ranges->ranges[i].bits);
    }
    return found;
}

bool http_address_is_loopback(const HttpAddress *address)
{
    static const uint8_t V6[16] = {[15] = 1};
    return memcmp(address->bytes, V6, sizeof V6) == 0 ||
           (memcmp(address->bytes, V4_PREFIX, sizeof V4_PREFIX) == 0 &&
            address->bytes[sizeof V4_PREFIX] == 127);
}

void http_address_format(const HttpAddress *address, char out[HTTP_ADDRESS_TEXT_SIZE])
{
    static const uint8_t NONE[16] = {0};
    bool v4 = memcmp(address->bytes, V4_PREFIX, sizeof V4_PREFIX) == 0;
    const void *bytes = v4 ? address->bytes + sizeof V4_PREFIX : address->bytes;
    if (memcmp(address->bytes, NONE, sizeof NONE) == 0 ||
        inet_ntop(v4 ? AF_INET : AF_INET6, bytes, out, HTTP_ADDRESS_TEXT_SIZE) == NULL) {
        memcpy(out, "-", 2);
    }
}

bool http_client_of(const HttpProxies *proxies, Str forwarded, HttpAddress *at)
{
    while (forwarded.len > 0) {
        size_t from = forwarded.len;
        while (from > 0 && forwarded.ptr[from - 1] != ',') {
            from--;
        }
        HttpAddress hop;
        if (!http_address_parse(str_slice(forwarded, from, forwarded.len), &hop)) {
            return true;
        }
        *at = hop;
        if (!http_proxies_has(proxies, &hop)) {
            return true;
        }
        forwarded = str_slice(forwarded, 0, from > 0 ? from - 1 : 0);
    }
    return false;
}

// ---- places ----

typedef struct Place {
    unsigned count;
    int64_t bytes;
} Place;

struct HttpPlaces {
    Map *clients; // client -> Place
};

static Str key_of(const HttpAddress *client)
{
    bool is_v4 = memcmp(client->bytes, V4_PREFIX, sizeof V4_PREFIX) == 0;
    return is_v4 ? str_of(client->bytes, sizeof client->bytes)
                 : str_of(client->bytes, V6_CLIENT_BYTES);
}

HttpPlaces *http_places_new(void)
{
    HttpPlaces *places = xcalloc(1, sizeof *places);
    places->clients = map_new(free);
    return places;
}

void http_places_free(HttpPlaces *places)
{
    if (places != NULL) {
        map_free(places->clients);
        free(places);
    }
}

bool http_places_take(HttpPlaces *places, const HttpAddress *client, unsigned max)
{
    Place *place = map_get(places->clients, key_of(client));
    if (place == NULL) {
        place = xcalloc(1, sizeof *place);
        map_put(places->clients, key_of(client), place);
    }
    if (max > 0 && place->count >= max) {
        return false;
    }
    place->count++;
    return true;
}

void http_places_give(HttpPlaces *places, const HttpAddress *client)
{
    Place *place = map_get(places->clients, key_of(client));
    assert(place != NULL && place->count > 0);
    if (--place->count == 0) {
        assert(place->bytes == 0);
        (void)map_remove(places->clients, key_of(client));
    }
}

bool http_places_bytes(HttpPlaces *places, const HttpAddress *client, int64_t more, int64_t max)
{
    Place *place = map_get(places->clients, key_of(client));
    assert(place != NULL && place->bytes + more >= 0);
    if (more > 0 && place->bytes + more > max) {
        return false;
    }
    place->bytes += more;
    return true;
}
