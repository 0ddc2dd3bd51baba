# SPDX-License-Identifier: Apache-2.0
"""A person with a record, mails, a digest and waiting requests is erased: keys, rows and events, whoever is killed, and under a hold."""
import json
import re
import time
from urllib.parse import quote

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import HOME, wait_until
from tests.integration.recipients.test_people import Api

POINTS = [point for point in re.findall(r'X\("(erasure\.[a-z_]+)", "erasure"', (HOME / "common" / "base" / "crash.h").read_text())
          if point not in ("erasure.certified", "erasure.replayed", "erasure.records_ended")]  # test_certificate, test_restored, test_legal_duty
PLATFORM = HOME / "deploy" / "local" / "platform"
GROUND = "Art. 17 GDPR"


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(ack_wait_ms=3000).start()
    running.cli("template", "put", "digest", "--from", PLATFORM / "digest.json", tenant="platform")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def api(pipeline):
    return Api(pipeline.api_port, pipeline.key)


class Person:
    """A person with a record, a sent mail, one to the address alone, one that waits, and an item of a digest."""
    numbers = iter(range(1, 1000))

    def __init__(self, pipeline, api):
        self.pipeline, self.api = pipeline, api
        self.number = next(self.numbers)
        self.name, self.address = f"Zacharias{self.number}", f"zacharias{self.number}@erased.example"
        self.identity = f"u-{self.number}"
        status, body = api("POST", "/v1/recipients", {
            "identity_type": "user", "identity_id": self.identity, "name": self.name, "labels": ["vip", "admin"], "addresses": [
                {"channel": "email", "address": self.address, "primary": True}]})
        assert status == 201, body
        self.id = body["id"]
        status, body = api("PUT", f"/v1/recipients/{self.id}/preferences", [
            {"category": "social", "channel": "email", "frequency": "weekly", "at": "08:30", "weekday": 3}])
        assert status in (200, 204), body
        self.sent = [self.send(recipient_id=self.id), self.send(to=self.address)]
        for notification in self.sent:
            pipeline.status(notification, wait="sent")
        later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))
        self.waiting = self.send(recipient_id=self.id, scheduled_for=later)
        self.item = wait_until(self.gathered, 20, "the digest's template reaching ingest")
        wait_until(lambda: self.count("digest_flusher.due_work", "notification_id = %s", self.waiting) == 1, 20, "the waiting request")

    def send(self, **fields):
        status, _, body = self.pipeline.post({"template": "welcome", "variables": {"name": self.name}, **fields})
        assert status == 202, body
        return body["id"]

    def gathered(self):
        """An item in an open window, once there is a template for the digest."""
        _, _, body = self.pipeline.post({"template": "welcome", "variables": {"name": self.name}, "recipient_id": self.id, "category": "social"})
        if body["status"] != "scheduled":
            return None
        wait_until(lambda: self.count("digest_flusher.digest_items", "notification_id = %s", body["id"]) == 1, 20, "the item in its window")
        return body["id"]

    def count(self, table, where, *params):
        return self.pipeline.postgres.query(f"SELECT count(*) FROM {table} WHERE {where}", *params)[0][0]

    def erase(self, *words, code=0, **settings):
        words = words or ("--recipient", self.id)
        done = self.pipeline.run_cli("erase", *words, "--ground", GROUND, "--requested-by", "ticket-17", "--json", **settings)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout else done

    def keys(self):
        """[(wrapped, destroyed, restricted), ...] of the recipient's two keys and the address's."""
        return self.pipeline.postgres.query(
            "SELECT d.wrapped IS NOT NULL, d.destroyed_at IS NOT NULL, d.restricted_by IS NOT NULL FROM keys.data_keys d WHERE d.subject IN"
            " (SELECT unnest(q.subjects) FROM erasure.requests q WHERE q.recipient_id = %s) ORDER BY 1, 2", self.id)

    def entries(self):
        return [(entry["action"], entry["ground"], entry["actor"]) for entry in json.loads(
            self.pipeline.cli("audit-log", "list", "--kind", "erasure", "--target", self.id, "--json"))]

    def assert_keys_gone(self):
        assert set(self.keys()) == {(False, True, False)}

    def assert_erased(self):
        assert len(self.keys()) >= 3 and set(self.keys()) == {(False, True, False)}
        for table in ("people.recipients", "people.addresses", "people.preferences", "digest_flusher.preferences"):
            assert self.count(table, "recipient_id = %s", self.id) == 0, table
        # What the fold of the removal takes, after the erasure has cleared the rest.
        wait_until(lambda: self.count("people.labels", "recipient_id = %s", self.id) == 0, 20, "the labels gone")
        assert self.count("erasure.requests", "recipient_id = %s AND state = 'erased' AND announced_at IS NOT NULL", self.id) == 1
        assert self.entries() == [("erasure.requested", GROUND, "ticket-17"), ("erasure.done", GROUND, "ticket-17")]
        for notification in (self.waiting, self.item):
            shown = self.pipeline.status(notification, wait="suppressed")
            assert (shown["status"], shown["reason_code"]) == ("suppressed", "recipient_erased")
        assert [self.pipeline.status(notification)["status"] for notification in self.sent] == ["sent", "sent"]


@pytest.fixture
def person(pipeline, api):
    return Person(pipeline, api)


def test_an_erased_person_has_no_key_no_record_and_nothing_under_way(person, api):
    erased = person.erase()
    assert (erased["state"], erased["keys"], erased["recipient"]) == ("erased", "3", person.id)
    assert json.loads(erased["cleared"])["people.addresses"] == 1
    person.assert_erased()
    assert api("GET", f"/v1/recipients/{person.id}")[0] == 404
    removed = person.count("erasure.destroyed_keys", "request = %s AND length(wrapped_sha256) = 32", erased["id"])
    assert removed == 3
    assert person.erase()["id"] == erased["id"], "a repeat is the same erasure"
    listed = json.loads(person.pipeline.cli("erase", "list", "--limit", "1", "--json"))
    assert [(one["id"], one["state"], one["ground"], one["keys"], one["announced"]) for one in listed] == [(erased["id"], "erased", GROUND, 3, True)]
    assert person.pipeline.cli("erase", "list", "--tenant", "globex") == ""


def test_a_person_is_found_by_identity_and_by_address(pipeline, api):
    first, second = Person(pipeline, api), Person(pipeline, api)
    assert first.erase("--identity", "user:" + first.identity)["recipient"] == first.id
    first.assert_erased()
    assert second.erase("--address", second.address.upper())["recipient"] == second.id
    second.assert_erased()
    stranger = first.send(to="stranger@erased.example")
    pipeline.status(stranger, wait="sent")
    assert first.erase("--address", "stranger@erased.example")["keys"] == "1"
    unknown = first.erase("--address", "unknown@erased.example", code=3)
    assert "nothing is known" in unknown.stderr
    first.erase("--identity", "user:" + first.identity, code=3)
    first.erase("--identity", "user", code=2)
    first.erase(code=2, *("--recipient", first.id, "--address", first.address))


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_it_goes_on(person, point):
    killed = person.erase(code=-9, STENTOR_CRASH_AT=point)
    assert killed.stdout == ""
    assert person.count("erasure.requests", "recipient_id = %s AND announced_at IS NULL", person.id) == 1
    if POINTS.index(point) % 2 == 0:
        person.pipeline.cli("erase", "run")
    else:
        person.erase()
    person.assert_erased()


def hold(pipeline, *words):
    return json.loads(pipeline.cli("hold", "set", "--ground", "case 12 O 34/26", "--by", "legal", "--json", *words))["hold"]


def release(pipeline, number):
    pipeline.cli("hold", "release", number, "--by", "legal")


def restart(pipeline, *services):
    """Their cached keys are a minute old at most; a test does not wait for that."""
    for service in services:
        pipeline.services[service].stop()
        pipeline.services[service].start()


def test_under_a_hold_the_person_is_restricted_and_erased_when_it_ends(person, pipeline, api):
    number = hold(pipeline, "--recipient", person.id)
    restricted = [(False, True, True)] + [(True, False, True)] * 3  # the address has no key but for what may have to be kept
    try:
        held = person.erase()
        assert held["state"] == "restricted" and "case 12 O 34/26" in held["hold"]
        assert person.keys() == restricted, "the keys are kept, and no program uses them"
        restart(pipeline, "ingest", "gateway")
        status, shown = api("GET", f"/v1/recipients/{person.id}?reveal=true")
        assert status == 200 and person.address not in json.dumps(shown) and person.name not in json.dumps(shown)
        stopped = [person.send(recipient_id=person.id), person.send(to=person.address)]
        for notification in stopped:
            assert pipeline.status(notification, wait="suppressed")["status"] == "suppressed"
        assert person.keys() == restricted, "no other key was made"
        pipeline.cli("erase", "run")
        assert person.keys() == restricted
    finally:
        release(pipeline, number)
    pipeline.cli("erase", "run")
    person.assert_erased()
    restart(pipeline, "ingest")
    pipeline.status(person.send(to=person.address), wait="sent")  # who is here again has a new key


def test_a_hold_is_of_a_tenant_a_person_or_a_unit_and_ends_by_time_or_release(pipeline, api):
    first, second = Person(pipeline, api), Person(pipeline, api)
    number = hold(pipeline, "--address", first.address)
    assert second.erase()["state"] == "erased", "it is of one person"
    assert first.erase("--identity", "user:" + first.identity)["state"] == "restricted"
    listed = json.loads(pipeline.cli("hold", "list", "--json"))
    assert [(one["id"], one["tenant"], one["ground"], one["by"]) for one in listed] == [(int(number), "acme", "case 12 O 34/26", "legal")]
    release(pipeline, number)
    assert pipeline.run_cli("hold", "release", number).returncode == 3
    assert json.loads(pipeline.cli("hold", "list", "--json")) == []
    short = hold(pipeline, "--tenant", "acme", "--until", "2s")
    assert first.erase()["state"] == "restricted"
    wait_until(lambda: first.erase()["state"] == "erased", 20, "the end of the hold")
    first.assert_keys_gone()
    ended = {one["id"]: one for one in json.loads(pipeline.cli("hold", "list", "--all", "--json"))}
    assert ended[int(number)]["released"] != "" and ended[int(short)]["until"] != ""
    actions = [entry["action"] for entry in json.loads(pipeline.cli("audit-log", "list", "--kind", "hold", "--json"))]
    assert actions.count("hold.set") - actions.count("hold.released") == 1
    for words in ([], ["--unit", "notifications/record/2020-01"], ["--tenant", "ACME"], ["--recipient", first.id, "--unit", "x"]):
        assert pipeline.run_cli("hold", "set", "--ground", "none", *words).returncode in (1, 2), words


def test_a_ground_with_an_address_is_refused_before_anything_is_done(person):
    refused = person.pipeline.run_cli("erase", "--recipient", person.id, "--ground", f"asked by {quote(person.address)}@x")
    assert refused.returncode == 2 and "no address" in refused.stderr
    assert person.count("erasure.requests", "recipient_id = %s", person.id) == 0
