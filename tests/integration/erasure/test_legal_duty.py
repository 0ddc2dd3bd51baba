# SPDX-License-Identifier: Apache-2.0
"""A person is erased of whom the law keeps something: what is of the class record opens for an auditor alone, until the duty ends."""
import json

import pytest

from tests.harness.holder import Holder
from tests.harness.orders import PLACED, Shop
from tests.harness.pipeline import Pipeline
from tests.harness.processes import SERVICES, wait_until
from tests.integration.erasure.test_certificate import certificate
from tests.integration.erasure.test_erase import GROUND, hold, release
from tests.integration.recipients.test_people import Api

DUTY = "HGB 257, AO 147"
MARKETING = "a coat in your size"


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(ack_wait_ms=3000, durable=True)
    running.storage = running.folder / "objects"
    running.start([*SERVICES, "order-saga"])
    running.erasure_key = running.folder / "erasure.key"
    running.erasure_key.write_text(running.cli("erase", "key"))
    running.shop = Shop(running).put_mails()
    yield running
    running.shop.close()
    running.stop()


@pytest.fixture(scope="module")
def api(pipeline):
    return Api(pipeline.api_port, pipeline.key)


def stentor(pipeline, *words, code=0, duty=DUTY, **settings):
    done = pipeline.run_cli(*words, "--json", STENTOR_LEGAL_DUTY=duty, STENTOR_STORAGE_URL=f"file://{pipeline.storage}",
                            STENTOR_ERASURE_KEY_FILE=str(pipeline.erasure_key), **settings)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if code == 0 and done.stdout.startswith("{") else done


class Customer:
    """Someone with a record who got a mail of marketing and the confirmation of an order."""
    numbers = iter(range(1, 100))

    def __init__(self, pipeline, api):
        number = next(self.numbers)
        self.pipeline, self.name, self.address = pipeline, f"Philippa{number}", f"philippa{number}@kept.example"
        status, body = api("POST", "/v1/recipients", {"identity_type": "user", "identity_id": f"k-{number}", "name": self.name, "addresses": [
            {"channel": "email", "address": self.address, "primary": True}]})
        assert status == 201, body
        self.id = body["id"]
        assert api("PUT", f"/v1/recipients/{self.id}/consents", [{"category": "marketing", "granted": True}])[0] == 200
        wait_until(lambda: pipeline.postgres.query("SELECT 1 FROM people.consents WHERE recipient_id = %s", self.id), 20, "the consent")
        self.marketing = self.send(category="marketing", variables={"name": MARKETING})
        self.record = self.send(category="billing", variables={"name": self.name})
        order = pipeline.shop.order(email=self.address).check_out(fullName=self.name).wait_state("Placed")
        wait_until(lambda: PLACED in order.mails(), 30, "the confirmation")
        mails = ("SELECT n.id FROM archiver.notifications n JOIN people.addresses a USING (tenant_id, address_hash)"
                 " WHERE a.recipient_id = %s AND n.recipient_id IS NULL")
        [[self.confirmation]] = wait_until(lambda: pipeline.postgres.query(mails, self.id), 20, "its row in history")
        pipeline.status(self.confirmation, wait="sent")

    def send(self, **fields):
        status, _, body = self.pipeline.post({"template": "welcome", "recipient_id": self.id, **fields})
        assert status == 202, body
        self.pipeline.status(body["id"], wait="sent")
        return body["id"]

    def erase(self, *words, **settings):
        return stentor(self.pipeline, "erase", "--recipient", self.id, "--ground", GROUND, *words, **settings)

    def content(self, id, *words, code=0):
        return stentor(self.pipeline, "content", id, "--ground", "audit 2026", "--requested-by", "auditor", *words, code=code)

    def opens(self):
        """Where a program that holds everything finds the person's name by a key that exists."""
        return Holder(self.pipeline).reads(self.name)[1]

    def end_duty(self, request):
        self.pipeline.postgres.query("UPDATE erasure.kept_keys SET until = now() WHERE request = %s RETURNING 1", request)


@pytest.fixture
def customer(pipeline, api):
    return Customer(pipeline, api)


def reads(pipeline, id):
    return [(entry["action"], entry["actor"], entry["ground"]) for entry in json.loads(
        pipeline.cli("audit-log", "list", "--kind", "read", "--target", id, "--json"))]


def test_what_the_law_keeps_opens_for_an_auditor_until_its_end(pipeline, customer):
    assert customer.content(customer.marketing)["id"] == customer.marketing
    erased = customer.erase()
    assert erased["state"] == "erased" and erased["kept"].startswith("2 record keys until 203") and erased["kept"].endswith(DUTY)
    assert customer.erase()["id"] == erased["id"], "a repeat is the same erasure"
    for words in ((), ("--kept",)):
        assert "stays sealed" in customer.content(customer.marketing, *words, code=1).stderr
    assert "stays sealed" in customer.content(customer.record, code=1).stderr, "no one reads it without asking for it"
    assert reads(pipeline, customer.record) == []
    for id in (customer.confirmation, customer.record):
        assert customer.name in json.dumps(customer.content(id, "--kept")["content"])
    assert reads(pipeline, customer.record) == [("content.shown", "auditor", "audit 2026")]
    assert not any(where.startswith(("table people", "stream PEOPLE")) for where in customer.opens())
    assert "table order_saga.order_state" in customer.opens()

    report = stentor(pipeline, "erase", "verify", erased["id"], "--text", customer.address)
    assert report["readable"] == 0 and report["issued"].startswith("erasure "), "and none that is final"
    said = certificate(pipeline, erased["id"])[2]
    assert said["kept"]["under"] == DUTY and said["kept"]["until"] > "2033" and len(said["kept"]["keys"]) == 2
    assert not {key["subject"] for key in said["kept"]["keys"]} & {key["subject"] for key in said["keys"]}

    customer.end_duty(erased["id"])
    killed = stentor(pipeline, "erase", "run", code=-9, STENTOR_CRASH_AT="erasure.records_ended")
    assert killed.stdout == ""
    assert customer.opens() == set(), "after its end nothing opens"
    stentor(pipeline, "erase", "run")
    assert "stays sealed" in customer.content(customer.record, "--kept", code=1).stderr
    actions = [entry["action"] for entry in json.loads(pipeline.cli("audit-log", "list", "--kind", "erasure", "--target", customer.id, "--json"))]
    assert actions.count("erasure.records_ended") == 1 and actions.count("erasure.done") == 1
    stentor(pipeline, "erase", "verify", erased["id"])
    assert pipeline.postgres.query("SELECT count(*) FROM erasure.open_requests()") == [(0,)]


def test_no_service_opens_what_is_kept_and_who_is_here_again_has_other_keys(pipeline, api, customer):
    erased = customer.erase()
    for service in ("ingest", "gateway", "renderer", "dispatcher"):
        pipeline.services[service].stop()
        pipeline.services[service].start()
    status, _, body = pipeline.post({"template": "welcome", "to": customer.address, "category": "billing", "variables": {"name": "Back"}})
    assert status == 202
    pipeline.status(body["id"], wait="sent")
    kept = "SELECT k.generation, max(d.generation) FROM erasure.kept_keys k JOIN keys.data_keys d USING (subject) WHERE k.request = %s GROUP BY 1"
    assert pipeline.postgres.query(kept, erased["id"]) == [(1, 3)]
    second = stentor(pipeline, "erase", "--address", customer.address, "--ground", GROUND, "--final")
    assert second["id"] != erased["id"] and second["kept"] == "none"
    assert customer.opens() == set(), "final: also what an earlier erasure kept"
    assert "stays sealed" in customer.content(customer.record, "--kept", code=1).stderr


def test_a_hold_outlasts_the_duty_and_without_a_duty_nothing_is_kept(pipeline, api):
    first, second = Customer(pipeline, api), Customer(pipeline, api)
    erased = first.erase()
    number = hold(pipeline, "--recipient", first.id)
    first.end_duty(erased["id"])
    stentor(pipeline, "erase", "run")
    assert first.name in json.dumps(first.content(first.record, "--kept")["content"])
    release(pipeline, number)
    stentor(pipeline, "erase", "run")
    assert first.opens() == set()
    assert second.erase(duty="")["kept"] == "none" and second.opens() == set()
    refused = second.erase(code=1, duty="x@y")
    assert "STENTOR_LEGAL_DUTY" in refused.stderr


def test_a_restored_database_learns_again_what_was_kept_and_what_ended(pipeline, api):
    """As after a restore: the tables of the erasure as they were before it, the keys as they were."""
    customer = Customer(pipeline, api)
    query = pipeline.postgres.query
    query("CREATE TABLE saved AS SELECT * FROM keys.data_keys")
    erased = customer.erase()

    def restore():
        query("DELETE FROM erasure.kept_keys WHERE request = %s", erased["id"])
        query("DELETE FROM erasure.destroyed_keys WHERE request = %s", erased["id"])
        query("DELETE FROM erasure.requests WHERE id = %s", erased["id"])
        query("DELETE FROM keys.data_keys d USING saved s WHERE d.subject = s.subject")
        query("INSERT INTO keys.data_keys SELECT * FROM saved")

    restore()
    replayed = stentor(pipeline, "erase", "replay")
    assert replayed["replayed"] == "1"
    assert "stays sealed" in customer.content(customer.record, code=1).stderr
    assert customer.name in json.dumps(customer.content(customer.record, "--kept")["content"]), "it is kept here, too"
    assert "stays sealed" in customer.content(customer.marketing, "--kept", code=1).stderr
    customer.end_duty(erased["id"])
    stentor(pipeline, "erase", "run")
    assert customer.opens() == set()
    restore()
    assert "1 erasures are not in this database" in pipeline.run_cli("migrate", admin=True).stdout
    stentor(pipeline, "erase", "replay")
    assert customer.opens() == set()
    assert stentor(pipeline, "erase", "replay")["replayed"] == "0"
