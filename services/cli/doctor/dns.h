// SPDX-License-Identifier: Apache-2.0
// DNS for `stentor doctor --domain`: one question, one answer, through glibc's resolver. It blocks,
// for at most 8 s a question.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/str.h"

enum { DNS_RECORDS_MAX = 64, DNS_NAME_MAX = 255 };

typedef enum DnsType { DNS_A = 1, DNS_PTR = 12, DNS_MX = 15, DNS_TXT = 16, DNS_AAAA = 28 } DnsType;

typedef struct DnsRecord {
    Str text;            // of a TXT its strings joined; of the others a name or an address
    uint32_t preference; // of an MX
} DnsRecord;

typedef struct DnsAnswer {
    DnsRecord records[DNS_RECORDS_MAX]; // those behind them are left out
    size_t count;
} DnsAnswer;

typedef enum DnsResult { DNS_FOUND, DNS_NONE, DNS_FAILED } DnsResult;

typedef struct Dns Dns;

// server: "127.0.0.1:5353"; NULL: those of the system. ERROR_USAGE: it is no IPv4 address and port.
Dns *dns_open(const char *server, Error *err);
void dns_close(Dns *dns); // NULL-safe
// Everything of *ret lives in `arena`. DNS_NONE: the name or the type is not there. DNS_FAILED: no
// server answered, *err says so.
DnsResult dns_ask(
    Dns *dns, const char *name, DnsType type, Arena *arena, DnsAnswer *ret, Error *err);
// "4.3.2.1.in-addr.arpa" of "1.2.3.4"; IPv6 too. NULL: no address.
const char *dns_reverse_name(const char *address, Arena *arena);

// The records of that type in a server's answer; false: it is none. Pure.
bool dns_answer_read(const uint8_t *bytes, size_t len, DnsType type, Arena *arena, DnsAnswer *ret);
