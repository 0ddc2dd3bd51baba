# SPDX-License-Identifier: Apache-2.0
"""What happens when: made from the seed alone, so the same seed breaks the same things at the same times."""
import dataclasses
import random

from tests.chaos import channels
from tests.chaos.vendors import VENDORS

REPLICAS = {"ingest": 2, "gateway": 1, "renderer": 2, "dispatcher": 2, "archiver": 2, "digest-flusher": 2, "webhook-receiver": 1, "webhook": 2}
MEMBERS = [f"{name}-{number + 1}" for name, count in REPLICAS.items() for number in range(count)]
SMTP_USERS = ["dispatcher-1", "dispatcher-2"]

# kind: how often it is in the deck that is shuffled and dealt. Every kind comes before any comes again.
DECK = {
    "kill": 3, "kill-many": 2, "restart": 1, "freeze": 3, "freeze-nats": 1, "freeze-postgres": 1,
    "nats-kill": 2, "postgres-kill": 1, "postgres-stop": 1, "postgres-backend": 1,
    "cut": 2, "refuse": 2, "slow": 2, "stall": 2, "disk": 1,
    "smtp-hang": 1, "smtp-4xx": 1, "smtp-5xx": 1, "smtp-reset": 1,
    "vendor-refuse": 1, "vendor-stall": 1, "vendor-hang": 1, "vendor-cut": 1, "vendor-429": 1, "vendor-500": 1, "vendor-503": 1, "vendor-401": 1,
    "rotate": 1,
}
VENDOR_FAULTS = {  # of the double: how, and the share of the requests that meet it
    "vendor-hang": (["HANG_BEFORE", "HANG_AFTER_BODY"], 0.1), "vendor-cut": (["CUT_BEFORE", "CUT_AFTER_BODY", "CUT_IN_ANSWER"], 0.2),
    "vendor-429": (["THROTTLE"], 0.5), "vendor-500": (["ERROR", "ERROR_AFTER"], 0.2), "vendor-503": (["UNAVAILABLE"], 0.5),
}
ANY_VENDOR = (*VENDORS, *channels.DOUBLES)  # of each channel, and the endpoint of a tenant's webhook
FIRST_S, LAST_S = 2.0, 3.0  # quiet at the beginning, and at the end


@dataclasses.dataclass
class Fault:
    at: float  # seconds since the load began
    kind: str
    victims: list
    seconds: float  # how long it is broken
    detail: dict

    def __str__(self):
        more = " ".join(f"{name}={value}" for name, value in self.detail.items())
        return f"{self.at:6.1f} s  {self.kind:<17} {self.seconds:4.1f} s  {','.join(self.victims):<40} {more}".rstrip()

    @property
    def resources(self):
        """What no other fault may break at the same time: what it restarts, or whose state it sets."""
        if self.kind in ("cut", "refuse", "slow", "stall"):
            return {f"net {self.detail['to']}"}
        if self.kind.startswith("smtp-"):
            return {"sink"}
        if self.kind in ("vendor-401", "rotate"):
            return {f"secret {self.detail['vendor']}"}
        if self.kind.startswith("vendor-"):
            return {f"vendor {self.detail['vendor']}"}
        return {"nats"} if self.kind in ("nats-kill", "freeze-nats", "disk", "restore") else set(self.victims)


def kinds():
    return [*DECK, "restore"]


def make(seed, seconds, only=None):
    """The list of faults of a run. `only`: kinds to choose from, in place of all."""
    chance = random.Random(f"stentor-chaos-{seed}")
    cards = {kind: DECK.get(kind, 1) for kind in (only or DECK)}
    cards.pop("restore", None)
    faults, busy_until, deck = [], {}, []
    at = FIRST_S
    while cards and at < seconds - LAST_S:
        if not deck:
            deck = [kind for kind, count in cards.items() for _ in range(count)]
            chance.shuffle(deck)
        fault = _one(chance, at, deck.pop())
        fault.at = round(max([at, *(busy_until.get(r, 0) for r in fault.resources)]), 1)
        if fault.at + fault.seconds < seconds:
            faults.append(fault)
            for resource in fault.resources:
                busy_until[resource] = fault.at + fault.seconds + 2.5
        at += chance.uniform(0.8, 2.6)
    if not only or "restore" in only:
        _add_restore(chance, faults, seconds)
    return sorted(faults, key=lambda fault: fault.at)


def _one(chance, at, kind):
    victims, seconds, detail = ["nats"], chance.uniform(0.2, 2.0), {}
    if kind in ("kill", "restart"):
        victims = [chance.choice(MEMBERS)]
    elif kind == "kill-many":
        victims = sorted(chance.sample(MEMBERS, chance.randint(2, len(MEMBERS))))
    elif kind == "freeze":
        victims, seconds = [chance.choice(MEMBERS)], chance.uniform(5.0, 9.0)  # past the ack wait (3 s) and the lease (4 s)
    elif kind in ("freeze-nats", "freeze-postgres"):
        victims, seconds = [kind.removeprefix("freeze-")], chance.uniform(3.0, 12.0)
    elif kind.startswith("postgres"):
        victims = ["postgres"]
    elif kind in ("cut", "refuse", "slow", "stall"):
        victims, seconds, detail = _network(chance, kind)
    elif kind == "disk":
        seconds, detail = chance.uniform(2.0, 6.0), {"left": chance.choice([0, 4096, 262144])}
    elif kind.startswith("smtp-"):
        share = {"smtp-hang": 0.05, "smtp-4xx": 0.3, "smtp-5xx": 0.1, "smtp-reset": 0.1}[kind]
        victims, seconds, detail = ["sink"], chance.uniform(3.0, 7.0), {"share": round(share * chance.uniform(0.5, 2.0), 3)}
    elif kind.startswith("vendor-") or kind == "rotate":
        victims, seconds, detail = _vendor(chance, kind)
    return Fault(at, kind, victims, round(seconds, 1), detail)


def _vendor(chance, kind):
    vendor = chance.choice(VENDORS if kind in ("vendor-401", "rotate") else ANY_VENDOR)
    detail, seconds = {"vendor": vendor}, 0.0 if kind == "rotate" else chance.uniform(3.0, 7.0)
    if kind in VENDOR_FAULTS:
        how, share = VENDOR_FAULTS[kind]
        detail |= {"how": chance.choice(how), "share": round(share * chance.uniform(0.5, 2.0), 3)}
    if kind == "vendor-stall":
        detail |= {"way": chance.choice(["both", "up", "down"]), "reset": chance.random() < 0.5}
    return [vendor], seconds, detail


def _network(chance, kind):
    to = chance.choice(["nats", "nats", "postgres", "postgres", "smtp"])
    users = SMTP_USERS if to == "smtp" else MEMBERS
    victims = sorted(chance.sample(users, chance.choice([1, 2, len(users)])))
    detail = {"to": to}
    if kind == "slow":
        detail["ms"] = chance.choice([5, 20, 100, 400])
    if kind == "stall":
        detail |= {"way": chance.choice(["both", "up", "down"]), "reset": chance.random() < 0.5}
    return victims, 0.0 if kind == "cut" else chance.uniform(1.0, 8.0), detail


def _add_restore(chance, faults, seconds):
    """The store of NATS as it was up to ten seconds earlier, once, when nothing else is done to NATS."""
    age = round(min(chance.uniform(3.0, 10.0), seconds / 4), 1)
    taken = round(chance.uniform(FIRST_S, max(FIRST_S, seconds - age - LAST_S - 3)), 1)
    fault = Fault(round(taken + age, 1), "restore", ["nats"], 1.0, {"taken": taken, "audit": chance.choice(["at once", "at the end"])})
    faults[:] = [f for f in faults if "nats" not in f.resources or f.at + f.seconds + 2.5 < fault.at or f.at > fault.at + 4] + [fault]
