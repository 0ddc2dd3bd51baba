# SPDX-License-Identifier: Apache-2.0
"""Doubles for many mails, in a process of its own: they keep ids (where a vendor is given none, addresses) and times only. A chosen share of the
requests meets a fault, and a vendor takes any of several secrets, as during a rotation."""
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
    """ports: name of the vendor -> where its double listens; over TLS those of `secure`, whose certificates are in `folder`. `accounts`: secret,
    key_id and settings of each, for its credential."""

    def __init__(self, ports, seed=1, secure=(), folder=None):
        super().__init__(__file__)
        self.ports, self.seed, self.secure, self.folder = ports, seed, secure, folder
        self.accounts = {}

    def start(self):
        super().start()
        self.tell(do="open", ports=self.ports, seed=self.seed, secure=list(self.secure), folder=self.folder and str(self.folder))
        self.accounts = self.tell(do="accounts")
        return self

    def know(self, vendor, secret):
        """The secret that the double checks by, where the other side has made it."""
        self.tell(do="know", vendor=vendor, secret=secret)

    def template(self, vendor, name, language, parts):
        """One that the vendor knows: the kinds of its parameters."""
        self.tell(do="template", vendor=vendor, name=name, language=language, parts=list(parts))

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


class Found(list):
    """In place of a list that the vendor is asked about."""

    def __init__(self, note):
        super().__init__()
        self.note = note

    def append(self, item):
        super().append(item)
        self.note(item)


ASKED = ("twilio",)  # vendors that are asked what they took


class Tally(Double):
    def __init__(self, vendor, port, seed, folder=None):
        super().__init__(vendor, folder, port=port)
        self.kept, self.wrong, self.met = {}, [], collections.Counter()
        self.mails = Found(self.keep) if vendor in ASKED else Count(self.keep)
        self.requests, self.refused = Count(), Count(self.note_refused)
        self.accepted, self.fault, self.share, self.chance = None, None, 0.0, random.Random(f"{seed}-{vendor}")
        documented = self.check

        def check(double, request):
            """Under the double's lock: the secret is that of this request, when the vendor takes it."""
            if self.accepted is not None:
                said = request.headers.get("authorization", "") + request.headers.get("x-postmark-server-token", "")
                self.secret = next((secret for secret in self.accepted if secret in said), "none of the vendor's secrets")
            return documented(double, request)

        self.check = check

    def keep(self, mail):
        self.kept.setdefault(mail.notification or mail.to[0], []).append(round(time.time(), 3))

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
        doubles.update((name, Tally(name, port, command["seed"], Path(command["folder"]) if name in command["secure"] else None).start())
                       for name, port in command["ports"].items())
    elif command["do"] == "accounts":
        return {name: {"secret": double.secret, "key_id": double.key_id, "settings": double.settings} for name, double in doubles.items()}
    elif command["do"] == "know":
        double.secret = command["secret"]
    elif command["do"] == "template":
        double.templates[command["name"], command["language"]] = command["parts"]
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
