# SPDX-License-Identifier: Apache-2.0
"""The vendors with HTTP APIs, the routes to them, and the operator who rotates their credentials."""
import secrets
import threading
import time

from tests.chaos import channels
from tests.harness.processes import wait_until

VENDORS = ("resend", "sendgrid")  # the first knows keys, the second does not and cannot be asked
SHARE = 0.25  # of the mails that go over a route; the others go to SMTP without one
OPTIONS = {"STENTOR_VENDOR_ADDRESSES": "loopback", "STENTOR_VENDOR_CONNECT_MS": 2000, "STENTOR_VENDOR_CALL_MS": 3000}
EVERYTHING = "unsent,config,elsewhere,open,retry,degraded"
SETTLE_MS = 2000
DOMAIN = "chaos.test"

# recipients' domain: (what an unknown outcome is followed by, the vendors in order). Those of one step are joined by a space.
ROUTES = {
    "keyed." + DOMAIN: ("resend", ["resend", "sendgrid", "smtp"]),
    "moved." + DOMAIN: ("failover", ["sendgrid", "resend"]),
    "parked." + DOMAIN: ("park", ["sendgrid", "smtp"]),
    "counted." + DOMAIN: ("count_as_sent", ["sendgrid resend", "smtp"]),
}
NEVER_AGAIN = ("park", "count_as_sent")  # policies that send nothing twice; what is unknown there may not have been sent
UNTIL_S = 240  # longest time for one step of a rotation while everything breaks


def policy_of(address):
    """After an unknown outcome."""
    if "@" not in address:
        return channels.POLICIES[channels.channel_of(address)]
    return ROUTES.get(address.split("@")[1], ("resend",))[0]


class Rotation:
    """One vendor's credential at a time: staged, promoted, the old one revoked at the vendor and here."""

    def __init__(self, world):
        self.world = world
        self.active = {}  # vendor -> (credential, secret)
        self.number = 0
        self.rotated = 0
        self.lock = threading.RLock()

    def set_up(self):
        for vendor in VENDORS:
            self.rotate(vendor)
        for domain, (policy, steps) in ROUTES.items():
            words = [word for step, vendors in enumerate(steps) for vendor in vendors.split() for word in ("--fallback" if step else "--vendor", vendor)]
            self.world.cli("route", "put", domain.split(".")[0], *words, "--domain", domain, "--unknown", policy, "--fallback-on", EVERYTHING,
                           "--max-vendors", 3, "--settle-ms", SETTLE_MS)
        for name in ("dispatcher-1", "dispatcher-2"):
            wait_until(lambda: self.world.services[name].metric("stentor_dispatcher_routes") >= len(ROUTES), 30, f"the routes in {name}")

    def rotate(self, vendor, refused=False):
        """refused: the vendor has stopped to take the old secret before the operator knew of it."""
        with self.lock:
            self.number += 1
            before, made = self.active.get(vendor), (f"c{self.number}", secrets.token_hex(16))
            self.file(vendor, made[0]).write_text(made[1])
            self.world.vendors.accept(vendor, [made[1], *([before[1]] if before and not refused else [])])
            self.promote(vendor, *made)
            self.active[vendor] = made
            self.rotated += before is not None
        if before and not self.world.over.wait(1):
            self.world.vendors.accept(vendor, [self.active[vendor][1]])
            with self.lock:
                self.until("credential", "revoke", vendor, before[0], but="no such")

    def file(self, vendor, name):
        return self.world.credentials / f"{vendor}-{name}"

    def promote(self, vendor, name, _secret):
        self.until("credential", "put", vendor, name, "--reference", f"file:{self.file(vendor, name)}",
                   "--set", f"base_url=http://127.0.0.1:{self.world.route('vendors', vendor)}")
        self.until("credential", "promote", vendor, name)

    def until(self, *words, but=None):
        """Repeats a command as an operator does while the API has no answer. A restored store has forgotten some of what it names."""
        end, said = time.monotonic() + UNTIL_S, ""
        while time.monotonic() < end and not self.world.over.is_set():
            done = self.world.run_cli(*words)
            if done.returncode == 0 or but and done.returncode == 3:
                return
            said = (done.stdout + done.stderr).strip()
            self.world.over.wait(0.3)
        if not self.world.over.is_set():
            raise AssertionError(f"{' '.join(words)}: no success in {UNTIL_S} s: {said[-300:]}")

    def keep(self):
        """What a restored store has forgotten is put again. Returns whether anything had to be."""
        again = False
        with self.lock:
            for vendor, made in self.active.items():
                done = self.world.run_cli("credential", "show", vendor, made[0], "--json")
                if done.returncode == 3 or done.returncode == 0 and '"active"' not in done.stdout:
                    self.world.say(f"         the credential {made[0]} of {vendor} is put again: the restored store has forgotten it")
                    self.promote(vendor, *made)
                    again = True
        return again


def misbehave(world, fault):
    world.vendors.misbehave(fault.detail["vendor"], fault.detail["how"], fault.detail["share"])
    yield
    world.vendors.well(fault.detail["vendor"])


def network(world, fault):
    route = [f"vendors>{fault.detail['vendor']}"]
    if fault.kind == "vendor-refuse":
        world.proxy.refuse(route)
    else:
        world.proxy.stall(route, fault.detail["way"])
    yield
    world.proxy.heal(route, reset=fault.detail.get("reset", False))


def revoked(world, fault):
    """The vendor takes the secret no more: 401 or 403 until the operator has rotated it."""
    with world.rotation.lock:
        world.vendors.accept(fault.detail["vendor"], [])
        yield
        world.rotation.rotate(fault.detail["vendor"], refused=True)


def rotate(world, fault):
    yield
    world.rotation.rotate(fault.detail["vendor"])
