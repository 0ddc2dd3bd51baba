// SPDX-License-Identifier: Apache-2.0
#include "common/audit/audit_verdict.h"

// ---- reading an entry ----

static bool has(const AuditEntry *e, uint64_t bits)
{
    return (e->seen & bits) != 0;
}

// Callbacks after `sent`: a tenant that signs its own may name any id.
static const uint64_t OURS = SEEN_ACCEPTED | SEEN_REQUEST | SEEN_DUE | SEEN_DIGEST | SEEN_S_QUEUED |
                             SEEN_S_SCHEDULED | SEEN_S_FAILED_EARLY | SEEN_S_FAILED_LATE |
                             SEEN_S_SENT | SEEN_H_QUEUED | SEEN_H_SCHEDULED | SEEN_H_SENT;

// Attempts that STATUS or the history has.
static uint32_t tried(const AuditEntry *e)
{
    return e->reported | e->attempts;
}

static bool is_past_renderer(const AuditEntry *e)
{
    return (e->rendered | e->ledger | tried(e)) != 0 || has(e, SEEN_S_FAILED_LATE);
}

// It ended before it was rendered.
static bool ended_early(const AuditEntry *e)
{
    bool reported = has(e, SEEN_S_FAILED_EARLY | SEEN_S_SUPPRESSED | SEEN_DEAD_EARLY);
    return reported || (has(e, SEEN_H_FAILED | SEEN_H_SUPPRESSED) && !is_past_renderer(e));
}

static bool is_suppressed(const AuditEntry *e)
{
    return has(e, SEEN_S_SUPPRESSED | SEEN_H_SUPPRESSED);
}

// The clock has its request, or its first status, still to publish.
static bool is_digest_due(const AuditEntry *e)
{
    return has(e, SEEN_DIGEST) && has(e, SEEN_DUE);
}

static bool is_scheduled(const AuditEntry *e)
{
    if (has(e, SEEN_DIGEST)) {
        return false;
    }
    bool waits = has(e, SEEN_DUE) && !has(e, SEEN_REQUEST) && !is_past_renderer(e);
    return (e->deferred & 1) != 0 || has(e, SEEN_S_SCHEDULED | SEEN_H_SCHEDULED) || waits;
}

static bool was_sent(const AuditEntry *e)
{
    const uint64_t callbacks = SEEN_S_DELIVERED | SEEN_S_OPENED | SEEN_S_CLICKED;
    return has(e, SEEN_LEDGER_SENT | SEEN_S_SENT | SEEN_H_SENT | callbacks | callbacks << 8);
}

static bool waits(const AuditEntry *e)
{
    return has(
        e, SEEN_UNPUBLISHED | SEEN_REQUEST_WAITING | SEEN_DEFERRED_WAITING | SEEN_DUE |
               SEEN_RENDERED_WAITING | SEEN_HELD);
}

// ---- what must be there ----

static bool aged(const AuditEntry *e, int64_t limit_us)
{
    return audit_entry_created_us(e) < limit_us;
}

static unsigned missing_request(const AuditEntry *e, const AuditAges *ages)
{
    bool on_its_way = is_past_renderer(e) || ended_early(e);
    if (!on_its_way && (has(e, SEEN_UNPUBLISHED) || is_digest_due(e))) {
        return 0; // the sweep publishes it, or the clock
    }
    // The gate or the clock ended it (cancelled, taken up by a digest): it had no request to be
    // rendered.
    bool ended_unsent = is_suppressed(e) && !is_past_renderer(e);
    bool lacks_request = !has(e, SEEN_REQUEST) && !aged(e, ages->request_us) && !ended_unsent;
    if (!is_scheduled(e)) {
        return lacks_request ? MISSING_REQUEST : 0;
    }
    unsigned missing = (e->deferred & 1) == 0 && !aged(e, ages->deferred_us) ? MISSING_DEFERRED : 0;
    if (on_its_way && lacks_request && !has(e, SEEN_DEAD_EARLY)) {
        missing |= MISSING_REQUEST;
    }
    bool left = !on_its_way && !has(e, SEEN_REQUEST | SEEN_DUE | SEEN_DEFERRED_WAITING);
    if (left && !aged(e, ages->request_us) && (e->deferred & 1) != 0) {
        missing |= MISSING_DUE;
    }
    return missing;
}

static unsigned missing_retry(const AuditEntry *e, const AuditAges *ages)
{
    unsigned missing = 0;
    uint32_t wanted = e->ledger_put_off << 1;
    if ((wanted & ~e->deferred) != 0 && !has(e, SEEN_RENDERED_WAITING) &&
        !aged(e, ages->deferred_us)) {
        missing |= MISSING_DEFERRED;
    }
    uint32_t pending = e->deferred & ~UINT32_C(3) & ~(e->rendered | e->ledger | tried(e));
    if (pending != 0 && !has(e, SEEN_DUE | SEEN_DEFERRED_WAITING | SEEN_DEAD_EARLY)) {
        missing |= MISSING_DUE;
    }
    return missing;
}

static unsigned missing_rendered(const AuditEntry *e, const AuditAges *ages)
{
    uint32_t wanted = e->ledger | tried(e);
    if (has(e, SEEN_REQUEST) && !has(e, SEEN_REQUEST_WAITING) && !ended_early(e)) {
        wanted |= audit_attempt_bit(1);
    }
    return (wanted & ~e->rendered) != 0 && !aged(e, ages->rendered_us) ? MISSING_RENDERED : 0;
}

// What the dispatcher must have claimed. A mail with an unread dead letter that an
// operator resent has no row for the first of the two, and its dead letter is gone.
static uint32_t claims_wanted(const AuditEntry *e)
{
    if (has(e, SEEN_RENDERED_WAITING | SEEN_DEAD_RENDERED)) {
        return 0;
    }
    uint32_t wanted = e->rendered;
    if (has(e, SEEN_CALL)) { // the next one was prepared with the first, and ends when that was
                             // answered
        return e->resends > 0 ? 0 : wanted & -wanted;
    }
    while (e->resends > 0 && (wanted & (wanted - 1)) != 0) {
        wanted &= wanted - 1; // only the last one is left
    }
    return wanted;
}

static unsigned missing_ledger(const AuditEntry *e, const AuditAges *ages)
{
    if (aged(e, ages->ledger_us)) {
        return 0;
    }
    uint32_t wanted = tried(e) | claims_wanted(e);
    bool decided = has(e, SEEN_S_FAILED_LATE | SEEN_DEAD_UNKNOWN) && e->ledger == 0;
    return (wanted & ~e->ledger) != 0 || decided ? MISSING_LEDGER : 0;
}

static unsigned missing_status(const AuditEntry *e, const AuditAges *ages)
{
    if (aged(e, ages->status_us)) {
        return 0;
    }
    const uint64_t any_first =
        SEEN_S_QUEUED | SEEN_S_SCHEDULED | SEEN_S_SUPPRESSED | SEEN_UNPUBLISHED;
    bool first = !has(e, any_first) && !is_digest_due(e);
    uint32_t wanted = e->attempts | (has(e, SEEN_RENDERED_WAITING) ? 0 : e->ledger_reported);
    bool decided = has(e, SEEN_DECIDED) && !has(e, SEEN_S_FAILED_LATE | SEEN_RENDERED_WAITING);
    bool reached = ((e->seen & SEEN_H_REACHED) >> 8 & ~(e->seen & SEEN_S_REACHED)) != 0;
    return first || (wanted & ~e->reported) != 0 || decided || reached ? MISSING_STATUS : 0;
}

static unsigned missing_feed(const AuditEntry *e, const AuditAges *ages)
{
    bool lacks = has(e, SEEN_LEDGER_INAPP) && !has(e, SEEN_ITEM) && !aged(e, ages->feed_us);
    return lacks ? MISSING_FEED : 0;
}

static RetentionClass class_of(const AuditEntry *e)
{
    char id[AUDIT_ID_SIZE];
    audit_entry_id(e, id);
    return retention_class_of_id(str_from(id));
}

static unsigned missing_history(const AuditEntry *e, const AuditAges *ages)
{
    bool dropped = !has(e, SEEN_H_ROW) && aged(e, ages->history_us[class_of(e)]);
    if (has(e, SEEN_HISTORY_WAITING | SEEN_DEAD_HISTORY) || dropped) {
        return 0;
    }
    bool reported = has(e, SEEN_REQUEST | SEEN_S_QUEUED | SEEN_S_SCHEDULED | SEEN_S_REACHED) ||
                    e->reported != 0 || (aged(e, ages->status_us) && aged(e, ages->request_us));
    bool reached = ((e->seen & SEEN_S_REACHED) << 8 & ~(e->seen & SEEN_H_REACHED)) != 0;
    bool lacks = !has(e, SEEN_H_ROW) || reached || (e->reported & ~e->attempts) != 0;
    return reported && lacks ? MISSING_HISTORY : 0;
}

// ---- the verdict ----

static AuditState state_of(const AuditEntry *e)
{
    if (was_sent(e)) {
        return AUDIT_SENT;
    }
    if (is_suppressed(e)) {
        return AUDIT_SUPPRESSED;
    }
    if (waits(e)) {
        return AUDIT_IN_FLIGHT; // also one that had failed and was resent
    }
    const uint64_t failed = SEEN_S_FAILED_EARLY | SEEN_S_FAILED_LATE | SEEN_LEDGER_FAILED |
                            SEEN_H_FAILED | SEEN_DEAD_EARLY | SEEN_S_ENDED;
    if (has(e, failed)) {
        return AUDIT_FAILED;
    }
    if (has(e, SEEN_STALE | SEEN_PARKED | SEEN_DEAD_UNKNOWN)) {
        return AUDIT_OPEN;
    }
    return has(e, SEEN_DEAD_RENDERED) ? AUDIT_FAILED : AUDIT_IN_FLIGHT;
}

AuditVerdict audit_classify(const AuditEntry *entry, const AuditAges *ages, int64_t settled_us)
{
    AuditVerdict verdict = {.state = AUDIT_NONE};
    uint32_t attempts =
        entry->deferred | entry->rendered | entry->ledger | entry->reported | entry->attempts;
    if (!has(entry, OURS) && attempts == 0) {
        return verdict;
    }
    verdict.state = state_of(entry);
    bool needs_no_accept = has(entry, SEEN_ACCEPTED | SEEN_DIGEST) || aged(entry, ages->accept_us);
    verdict.missing =
        (uint16_t)((needs_no_accept ? 0 : MISSING_ACCEPT) | missing_request(entry, ages) | missing_retry(entry, ages) | missing_rendered(entry, ages) | missing_ledger(entry, ages) | missing_status(entry, ages) | missing_history(entry, ages) | missing_feed(entry, ages));
    verdict.unknown = has(entry, SEEN_STALE | SEEN_PARKED | SEEN_RESENT | SEEN_DEAD_UNKNOWN);
    // A call that was not answered was sent, and is followed by another; its row says so.
    bool said_twice = has(entry, SEEN_S_TWICE) && !has(entry, SEEN_CALL);
    bool twice = said_twice || entry->ledger_sent > 1 + entry->resends;
    verdict.doubled = twice && !verdict.unknown;
    if (verdict.missing != 0 && entry->moved_us > settled_us) {
        verdict.missing = 0;
        verdict.state = AUDIT_IN_FLIGHT;
    } else if (verdict.missing != 0 && verdict.state == AUDIT_IN_FLIGHT && !waits(entry)) {
        verdict.state = AUDIT_STUCK;
    }
    return verdict;
}

AuditRemedy audit_remedy(const AuditEntry *e, uint16_t missing)
{
    if (missing == 0) {
        // A claim whose lease is over and whose mail is handed to no dispatcher again: the policy
        // of its channel is applied only when one meets it.
        bool abandoned = has(e, SEEN_STALE) && !has(e, SEEN_PARKED | SEEN_DEAD_UNKNOWN) &&
                         state_of(e) == AUDIT_OPEN;
        return abandoned && has(e, SEEN_ACCEPTED) ? REMEDY_DRIVE : REMEDY_NONE;
    }
    const unsigned drivable = MISSING_REQUEST | MISSING_DEFERRED | MISSING_DUE | MISSING_RENDERED |
                              MISSING_LEDGER | MISSING_STATUS | MISSING_FEED;
    bool said_sent = was_sent(e) && !has(e, SEEN_LEDGER_SENT);
    bool said_parked = has(e, SEEN_S_FAILED_LATE | SEEN_DEAD_UNKNOWN) && e->ledger == 0;
    if ((tried(e) & ~e->ledger) != 0 || said_sent || said_parked) {
        return REMEDY_OPERATOR;
    }
    if ((missing & drivable) != 0) {
        return has(e, SEEN_ACCEPTED) ? REMEDY_DRIVE : REMEDY_NONE;
    }
    return missing == MISSING_HISTORY ? REMEDY_REBUILD : REMEDY_NONE;
}

const char *audit_missing_name(AuditMissing one)
{
    switch (one) {
    case MISSING_ACCEPT:
        return "accept_log";
    case MISSING_REQUEST:
        return "REQUEST";
    case MISSING_DEFERRED:
        return "DEFERRED";
    case MISSING_DUE:
        return "due_work";
    case MISSING_RENDERED:
        return "RENDERED";
    case MISSING_LEDGER:
        return "ledger";
    case MISSING_STATUS:
        return "STATUS";
    case MISSING_HISTORY:
        return "history";
    case MISSING_FEED:
        return "FEED";
    }
    return "";
}
