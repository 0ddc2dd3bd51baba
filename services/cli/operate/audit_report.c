// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/audit_report.h"

#include <stdio.h>

#include "common/audit/audit_repair.h"
#include "common/base/clock.h"

typedef struct Findings {
    json_t *list;
    uint64_t total;
    uint64_t limit; // 0: all
} Findings;

static void add(
    Findings *findings, const Audit *audit, const AuditEntry *entry, const char *what,
    const char *source, const char *detail)
{
    findings->total++;
    if (findings->limit > 0 && findings->total > findings->limit) {
        return;
    }
    char id[AUDIT_ID_SIZE];
    audit_entry_id(entry, id);
    json_array_append_new(
        findings->list, json_pack(
                            "{s:s, s:s, s:s, s:s, s:s}", "id", id, "tenant",
                            audit_tenant(audit->table, entry->tenant), "what", what, "source",
                            source, "detail", detail));
}

static const char *explain_loss(const Audit *audit, const AuditEntry *entry, AuditMissing missing)
{
    if (missing == MISSING_ACCEPT) {
        return "its accept row is gone, so it cannot be published again";
    }
    if ((entry->seen & SEEN_REPAIRED) != 0) {
        return "published again, but the record is still missing: run the audit again in two "
               "minutes (until then NATS drops the repeat)";
    }
    switch (audit_remedy_of(audit, entry)) {
    case REMEDY_OPERATOR:
        return "needs an operator: it was sent or tried, but the ledger has no record of it, so "
               "publishing it again would send it again";
    case REMEDY_REBUILD:
        return "run stentor rebuild history";
    case REMEDY_DRIVE:
        return missing == MISSING_HISTORY
                   ? "--repair publishes what else is missing; then run stentor rebuild history"
                   : "--repair publishes it again from the accept log";
    case REMEDY_NONE:
        break;
    }
    return "cannot be repaired: there is no accept row";
}

static const char *explain_unknown(const AuditEntry *entry)
{
    if ((entry->seen & SEEN_STALE) != 0) {
        return "claimed by a process that is gone, without an outcome: it may have been sent";
    }
    // A parked attempt stays in the ledger; next to an accepted one, an operator had it sent again.
    bool again = (entry->seen & SEEN_PARKED) != 0 && (entry->seen & SEEN_LEDGER_SENT) != 0;
    if (!again && (entry->seen & (SEEN_PARKED | SEEN_DEAD_UNKNOWN)) != 0) {
        return "parked for an operator: it may have been sent";
    }
    return "tried again after an unknown outcome: it may have been sent twice";
}

static void find(Findings *findings, const Audit *audit, const AuditEntry *entry)
{
    AuditVerdict verdict = audit_verdict(audit, entry);
    for (unsigned i = 0; i < MISSING_KINDS; i++) {
        AuditMissing missing = (AuditMissing)(1u << i);
        if ((verdict.missing & missing) != 0) {
            add(findings, audit, entry, "lost", audit_missing_name(missing),
                explain_loss(audit, entry, missing));
        }
    }
    if (verdict.doubled) {
        add(findings, audit, entry, "doubled", "ledger",
            "accepted by the vendor in two attempts, and no outcome was unknown");
    }
    if (verdict.unknown) {
        add(findings, audit, entry, "unknown", "ledger", explain_unknown(entry));
    }
}

static json_t *time_of(int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    return json_string(text);
}

static json_t *count_of(uint64_t count)
{
    return json_integer((json_int_t)count);
}

json_t *audit_report(const Audit *audit)
{
    AuditSummary sum = audit_sum(audit);
    Findings findings = {.list = json_array(), .limit = (uint64_t)audit->options.limit};
    for (size_t i = 0; i < audit_table_count(audit->table); i++) {
        find(&findings, audit, audit_table_at(audit->table, i));
    }
    double age_s = sum.oldest_in_flight_us == 0
                       ? 0
                       : (double)(audit->read_at_us - sum.oldest_in_flight_us) / 1e6;
    json_t *report = json_object();
    const struct {
        const char *name;
        json_t *value;
    } fields[] = {
        {"since", time_of(audit->options.since_us)},
        {"until", time_of(audit->options.until_us)},
        {"accepted", count_of(sum.accepted)},
        {"sent", count_of(sum.sent)},
        {"failed", count_of(sum.failed)},
        {"suppressed", count_of(sum.suppressed)},
        {"in_flight", count_of(sum.in_flight)},
        {"oldest_in_flight_s", json_real(age_s > 0 ? age_s : 0)},
        {"unknown", count_of(sum.unknown)},
        {"lost", count_of(sum.lost)},
        {"doubled", count_of(sum.doubled)},
        {"findings", findings.list},
        {"findings_total", count_of(findings.total)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        json_object_set_new(report, fields[i].name, fields[i].value);
    }
    return report;
}

static const char *text_at(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

void audit_print(const json_t *report)
{
    static const char *const counts[] = {"accepted",  "sent",    "failed", "suppressed",
                                         "in_flight", "unknown", "lost",   "doubled"};
    printf("%s to %s\n", text_at(report, "since"), text_at(report, "until"));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_int_t count = json_integer_value(json_object_get(report, counts[i]));
        printf("  %-11s %10lld", counts[i], (long long)count);
        double age_s = json_real_value(json_object_get(report, "oldest_in_flight_s"));
        if (age_s > 0 && i == 4) {
            printf("  the oldest was accepted %.1f s ago", age_s);
        }
        printf("\n");
    }
    const json_t *findings = json_object_get(report, "findings");
    size_t index;
    const json_t *finding;
    json_array_foreach(findings, index, finding)
    {
        printf(
            "%-8s %s  %s  %s: %s\n", text_at(finding, "what"), text_at(finding, "id"),
            text_at(finding, "tenant"), text_at(finding, "source"), text_at(finding, "detail"));
    }
    json_int_t total = json_integer_value(json_object_get(report, "findings_total"));
    if ((size_t)total > json_array_size(findings)) {
        printf(
            "... and %lld more (--limit 0 lists all)\n",
            (long long)total - (long long)json_array_size(findings));
    }
}
