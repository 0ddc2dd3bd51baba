// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
// Any bytes as a DNS server's answer, as an SPF record and as a DKIM record.
#include <stdlib.h>

#include "services/cli/doctor/dns.h"
#include "services/cli/doctor/domain_records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const DnsType types[] = {DNS_A, DNS_AAAA, DNS_MX, DNS_TXT, DNS_PTR};
    Arena *arena = arena_new(0);
    Str text = str_of(data, size);
    DnsAnswer answer;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        require(
            !dns_answer_read(data, size, types[i], arena, &answer) ||
            answer.count <= DNS_RECORDS_MAX);
    }
    SpfTerm term;
    size_t terms = 0;
    for (Str rest = text; spf_next(&rest, &term);) {
        require(term.bits4 >= 0 && term.bits4 <= 32 && term.bits6 >= 0 && term.bits6 <= 128);
        (void)spf_network_has(term.value, term.bits4, term.bits6, "192.0.2.1");
        require(++terms <= size);
    }
    DkimRecord record;
    Error err = {0};
    require(dkim_record_read(text, arena, &record, &err) || err.kind == ERROR_PERMANENT);
    arena_free(arena);
    return 0;
}
