// SPDX-License-Identifier: Apache-2.0
// The pipeline runs while it is audited, and the sources are read one after the other. So the order
// is the way that a notification goes, and a consumer's floor is read before its stream: what an
// earlier source was seen to have finished is in the later ones by the time that they are read.
// Against the way only retries go (the ledger puts off, DEFERRED, the clock, RENDERED again), and
// what is so seen half-way has moved within the grace, or is whole in the second reading.
#include "common/audit/audit.h"

#include <string.h>

#include "common/audit/audit_pg.h"
#include "common/audit/audit_streams.h"
#include "common/base/clock.h"

static uint64_t position_of(void *ctx, const char *stream)
{
    const AuditPositions *positions = ctx;
    for (size_t i = 0; i < positions->count; i++) {
        if (strcmp(positions->rows[i].stream, stream) == 0) {
            return positions->rows[i].sequence;
        }
    }
    return 0;
}

static bool read_sources(Audit *audit, Error *err)
{
    AuditPositions at;
    return audit_read_positions(audit, &at, err) && audit_read_accepts(audit, err) &&
           audit_read_stage(audit, "DEFERRED", NULL, NULL, err) && audit_read_due(audit, err) &&
           audit_read_digests(audit, err) &&
           audit_read_stage(audit, "REQUEST", position_of, &at, err) &&
           audit_read_stage(audit, "RENDERED", NULL, NULL, err) && audit_read_ledger(audit, err) &&
           audit_read_stage(audit, "FEED", NULL, NULL, err) &&
           audit_read_stage(audit, "STATUS", position_of, &at, err) &&
           audit_read_stage(audit, "DEAD", NULL, NULL, err) && audit_read_history(audit, err) &&
           audit_read_attempts(audit, err);
}

// What was dropped past its retention would look lost.
static bool read_kept(Audit *audit, Error *err)
{
    AuditKept kept;
    if (!audit_read_kept(audit->conn, &kept, err)) {
        return false;
    }
    audit->kept_us = kept.since_us;
    audit->ages.accept_us = kept.since_us;
    audit->ages.ledger_us = kept.ledger_us;
    memcpy(audit->ages.history_us, kept.history_us, sizeof audit->ages.history_us);
    audit_table_kept(audit->table, kept.since_us);
    return true;
}

static AuditVerdict judge(const Audit *audit, const AuditEntry *entry)
{
    return audit_classify(entry, &audit->ages, audit->read_at_us - audit->options.grace_us);
}

bool audit_read(Audit *audit, Error *err)
{
    audit_table_reread(audit->table);
    audit->read_at_us = clock_now_us();
    audit->ages = (AuditAges){0};
    if (!read_kept(audit, err) || !read_sources(audit, err)) {
        return false;
    }
    for (size_t i = 0; i < audit_table_count(audit->table); i++) {
        AuditEntry *entry = audit_table_at(audit->table, i);
        entry->missing = judge(audit, entry).missing;
    }
    return true;
}

bool audit_misses_any(const Audit *audit)
{
    for (size_t i = 0; i < audit_table_count(audit->table); i++) {
        if (audit_table_at(audit->table, i)->missing != 0) {
            return true;
        }
    }
    return false;
}

AuditVerdict audit_verdict(const Audit *audit, const AuditEntry *entry)
{
    AuditVerdict verdict = judge(audit, entry);
    verdict.missing &= entry->before;
    if (verdict.missing == 0 && verdict.state == AUDIT_STUCK) {
        verdict.state = AUDIT_IN_FLIGHT;
    }
    return verdict;
}

static void count_state(AuditSummary *sum, AuditState state, int64_t created_us)
{
    switch (state) {
    case AUDIT_SENT:
        sum->sent++;
        break;
    case AUDIT_FAILED:
        sum->failed++;
        break;
    case AUDIT_SUPPRESSED:
        sum->suppressed++;
        break;
    case AUDIT_IN_FLIGHT:
        sum->in_flight++;
        if (sum->oldest_in_flight_us == 0 || created_us < sum->oldest_in_flight_us) {
            sum->oldest_in_flight_us = created_us;
        }
        break;
    case AUDIT_NONE:
    case AUDIT_OPEN:
    case AUDIT_STUCK:
        break;
    }
}

AuditSummary audit_sum(const Audit *audit)
{
    AuditSummary sum = {0};
    for (size_t i = 0; i < audit_table_count(audit->table); i++) {
        const AuditEntry *entry = audit_table_at(audit->table, i);
        AuditVerdict verdict = audit_verdict(audit, entry);
        if (verdict.state != AUDIT_NONE) {
            sum.accepted++;
            count_state(&sum, verdict.state, audit_entry_created_us(entry));
            sum.unknown += verdict.unknown;
            sum.lost += verdict.missing != 0;
            sum.doubled += verdict.doubled;
        }
    }
    return sum;
}
