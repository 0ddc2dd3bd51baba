// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "services/gateway/why/why_list.h"

// A reason of the product in words for a customer, and what can be done about it.
typedef struct Reason {
    const char *code;
    const char *because;
    const char *remedy;
} Reason;

// clang-format off
static const Reason STOPPED[] = {
    {"tenant_suspended", "sending is suspended for this account", "It has to be sent again once sending is allowed."},
    {"tenant_policy", "the account's policy has messages of this kind switched off", "An administrator can change the policy."},
    {"expired", "it would have come too late: its time had run out", "It can be sent again as a new message."},
    {"hard_bounce", "earlier mail to this address came back", "Check the address; a correct one can be released from the suppression list."},
    {"complaint", "the recipient reported an earlier message as unwanted", "The address may be written to again only when the recipient asks for it."},
    {"invalid_address", "the address is known to be invalid", "Check the address; a correct one can be released from the suppression list."},
    {"opt_out", "the recipient has opted out of such messages", "The recipient can opt in again."},
    {"manual", "an operator has put the address on the suppression list", "An operator can release it."},
    {"compliance", "the address must not be written to, for a legal reason", "Ask the operator who put it on the list."},
    {"rate_limit", "there were more messages than the limits allow", "It can be sent again later, or the limits raised."},
    {"unreadable", "the address is on the suppression list", "An operator can look at its entry and release it."},
    {"unsubscribed", "the recipient has unsubscribed from all messages", "The recipient can subscribe again."},
    {"no_consent", "the recipient has not agreed to messages of this kind", "Ask the recipient for consent and record it."},
    {"preference", "the recipient has switched off messages of this kind", "The recipient can switch them on again in the preferences."},
    {"no_address", "the recipient has no active address for it", "Add an address to the recipient and send it again."},
    {"cancelled", "it was cancelled before it went out", "It can be sent again as a new message."},
    {"obsolete", "what it was about was cancelled before it went out", "Nothing needs to be done."},
    {"rescheduled", "a newer message with another date takes its place", "Look at the newer message."},
    {"digest", "it is part of a digest", "Look at the digest."},
    {"erased", "the recipient's data was erased", "It cannot be sent again."},
};
static const Reason FAILED[] = {
    {"invalid_address", "the mail server says that the address does not exist", "Check the address and send it again to the right one."},
    {"rejected", "the mail server or vendor refused it", "See what it said; mend that and send it again."},
    {"retries_exhausted", "it could not be handed over in all the attempts that it had", "It can be sent again when the mail server or vendor takes mail."},
    {"expired", "it could not be handed over before its time had run out", "It can be sent again as a new message."},
    {"missing_variable", "a value that its template needs was missing", "The application has to send that value; then it can be sent again."},
    {"unknown_template", "its template is not there any more", "Publish the template's version, then it can be sent again."},
    {"invalid_template", "its template has a fault", "Correct the template, then it can be sent again."},
    {"render_failed", "its content could not be made", "Correct the template or the values, then it can be sent again."},
    {"render_limit", "its content is larger than is allowed", "Make it smaller and send it again."},
    {"window_closed", "the recipient had not written within the last 24 hours", "Send an approved template of the vendor instead."},
    {"dropped", "an operator dropped it", "It can be sent again as a new message."},
    {"blocked", "the recipient's provider refused it as unwanted", "Ask the recipient to allow the sender, and look at the sender's reputation."},
    {"vendor_suppressed", "the address is on the vendor's own suppression list", "Remove it from the vendor's list."},
};
static const Reason BOUNCED[] = {
    {"hard_bounce", "the recipient's server says that the address does not exist", "Check the address; a correct one can be released from the suppression list."},
    {"soft_bounce", "the recipient's mailbox was full, or its server away", "It can be sent again later."},
};
// clang-format on

static const Reason *find(const Reason *reasons, size_t count, Str code)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(code, str_from(reasons[i].code))) {
            return &reasons[i];
        }
    }
    return NULL;
}
#define FIND(reasons, code) find(reasons, sizeof(reasons) / sizeof *(reasons), code)

// "It was not sent, because ... . The remedy."
static const char *explain(
    const WhyFacts *facts, Arena *arena, const char *what, const Reason *reason)
{
    Str code = facts->row->reason_code;
    if (reason != NULL) {
        return arena_printf(arena, "%s, because %s. %s", what, reason->because, reason->remedy);
    }
    return code.len > 0 ? arena_printf(arena, "%s (" STR_FMT ").", what, STR_ARG(code))
                        : arena_printf(arena, "%s.", what);
}

static const NotificationAttempt *last_attempt(const WhyFacts *facts)
{
    return facts->attempt_count > 0 ? &facts->attempts[facts->attempt_count - 1] : NULL;
}

static const char *say_failed(const WhyFacts *facts, Arena *arena)
{
    const char *said =
        explain(facts, arena, "It did not arrive", FIND(FAILED, facts->row->reason_code));
    const NotificationAttempt *last = last_attempt(facts);
    if (last != NULL && last->reply.len > 0) {
        said = arena_printf(
            arena, "%s The last answer was: " STR_FMT " " STR_FMT, said, STR_ARG(last->code),
            STR_ARG(last->reply));
    }
    return facts->dead.sequence == 0
               ? said
               : arena_printf(
                     arena, "%s (An operator sends it again with: stentor dlq resend %" PRIu64 ".)",
                     said, facts->dead.sequence);
}

static const char *because_of_wait(const WhyFacts *facts)
{
    static const char *const reasons[][3] = {
        {"quiet", "quiet_hours", "it is night for the recipient"},
        {"limit", "rate_limit", "others are before it within the limits"},
        {"digest", "digest", "the recipient gets such messages together, as a digest"},
        {"schedule", "", "it was scheduled for that time"},
    };
    Str waits = facts->wait.reason;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (waits.len > 0 ? str_eq(waits, str_from(reasons[i][0]))
                          : str_eq(facts->row->reason_code, str_from(reasons[i][1]))) {
            return reasons[i][2];
        }
    }
    return "it waits for its time";
}

static const char *say_scheduled(const WhyFacts *facts, Arena *arena)
{
    int64_t until_us =
        facts->wait.due_us != 0 ? facts->wait.due_us : facts->row->at_us[FOLD_SCHEDULED_FOR];
    return arena_printf(
        arena, "It has not been sent yet, because %s; it goes out at %s. Nothing needs to be done.",
        because_of_wait(facts), why_when(arena, until_us));
}

static const char *say_sending(const WhyFacts *facts, Arena *arena)
{
    if (facts->down != NULL && facts->down->since_us > 0) {
        return arena_printf(
            arena,
            "It has not been sent yet, because %s cannot be reached since %s; it goes out when it "
            "can. Nothing needs to be done.",
            facts->down->vendor, why_when(arena, facts->down->since_us));
    }
    const NotificationAttempt *last = last_attempt(facts);
    if (last == NULL) {
        return "It was accepted a moment ago and is on its way.";
    }
    if (facts->claim.due_us > 0) {
        return arena_printf(
            arena,
            "It has not been sent yet: after attempt %" PRId64
            " it is tried again at %s. The last answer was: " STR_FMT " " STR_FMT,
            last->number, why_when(arena, facts->claim.due_us), STR_ARG(last->code),
            STR_ARG(last->reply));
    }
    return arena_printf(
        arena,
        "It has not been sent yet: after attempt %" PRId64
        " it is tried again. The last answer was: " STR_FMT " " STR_FMT,
        last->number, STR_ARG(last->code), STR_ARG(last->reply));
}

static const char *say_arrived(const WhyFacts *facts, Arena *arena)
{
    const HistoryRow *row = facts->row;
    int64_t read_us =
        row->at_us[FOLD_OPENED] != 0 ? row->at_us[FOLD_OPENED] : row->at_us[FOLD_CLICKED];
    if (read_us != 0) {
        return arena_printf(arena, "It arrived, and was opened at %s.", why_when(arena, read_us));
    }
    return arena_printf(
        arena, "It arrived at %s. If it is not seen, look into the spam folder and filters.",
        why_when(arena, row->at_us[FOLD_DELIVERED]));
}

static const char *say_sent(const WhyFacts *facts, Arena *arena)
{
    return arena_printf(
        arena,
        "It was handed over at %s, and no report of its arrival or failure has come. If it is not "
        "seen, look into the spam folder and filters.",
        why_when(arena, facts->row->at_us[FOLD_SENT]));
}

const char *why_summary(const WhyFacts *facts, Arena *arena)
{
    Str code = facts->row->reason_code;
    switch (facts->row->status) {
    case STATUS_SUPPRESSED:
        return explain(facts, arena, "It was not sent", FIND(STOPPED, code));
    case STATUS_SUPERSEDED:
        return explain(facts, arena, "It was not sent by itself", FIND(STOPPED, code));
    case STATUS_FAILED:
        return say_failed(facts, arena);
    case STATUS_BOUNCED:
        return explain(facts, arena, "It was sent and came back", FIND(BOUNCED, code));
    case STATUS_COMPLAINED:
        return "It arrived, and was reported as unwanted. The address may be written to again "
               "only when the recipient asks for it.";
    case STATUS_SCHEDULED:
        return say_scheduled(facts, arena);
    case STATUS_QUEUED:
    case STATUS_RENDERING:
    case STATUS_SENDING:
        return say_sending(facts, arena);
    case STATUS_SENT:
        return say_sent(facts, arena);
    case STATUS_DELIVERED:
    case STATUS_OPENED:
    case STATUS_CLICKED:
        return say_arrived(facts, arena);
    case STATUS_NONE:
    case STATUS_COUNT:
        break;
    }
    return "Nothing is known of it.";
}

const char *why_summary_ahead(const WhyFacts *facts, Arena *arena)
{
    const HistoryRow *row = facts->row;
    if (row->status == STATUS_SUPPRESSED) {
        return explain(facts, arena, "It would not be sent", FIND(STOPPED, row->reason_code));
    }
    if (row->status == STATUS_SCHEDULED) {
        return arena_printf(
            arena, "It would wait, because %s, and go out at %s.", because_of_wait(facts),
            why_when(arena, row->at_us[FOLD_SCHEDULED_FOR]));
    }
    return facts->down != NULL && facts->down->since_us > 0
               ? arena_printf(
                     arena, "It would be sent as soon as %s can be reached again.",
                     facts->down->vendor)
               : "It would be sent at once.";
}
