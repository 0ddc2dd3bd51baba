// SPDX-License-Identifier: Apache-2.0
// _DEFAULT_SOURCE: the resolver's own interface (res_nquery, ns_initparse).
#define _DEFAULT_SOURCE
#include "services/cli/doctor/dns.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"

enum { ANSWER_MAX = 65535, TRIES = 2, TRY_S = 2 };

struct Dns {
    struct __res_state state;
    uint8_t answer[ANSWER_MAX];
};

static bool use_server(Dns *dns, const char *server, Error *err)
{
    char host[INET_ADDRSTRLEN];
    int64_t port = 0;
    Str text = str_from(server);
    ptrdiff_t colon = str_find(text, ':');
    struct sockaddr_in *to = &dns->state.nsaddr_list[0];
    struct in_addr address;
    if (colon < 0 || !str_to_c(str_slice(text, 0, (size_t)colon), host, sizeof host) ||
        inet_pton(AF_INET, host, &address) != 1 ||
        !str_to_i64(str_slice(text, (size_t)colon + 1, text.len), &port) || port < 1 ||
        port > 65535) {
        return error_set(err, ERROR_USAGE, "--server: expected an address and port: 127.0.0.1:53");
    }
    *to = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = address};
    dns->state.nscount = 1;
    return true;
}

Dns *dns_open(const char *server, Error *err)
{
    Dns *dns = xcalloc(1, sizeof *dns);
    if (res_ninit(&dns->state) != 0) {
        (void)error_set(err, ERROR_CONFIG, "/etc/resolv.conf cannot be read");
        free(dns);
        return NULL;
    }
    dns->state.retrans = TRY_S;
    dns->state.retry = TRIES;
    if (server != NULL && !use_server(dns, server, err)) {
        dns_close(dns);
        return NULL;
    }
    return dns;
}

void dns_close(Dns *dns)
{
    if (dns != NULL) {
        res_nclose(&dns->state);
        free(dns);
    }
}

// ---- reading ----

static Str join_strings(const uint8_t *data, size_t len, Arena *arena)
{
    char *out = arena_alloc(arena, len + 1);
    size_t written = 0;
    for (size_t at = 0; at < len;) {
        size_t part = data[at++];
        part = part < len - at ? part : len - at;
        memcpy(out + written, data + at, part);
        written += part;
        at += part;
    }
    return str_of(out, written);
}

static bool read_name(const uint8_t *bytes, size_t len, const uint8_t *from, Arena *arena, Str *ret)
{
    char name[NS_MAXDNAME];
    if (dn_expand(bytes, bytes + len, from, name, sizeof name) < 0) {
        return false;
    }
    *ret = arena_str(arena, str_from(name));
    return true;
}

static bool read_address(const uint8_t *data, size_t len, DnsType type, Arena *arena, Str *ret)
{
    char text[INET6_ADDRSTRLEN];
    int family = type == DNS_A ? AF_INET : AF_INET6;
    if (len != (type == DNS_A ? 4u : 16u) || inet_ntop(family, data, text, sizeof text) == NULL) {
        return false;
    }
    *ret = arena_str(arena, str_from(text));
    return true;
}

static bool read_record(
    const uint8_t *bytes, size_t len, const ns_rr *rr, DnsType type, Arena *arena, DnsRecord *ret)
{
    const uint8_t *data = ns_rr_rdata(*rr);
    size_t data_len = ns_rr_rdlen(*rr);
    *ret = (DnsRecord){.preference = 0};
    switch (type) {
    case DNS_TXT:
        ret->text = join_strings(data, data_len, arena);
        return true;
    case DNS_MX:
        ret->preference = data_len >= 2 ? (uint32_t)(data[0] << 8 | data[1]) : 0;
        return data_len > 2 && read_name(bytes, len, data + 2, arena, &ret->text);
    case DNS_PTR:
        return data_len > 0 && read_name(bytes, len, data, arena, &ret->text);
    case DNS_A:
    case DNS_AAAA:
        return read_address(data, data_len, type, arena, &ret->text);
    }
    return false;
}

bool dns_answer_read(const uint8_t *bytes, size_t len, DnsType type, Arena *arena, DnsAnswer *ret)
{
    ns_msg message;
    ret->count = 0;
    if (len > ANSWER_MAX || ns_initparse(bytes, (int)len, &message) != 0) {
        return false;
    }
    for (int i = 0; i < ns_msg_count(message, ns_s_an) && ret->count < DNS_RECORDS_MAX; i++) {
        ns_rr rr;
        if (ns_parserr(&message, ns_s_an, i, &rr) != 0) {
            return false;
        }
        if (ns_rr_type(rr) == (ns_type)type &&
            read_record(bytes, len, &rr, type, arena, &ret->records[ret->count])) {
            ret->count++;
        }
    }
    return true;
}

DnsResult dns_ask(
    Dns *dns, const char *name, DnsType type, Arena *arena, DnsAnswer *ret, Error *err)
{
    ret->count = 0;
    int len =
        res_nquery(&dns->state, name, ns_c_in, (int)type, dns->answer, (int)sizeof dns->answer);
    if (len < 0) {
        int why = dns->state.res_h_errno;
        if (why == HOST_NOT_FOUND || why == NO_DATA) {
            return DNS_NONE;
        }
        (void)error_set(err, ERROR_TRANSIENT, "no DNS server answered for '%.120s'", name);
        return DNS_FAILED;
    }
    if (!dns_answer_read(dns->answer, (size_t)len, type, arena, ret)) {
        (void)error_set(err, ERROR_TRANSIENT, "the DNS server's answer for '%.120s' is none", name);
        return DNS_FAILED;
    }
    return ret->count > 0 ? DNS_FOUND : DNS_NONE;
}

const char *dns_reverse_name(const char *address, Arena *arena)
{
    uint8_t bytes[16];
    Buf out;
    if (inet_pton(AF_INET, address, bytes) == 1) {
        return arena_printf(
            arena, "%u.%u.%u.%u.in-addr.arpa", bytes[3], bytes[2], bytes[1], bytes[0]);
    }
    if (inet_pton(AF_INET6, address, bytes) != 1) {
        return NULL;
    }
    buf_init(&out, 128);
    for (int i = 15; i >= 0; i--) {
        buf_printf(&out, "%x.%x.", bytes[i] & 15, bytes[i] >> 4);
    }
    buf_cstr(&out, "ip6.arpa");
    const char *name = arena_cstr(arena, buf_view(&out));
    buf_done(&out);
    return name;
}
