# SPDX-License-Identifier: Apache-2.0
"""What the run comes to: the client's list of accepted ids against history, the audit and the mailbox, notification by notification."""
import collections
import json

from tests.chaos import channels
from tests.chaos.vendors import NEVER_AGAIN, policy_of

ENDED = ("sent", "delivered", "opened", "clicked", "failed", "bounced", "suppressed", "superseded", "complained")


# Where a policy parks what is unknown, the end is a dead letter for an operator, and no status.
NO_OTHER = ("SELECT p.notification_id FROM dispatcher.ledger p JOIN dispatcher.ledger o ON o.notification_id = p.notification_id"
            " AND o.vendor <> p.vendor AND o.attempt < p.attempt WHERE p.state = 'parked' AND (o.code IS NOT NULL OR o.unknown_count > 0)")
PARKED = "SELECT DISTINCT notification_id FROM dispatcher.ledger WHERE state = 'parked'"


def unfinished(world, accepted):
    """How many of the accepted have no end yet: no such status in history, and not parked."""
    done = world.postgres.query(f"SELECT (SELECT count(*) FROM archiver.notifications WHERE status = ANY(%s))"
                                f" + (SELECT count(*) FROM ({PARKED}) p JOIN archiver.notifications n ON n.id = p.notification_id"
                                f" WHERE n.status <> ALL(%s))", list(ENDED), list(ENDED))[0][0]
    return accepted - done


def unfinished_ids(world, accepted):
    ended = {row[0] for row in world.postgres.query("SELECT id FROM archiver.notifications WHERE status = ANY(%s)", list(ENDED))}
    ended |= {row[0] for row in world.postgres.query(PARKED)}
    return [identity for identity in accepted if identity not in ended]


def add_commands(world, commands, accepted):
    """The ids that ingest gave to the stored commands join the accepted; returns what is wrong with them."""
    rows = world.postgres.query("SELECT correlation_id, id FROM archiver.notifications WHERE correlation_id LIKE 'command-%%'")
    found = {}
    for name, identity in rows:
        found.setdefault(name, []).append(identity)
    for name, address in commands.items():
        accepted.update((identity, address) for identity in found.get(name, []))
    return ([(name, "made no notification") for name in commands if name not in found]
            + [(name, f"made {len(ids)} notifications") for name, ids in found.items() if len(ids) > 1])


class Ledger:
    def __init__(self, world, accepted, mailbox, vendors=None, hooks=None):
        """vendors: what each double of a vendor took, as Vendors.everything() has it; "inapp": the inboxes. hooks: what the tenant's endpoint had to get."""
        self.world = world
        self.accepted = accepted
        self.vendors = dict(vendors or {})
        self.posts, self.hooks = self.vendors.pop(channels.RECEIVER, None), hooks
        self.smtp = mailbox["kept"]
        self.kept = {identity: list(times) for identity, times in self.smtp.items()}
        places = {channels.place_of(address): identity for identity, address in accepted.items() if channels.channel_of(address) != "email"}
        self.channels = {vendor: channel for channel, vendor in [*channels.VENDORS.items(), ("inapp", "inapp")]}
        for name, double in self.vendors.items():
            double["kept"] = {places.get(place, place): times for place, times in double["kept"].items()}
            for identity, times in double["kept"].items():
                self.kept.setdefault(identity, []).extend(times[:1] if self.channels.get(name) in channels.COLLAPSES else times)
        self.permanent = mailbox["permanent"]
        self.hurt = mailbox["hurt"]
        self.history = {row[0]: row[1:] for row in world.postgres.query("SELECT id, status, reason_code FROM archiver.notifications")}
        self.parked = {row[0] for row in world.postgres.query(PARKED)} if self.vendors else set()
        self.wrong = []  # (what, how many, examples)
        self.read_unknown()

    def read_unknown(self):
        done = self.world.run_cli("audit", "--json", "--limit", "0", "--grace", "1", timeout=600)
        try:
            self.audit = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"audit gave no JSON: status {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}") from None
        self.unknown = {finding["id"] for finding in self.audit["findings"] if finding["what"] == "unknown"}

    def note(self, what, examples):
        examples = list(examples)
        if examples:
            self.wrong.append((what, len(examples), examples[:5]))

    def status(self, identity):
        return self.history.get(identity, ("nowhere", None))[0]

    def failed_with_cause(self, identity):
        """The double refused it for good, or misbehaved until the ladder was used up."""
        address = self.accepted[identity]
        reason = self.history[identity][1]
        if reason in ("rejected", "invalid_address"):
            return address in self.permanent
        return reason == "retries_exhausted" and address in self.hurt

    def check(self):
        counts = {identity: len(self.kept.get(identity, ())) for identity in self.accepted}
        failed = {i for i in self.accepted if self.status(i) == "failed"}
        never = {i for i, count in counts.items() if count == 0}
        twice = {i for i, count in counts.items() if count > 1}
        rightly = {i for i in failed if self.failed_with_cause(i)}
        self.lost = never - rightly - self.perhaps_sent()
        self.doubled = twice - self.unknown
        self.note("lost: accepted, never in the mailbox, not ended as failed by the mail server", sorted(self.lost))
        self.note("doubled: more than once in the mailbox and not named as unknown", sorted(self.doubled))
        self.note("no end in history", sorted(i for i in self.accepted if self.status(i) not in ENDED and i not in self.parked))
        self.check_vendors(twice)
        self.check_channels()
        self.check_hooks()
        self.note("failed without a cause", sorted(failed - rightly - self.lost))
        self.note("reported as failed, in the mailbox, and not named as unknown", sorted((failed - never) - self.unknown))
        self.note("in the mailbox, never accepted", sorted(set(self.kept) - set(self.accepted)))
        self.note("in history, never accepted", sorted(set(self.history) - set(self.accepted)))
        self.rows = {
            "accepted": len(self.accepted), "sent": sum(self.status(i) == "sent" for i in self.accepted), "failed": len(failed),
            "in the mailbox once": sum(count == 1 for count in counts.values()), "in the mailbox twice or more": len(twice),
            "never in the mailbox": len(never), "unknown": len(self.unknown),
            "doubled outside the unknown list": len(self.doubled), "lost": len(self.lost), "parked": len(self.parked)}
        self.compare_with_audit()
        return not self.wrong

    def perhaps_sent(self):
        """Unknown at a vendor, and the route's policy sends nothing again, or it waits for an operator: it may be in no mailbox."""
        unknown = self.unknown & set(self.accepted)
        counted = {i for i in unknown if policy_of(self.accepted[i]) in NEVER_AGAIN and channels.channel_of(self.accepted[i]) == "email"}
        return counted | (unknown & self.rightly_parked())

    def rightly_parked(self):
        """By the policy, or no vendor is left to fail over to: it is at one, and the only other one has refused it or may have it too."""
        left = {row[0] for row in self.world.postgres.query(NO_OTHER)}
        return {i for i in self.parked if policy_of(self.accepted[i]) == "park" or policy_of(self.accepted[i]) == "failover" and i in left}

    def check_vendors(self, twice):
        self.note("doubled although the route's policy sends nothing again", sorted(i for i in twice if policy_of(self.accepted[i]) in NEVER_AGAIN))
        self.note("parked although the route's policy is another", sorted(self.parked - self.rightly_parked()))
        keyed = self.vendors.get("resend", {"kept": {}})["kept"]
        self.note("twice at the vendor that knows keys", sorted(i for i, times in keyed.items() if len(times) > 1))
        for name, double in self.vendors.items():
            self.note(f"requests that {name} does not take", double["wrong"])
            if not double["kept"]:
                self.note("a vendor that no mail came to", [name])

    def check_channels(self):
        """Each channel's notifications are at its own vendor alone, and none is parked whose outcome was known."""
        wrong = [i for name, double in [("smtp", {"kept": self.smtp}), *self.vendors.items()] for i in double["kept"]
                 if i in self.accepted and channels.channel_of(self.accepted[i]) != self.channels.get(name, "email")]
        self.note("at a vendor of another channel", sorted(wrong))
        self.note("of a channel, parked and not named as unknown",
                  sorted(i for i in self.parked - self.unknown if i in self.accepted and channels.channel_of(self.accepted[i]) != "email"))

    def check_hooks(self):
        """Every status of the subscription's channel that is stored, or that history has reached, was posted at least once."""
        if self.hooks is None:
            return
        posted = {self.hooks.wanted[i] for i in self.posts["kept"] if i in self.hooks.wanted}
        self.note("webhooks lost: stored in STATUS, never posted to the tenant's endpoint", self.hooks.missing(self.posts["kept"]))
        ended = [(i, self.status(i)) for i, address in self.accepted.items()
                 if channels.channel_of(address) == channels.HOOKED and i not in self.hooks.before and self.status(i) in ENDED]
        self.note("webhooks lost: the end of a notification, never posted to the tenant's endpoint",
                  sorted(i for i, status in ended if (i, status) not in posted))
        self.note("posts that the tenant's endpoint does not take", self.posts["wrong"])
        if not self.hooks.wanted:
            self.note("an endpoint that had to get nothing", [channels.RECEIVER])

    def compare_with_audit(self):
        mine = {"accepted": len(self.accepted), "sent": self.rows["sent"], "failed": self.rows["failed"], "in_flight": 0, "lost": 0}
        for name, value in mine.items():
            if self.audit[name] != value:
                self.note(f"audit says {name} {self.audit[name]}, it is {value}",
                          [f["id"] for f in self.audit["findings"] if f["what"] == name] or [name])

    def table(self):
        lines = [f"  {name:<34} {value:>9}" for name, value in self.rows.items()]
        names = ("accepted", "sent", "failed", "suppressed", "in_flight", "unknown", "lost", "doubled")
        lines.append("  audit: " + ", ".join(f"{name} {self.audit[name]}" for name in names))
        for name, double in self.vendors.items():
            lines.append(f"  {name}: mails {double['mails']}, requests {double['requests']}, met {double['faults']}")
        of = collections.Counter(channels.channel_of(address) for address in self.accepted.values())
        lines.append("  accepted by channel: " + ", ".join(f"{name} {count}" for name, count in sorted(of.items())))
        if self.hooks is not None:
            lines.append(f"  webhooks: {len(self.hooks.wanted)} statuses, {self.posts['mails']} arrived, {self.posts['again']} of them more than once,"
                         f" {self.posts['requests']} posts, met {self.posts['faults']}")
        return "\n".join(lines)

    def story(self, identity):
        """All that is known of one notification."""
        if self.hooks is not None and identity in self.hooks.wanted:
            return self.hooks.story(identity)
        if identity not in self.accepted and identity not in self.history and identity not in self.kept:
            return f"  {identity}"
        query = self.world.postgres.query
        lines = [f"  {identity} to {self.accepted.get(identity)}: in the mailbox at {self.smtp.get(identity, [])}"]
        lines += [f"    at {name}: {double['kept'][identity]}" for name, double in self.vendors.items() if identity in double["kept"]]
        address = self.accepted.get(identity)
        lines.append(f"    mail server: permanent {self.permanent.get(address)}, misbehaved {self.hurt.get(address)}")
        for sql in ("SELECT status, reason_code, reason, priority, queued_at::text, scheduled_at::text, rendered_at::text, sent_at::text, ended_at::text"
                    " FROM archiver.notifications WHERE id = %s",
                    "SELECT attempt, vendor, credential, vendor_key, state, owner, unknown_count, code, reply, rung, claimed_at::text,"
                    " lease_until::text, finished_at::text, due_at::text"
                    " FROM dispatcher.ledger WHERE notification_id = %s ORDER BY attempt"):
            lines += [f"    {row}" for row in query(sql, identity)]
        return "\n".join(lines)
