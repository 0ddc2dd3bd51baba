# SPDX-License-Identifier: Apache-2.0
"""Doubles for many mails, in a process of its own: they keep ids and times only. A chosen share of the requests meets a fault, and a
vendor takes any of several secrets, as during a rotation."""
import collections
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.harness.puppet import Puppet, serve  # noqa: E402
from tests.harness.vendor_doubles.server import Double, Fault  # noqa: E402


class Vendors(Puppet):
    """ports: name of the vendor -> where its double listens."""

    def __init__(self, ports, seed=1):
        super().__init__(__file__)
        self.ports, self.seed = ports, seed

    def start(self):
        super().start()
        self.tell(do="open", ports=self.ports, seed=self.seed)
        return self

    def accept(self, vendor, secrets):
        self.tell(do="accept", vendor=vendor, secrets=list(secrets))

    def misbehave(self, vendor, fault, share=1.0):
        """fault: the name of a Fault."""
        self.tell(do="misbehave", vendor=vendor, fault=fault, share=share)

    def well(self, vendor):
        self.tell(do="well", vendor=vendor)

    def counts(self):
        return self.tell(do="counts")

    def everything(self, path):
        """{vendor: {"kept": {id: [times]}, "wrong": requests that are not as the vendor documents, "faults": {name: met}, ...}}"""
        self.tell(do="write", path=str(path))
        return json.loads(Path(path).read_text())


# ---- the program ------------------------------------------------------------------------------------------------------------


class Count:
    """In place of a list that nothing reads again."""

    def __init__(self, note=lambda _: None):
        self.number, self.note = 0, note

    def append(self, item):
        self.number += 1
        self.note(item)


class Tally(Double):
    def __init__(self, vendor, port, seed):
        super().__init__(vendor, port=port)
        self.kept, self.wrong, self.met = {}, [], collections.Counter()
        self.mails, self.requests, self.refused = Count(self.keep), Count(), Count(self.note_refused)
        self.accepted, self.fault, self.share, self.chance = [self.secret], None, 0.0, random.Random(f"{seed}-{vendor}")
        documented = self.check

        def check(double, request):
            """Under the double's lock: the secret is that of this request, when the vendor takes it."""
            said = request.headers.get("authorization", "") + request.headers.get("x-postmark-server-token", "")
            self.secret = next((secret for secret in self.accepted if secret in said), "none of the vendor's secrets")
            return documented(double, request)

        self.check = check

    def keep(self, mail):
        self.kept.setdefault(mail.notification, []).append(round(time.time(), 3))

    def note_refused(self, refused):
        request, answer = refused
        if answer.status in (401, 403):
            self.met["wrong secret"] += 1
        elif len(self.wrong) < 20:
            self.wrong.append(f"{answer.status} {answer.body[:200]} to {request.method} {request.path} {request.body[:200]!r}")

    def _next_fault(self, kinds):
        with self.lock:
            if self.fault not in kinds or self.chance.random() >= self.share:
                return None
            self.met[self.fault.name] += 1
            return self.fault

    def misbehave(self, fault, share):
        with self.lock:
            self.fault, self.share = fault, share
        if fault is Fault.HANG_BEFORE:
            self._cut_all()

    def summary(self, whole=False):
        """whole: with the times of each mail, too. Requests are answered meanwhile, so it takes the double's lock."""
        with self.lock:
            said = {"mails": len(self.kept), "again": sum(len(times) > 1 for times in self.kept.values()), "requests": self.requests.number,
                    "faults": dict(self.met), "wrong": list(self.wrong)}
            return {**said, "kept": {key: list(times) for key, times in self.kept.items()}} if whole else said


async def obey(doubles, command):
    double = doubles.get(command.get("vendor"))
    if command["do"] == "open":
        doubles.update((name, Tally(name, port, command["seed"]).start()) for name, port in command["ports"].items())
    elif command["do"] == "accept":
        double.accepted = command["secrets"]
    elif command["do"] == "misbehave":
        double.misbehave(Fault[command["fault"]], command["share"])
    elif command["do"] == "well":
        double.misbehave(None, 0.0)
    elif command["do"] == "write":
        Path(command["path"]).write_text(json.dumps({name: double.summary(whole=True) for name, double in doubles.items()}))
    return {name: double.summary() for name, double in doubles.items()}


if __name__ == "__main__":
    the_doubles = {}
    serve(lambda command: obey(the_doubles, command))
