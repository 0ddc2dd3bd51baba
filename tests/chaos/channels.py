# SPDX-License-Identifier: Apache-2.0
"""The channels beside e-mail: one vendor of each, what is sent by it, and what a run has to find of it. A notification has an address of its own, so
that what a vendor kept by address is known by its id."""
import base64
import json
import os

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.harness.vendor_doubles import webpush

SHARE = float(os.environ.get("STENTOR_CHAOS_CHANNELS", "0.15"))  # of the notifications
# channel: its vendor; in-app has none. Each vendor's name is that of its double.
VENDORS = {"sms": "twilio", "whatsapp": "meta", "voice": "twilio_voice", "push": "webpush", "webhook": "slack"}
CHANNELS = [*VENDORS, "inapp"]
RECEIVER = "endpoint"  # a tenant's own, of its subscription
SECURE = ("webpush",)  # doubles that are reached over TLS alone
DOUBLES = (*VENDORS.values(), RECEIVER)
# After an unknown outcome, as common/routing says without a route. By number: failover, and there is no other vendor, so it parks. What comes
# twice by push is one on the device, and one in an inbox. (Twilio is asked before that, and what it never had is sent again.)
POLICIES = {"sms": "park", "whatsapp": "park", "voice": "park", "push": "resend", "webhook": "resend", "inapp": "resend"}
COLLAPSES = ("push",)
NUMBERS = {"sms": "+49151", "whatsapp": "+49152", "voice": "+49153"}
SLACK, TEMPLATE = "https://hooks.slack.com", "note"
HOOKED = "sms"  # the channel whose statuses go to the endpoint
TRIALS = -1     # in the place of an array's number
OPTIONS = {"STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_WEBHOOK_LADDER": "1,2,4,8,8,8,8,8,8,8", "STENTOR_WEBHOOK_CALL_MS": 3000,
           "STENTOR_WEBHOOK_LEASE_MS": 4000, "STENTOR_WEBHOOK_QUEUE_MS": 3000}
LOCALES = {
    "sms": {"text": "{{name}}, it is there."}, "whatsapp": {"reference": TEMPLATE, "parameters": ["{{name}}"]}, "voice": {"text": "Hello {{name}}."},
    "push": {"title": "Hello", "text": "{{name}}, it is there."}, "webhook": {"text": "{{name}} is here"}, "inapp": {"title": "Hello", "text": "{{name}}"}}


def channel_of(address):
    if "@" in address:
        return "email"
    if address.startswith("+"):
        return next(channel for channel, prefix in NUMBERS.items() if address.startswith(prefix))
    return "push" if address.startswith("{") else "webhook" if address.startswith("https:") else "inapp"


def place_of(address):
    """What the vendor of the address keeps it by, where the notification's id is not among what it is given."""
    return address.removeprefix(SLACK)


class Addresses:
    """browser: keys of a browser, whose push service is reached at `origin`."""

    def __init__(self, origin):
        self.origin, self.browser = origin, webpush.keys()

    def make(self, channel, chunk, index):
        name = f"{'t' if chunk == TRIALS else 'c'}{max(chunk, 0)}n{index}"
        if channel in NUMBERS:
            return f"{NUMBERS[channel]}{(chunk + 1) * 100 + index:08}"
        return {"push": json.dumps({"endpoint": f"{self.origin}/push/{name}", "keys": self.browser}),
                "webhook": f"{SLACK}/services/T{name}/B01/{'0a1b' * 6}", "inapp": f"user-{name}"}[channel]

    def body(self, channel, chunk, index):
        return {"to": self.make(channel, chunk, index), "channel": channel, "template": TEMPLATE, "variables": {"name": f"N{index}"}}


# ---- set up ----

def set_up(world):
    """Templates, a credential of each vendor, a notification of each channel that comes to its end, and the subscription. Returns {id: address}."""
    for channel in CHANNELS:
        status, _, said = world.post({"key": TEMPLATE, "version": "1.0.0", "channel": channel, "category": "transactional",
                                      "locales": [{"locale": "en-US", **LOCALES[channel]}]}, path="/v1/templates")
        assert status == 201, said
    world.vendors.template("meta", TEMPLATE, "en_US", ["body"])
    for vendor in VENDORS.values():
        put_credential(world, vendor)
    sent = try_each(world)
    subscribe(world)
    return sent


def put_credential(world, vendor):
    account = world.vendors.accounts[vendor]
    words = [word for name, value in account["settings"].items() for word in ("--set", f"{name}={value}")]
    if vendor not in SECURE:  # a browser's endpoint says itself where it is
        words += ["--set", f"base_url=http://127.0.0.1:{world.route('vendors', vendor)}"]
    if vendor != "slack":
        file = world.credentials / f"{vendor}-main"
        file.write_text(account["secret"])
        words += ["--reference", f"file:{file}"]
    world.cli("credential", "put", vendor, "main", *(["--key-id", account["key_id"]] if account["key_id"] else []), *words)
    world.cli("credential", "promote", vendor, "main")


def try_each(world):
    sent = {}
    for index, channel in enumerate(CHANNELS):
        body, said = world.addresses.body(channel, TRIALS, index), []

        def is_taken(body=body, said=said):
            said[:] = world.post(body)[::2]
            return said[0] == 202
        try:
            wait_until(is_taken, 20, f"{channel} being taken")
        except AssertionError as error:
            raise AssertionError(f"{error}: {said}") from None
        sent[said[1]["id"]] = body["to"]
    for identity, address in sent.items():
        shown = world.status(identity, wait="sent", timeout=60)
        assert shown["status"] in ("sent", "delivered"), (channel_of(address), shown)
    return sent


def subscribe(world):
    made = json.loads(world.cli("webhook", "create", "--name", "chaos", "--url", f"http://127.0.0.1:{world.route('vendors', RECEIVER)}/hooks",
                                "--channel", HOOKED, "--rate-per-s", 500, "--in-flight", 16, "--disable-after", 1000, "--json"))
    world.vendors.know(RECEIVER, made["secret"])
    for name in ("webhook-1", "webhook-2"):
        wait_until(lambda: world.services[name].metric("stentor_webhook_subscriptions") >= 1, 30, f"the subscription in {name}")


# ---- what a run has to find ----

def inboxes(world, accepted):
    """As a double has it: {"kept": {id: [times]}}."""
    kept = {}
    for identity, at in world.postgres.query("SELECT notification_id, extract(epoch FROM created_at)::float8 FROM feed.items"):
        kept.setdefault(identity, []).append(at)
    missing = [i for i, address in accepted.items() if channel_of(address) == "inapp" and i not in kept]
    return {"kept": kept, "wrong": [], "mails": len(kept), "requests": len(kept), "faults": {}, "missing": missing}


class Hooks:
    """The statuses that the subscription lets through, as STATUS has them: event id -> (notification, status)."""

    def __init__(self, world, before):
        """before: notifications from before the subscription."""
        self.world, self.before, self.next, self.wanted = world, before, 1, {}

    def read(self):
        """Goes on where it was."""
        client, status = NatsClient(self.world.nats.port), messages(self.world).NotificationStatus
        try:
            while (found := self.next_of(client)) is not None:
                self.next = found[0] + 1
                event = status.FromString(found[1])
                if event.meta.notification_id not in self.before:
                    self.wanted[event.meta.event_id] = (event.meta.notification_id, found[2].rpartition(".")[2])
        finally:
            client.close()
        return self.wanted

    def next_of(self, client):
        asked = json.dumps({"seq": self.next, "next_by_subj": f"ntf.status.{TENANT}.{HOOKED}.*"}).encode()
        answer = json.loads(client.request("$JS.API.STREAM.MSG.GET.STATUS", asked))
        if "error" in answer:
            assert answer["error"]["code"] == 404, answer
            return None
        message = answer["message"]
        return message["seq"], base64.b64decode(message.get("data", "")), message["subject"]

    def missing(self, posts):
        return sorted(set(self.wanted) - set(posts))

    def story(self, identity):
        notification, status = self.wanted.get(identity, ("?", "?"))
        rows = self.world.postgres.query(
            "SELECT event_type, state, turn, attempt, owner, claimed_at::text, finished_at::text, next_attempt_at::text, error, status_code"
            " FROM webhooks.deliveries WHERE event_id = %s", identity)
        return f"  the status {status} of {notification}, event {identity}: {rows or 'no delivery'}"
