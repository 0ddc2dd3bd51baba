# SPDX-License-Identifier: Apache-2.0
"""Story 4, a campaign (documents B and C): whom it may reach, its pace, pausing, resuming, cancelling; a one-time code meanwhile; opting out."""
import re
from urllib.parse import urlsplit

from tests.harness.processes import wait_until
from tests.harness.stories import new_address, notification_of, story

PUBLIC = "https://notify.test"
CONSENT = ("--consent-source", "membership form", "--consent-at", "2025-05-01T12:00:00Z")
MEMBERS, RATE = 3000, 150
CODE = {"template": "welcome", "variables": {"name": "4711"}, "priority": "critical", "category": "security"}


class Campaign:
    def __init__(self, user):
        self.user = user

    def batch(self, name, addresses, *words):
        path = self.user.pipeline.folder / f"{name}.csv"
        path.write_text("to\n" + "".join(f"{address}\n" for address in addresses))
        batch = self.user.run("batch", "create", "--name", name, "--template", "spring", *words)["id"]
        assert self.user.run("batch", "add", batch, path)["added"] == len(addresses)
        self.user.run("batch", "start", batch)
        return batch

    def show(self, batch):
        return self.user.run("batch", "show", batch)

    def totals(self, batch, expected):
        wait_until(lambda: self.show(batch)["totals"] == expected, 60, f"{expected}")

    def stands(self, batch):
        """What was accepted, once all of it is sent and nothing is added."""
        def still():
            seen = self.show(batch)
            return seen["totals"].get("sent") == seen["accepted"] == self.show(batch)["accepted"] and seen["accepted"]
        return wait_until(still, 40, "the batch standing still")


def whom_it_may_reach(campaign):
    """C48, capability 6, finding 3: no address without a consent, and none whose owner has unsubscribed."""
    user = campaign.user
    campaign.totals(campaign.batch("uninvited", [new_address("stranger") for _ in range(3)]), {"suppressed": 3})
    gone = new_address("gone")
    recipient = user.run("recipient", "put", "--email", gone)["id"]
    user.run("recipient", "consent", recipient, "--grant", "marketing")
    user.run("recipient", "prefs", recipient, "--unsubscribe")
    campaign.totals(campaign.batch("invited", [gone, new_address("friend")], *CONSENT), {"sent": 1, "suppressed": 1})
    assert user.mails(gone) == []


def a_code_passes(campaign, batch):
    """Capability 14e: while the campaign has its way to go."""
    user, address = campaign.user, new_address("code")
    user.status(user.send(to=address, **CODE), wait="sent")
    assert len(user.mails(address)) == 1 and campaign.show(batch)["accepted"] < MEMBERS


def paused_resumed_cancelled(campaign):
    """C62 to C66."""
    user = campaign.user
    batch = campaign.batch("spring", [f"member{number}@example.com" for number in range(MEMBERS)], "--rate", RATE, *CONSENT)
    wait_until(lambda: campaign.show(batch)["accepted"] >= 50, 30, "some of it")
    assert user.run("batch", "pause", batch)["paused"] is True
    stopped = campaign.stands(batch)
    assert 50 <= stopped < MEMBERS
    a_code_passes(campaign, batch)
    assert campaign.show(batch)["accepted"] == stopped
    user.run("batch", "resume", batch)
    wait_until(lambda: campaign.show(batch)["accepted"] > stopped, 30, "its going on")
    a_code_passes(campaign, batch)
    assert user.run("batch", "cancel", batch)["status"] == "cancelled"
    ended = campaign.stands(batch)
    assert stopped < ended < MEMBERS and len(user.mails("member")) == ended
    status, words = user.refused("batch", "start", batch)
    assert status == 1 and "cancelled" in words


def one_click_opts_out(campaign):
    """Capabilities 10g and 21a, finding 15: RFC 8058, over the address in the mail."""
    user = campaign.user
    mail = user.mail("member7@example.com")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = re.fullmatch(r"<(https://[^>]+)>", mail["List-Unsubscribe"].strip()).group(1)
    assert link.startswith(PUBLIC + "/v1/opt-out/")
    click = (urlsplit(link).path, b"List-Unsubscribe=One-Click", {"Content-Type": "application/x-www-form-urlencoded"})
    assert user.api("POST", *click)[0] == user.api("POST", *click)[0] == 200
    offer = {"to": "member7@example.com", "template": "spring", "consent": {"source": "membership form", "given_at": "2025-05-01T12:00:00Z"}}
    wait_until(lambda: user.api("POST", "/v1/notifications", offer)[1]["status"] == "suppressed", 20, "the opt-out being in force")
    before = len(user.mails("member7@example.com"))
    campaign.totals(campaign.batch("summer", [f"member{number}@example.com" for number in range(20)], *CONSENT), {"sent": 19, "suppressed": 1})
    assert len(user.mails("member7@example.com")) == before
    row = user.status(user.send(to="member7@example.com", **CODE), wait="sent")
    assert row["status"] == "sent", "what is no marketing comes"
    assert notification_of(mail) != row["id"]


def test_a_campaign():
    with story("webhook-receiver", STENTOR_RENDERER_PUBLIC_URL=PUBLIC) as user:
        user.template("spring", {"en-US": ("Spring", "Buy flowers: {{unsubscribe_url}}")}, category="marketing")
        user.settle()
        campaign = Campaign(user)
        whom_it_may_reach(campaign)
        paused_resumed_cancelled(campaign)
        one_click_opts_out(campaign)
