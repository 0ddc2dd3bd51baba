# SPDX-License-Identifier: Apache-2.0
"""A campaign to the recipients that a query finds (row C63 of the audit, document C's recipient_query): by label, locale and consent, counted before,
chosen page by page when it starts, and each of them once whatever dies."""
import json

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.integration.sending.test_batches import OPTIONS, call, check_each_member_once, mails_by_address, show, tell

PEOPLE = 3600
VARIABLES = {"name": "dear guest"}


def line(number):
    """Every third is no vip; every fifth speaks French; every seventh has not consented."""
    return json.dumps({
        "identity_type": "guest" if number % 2 else "user", "identity_id": f"p{number}", "locale": "fr-CH" if number % 5 == 0 else "de-AT",
        "labels": ["customer"] if number % 3 == 0 else ["customer", "vip"],
        "addresses": [{"channel": "email", "address": f"people{number}@example.com"}],
        "consents": [{"category": "marketing", "channel": "email", "granted": number % 7 != 0, "source": "form"}]})


def expected(label=None, french=None, consent=None, kind=None):
    return [i for i in range(PEOPLE) if (label != "vip" or i % 3) and (french is None or (i % 5 == 0) == french)
            and (not consent or i % 7) and (kind is None or (kind == "guest") == (i % 2 == 1))]


@pytest.fixture(scope="module")
def own():
    running = Pipeline(OPTIONS).start()
    for first in range(0, PEOPLE, 900):
        body = "\n".join(line(number) for number in range(first, first + 900)).encode()
        status, answer = call(running, "POST", "/v1/recipients/import", body)
        assert status == 200, answer
    page = running.folder / "spring.html"
    page.write_text("<p>Spring, {{name}}</p>")
    running.cli("template", "put", "spring", "--subject", "Spring", "--html", page, "--category", "marketing", "--require", "name:string")
    wait_until(lambda: running.postgres.query("SELECT count(*) FROM people.consents")[0][0] == PEOPLE, 60, "every recipient")
    wait_until(lambda: count(running, {})["complete"], 20, "the template")
    yield running
    running.stop()


def post(pipeline, query, **fields):
    return call(pipeline, "POST", "/v1/batches", {"name": "spring", "template": "spring", "variables": VARIABLES, "recipient_query": query, **fields})


def count(pipeline, query):
    status, answer = post(pipeline, query, dry_run=True)
    return answer if status == 200 else {"complete": False, "answer": answer}


def create(pipeline, query, **fields):
    status, batch = post(pipeline, query, **fields)
    assert status == 201, batch
    return batch


def test_a_dry_run_counts_whom_a_query_finds_and_makes_nothing(own):
    for query, many in [
            ({}, PEOPLE), ({"labels": "vip"}, len(expected("vip"))), ({"labels": ["vip", "customer"]}, len(expected("vip"))), ({"labels": "unknown"}, 0),
            ({"locales": ["fr"]}, len(expected(french=True))), ({"locales": ["fr-FR"]}, 0), ({"identity_types": "guest"}, len(expected(kind="guest"))),
            ({"labels": "vip", "locales": ["de"], "consent": True}, len(expected("vip", False, True))),
            ([{"labels": "vip"}, {"locales": "fr"}], len(set(expected("vip")) | set(expected(french=True))))]:
        assert count(own, query) == {"dry_run": True, "matched": many, "complete": True}, query
    assert call(own, "GET", "/v1/batches")[1]["data"] == []
    said = own.cli("batch", "create", "--name", "x", "--template", "spring", "--data", variables(own), "--label", "vip", "--consented", "--dry-run")
    assert f"{len(expected('vip', consent=True))} recipients match" in said


def variables(pipeline):
    path = pipeline.folder / "variables.json"
    path.write_text(json.dumps(VARIABLES))
    return path


def test_faults_of_a_query_name_the_field(own):
    good = {"name": "x", "template": "spring", "variables": VARIABLES}
    for body, field in [({**good, "recipient_query": {"label": "vip"}}, "recipient_query.label"), ({**good, "recipient_query": 7}, "recipient_query"),
                        ({**good, "recipient_query": [{}, {"locales": ["d_e"]}]}, "recipient_query[1].locales[0]"),
                        ({**good, "recipient_query": {}, "members": [{"to": "a@b.test"}]}, "members"), ({**good, "dry_run": True}, "dry_run"),
                        ({**good, "recipient_query": {}, "variables": {}}, "variables.name")]:
        status, problem = call(own, "POST", "/v1/batches", body)
        assert (status, problem["field"]) == (422, field), problem
    batch = create(own, {"labels": "vip"})
    assert batch["recipient_query"] == [{"labels": ["vip"]}] and batch["chosen"] is False
    status, problem = call(own, "PUT", f"/v1/batches/{batch['id']}/members?part=1", b'{"to": "a@b.test"}\n')
    assert status == 409 and "recipient_query" in problem["detail"]


def test_a_campaign_killed_while_it_chooses_and_while_it_sends_reaches_each_recipient_once(own):
    """Killed behind its second page of members, then behind a checkpoint."""
    ingest = own.services["ingest"]
    batch = create(own, {"labels": ["vip"], "locales": ["de"], "consent": True}, rate_per_second=2000)["id"]
    for point in ("batch.page_stored:2", "batch.moved:3"):
        ingest.stop()
        ingest.options["STENTOR_CRASH_AT"] = point
        ingest.start()
        del ingest.options["STENTOR_CRASH_AT"]
        if show(own, batch)["status"] == "draft":
            tell(own, batch, "start")
        assert ingest.child.wait(30) == -9, ingest.tail()
        assert f"crash point '{point.split(':')[0]}' reached" in ingest.tail()
        ingest.start()
    members = expected("vip", False, True)
    wait_until(lambda: show(own, batch)["status"] == "completed", 60, "the campaign")
    check_each_member_once(own, batch, len(members), "people")
    assert set(mails_by_address(own, "people")) == {f"people{i}@example.com" for i in members}
    assert show(own, batch)["chosen"] is True


def test_the_gate_judges_each_of_those_that_were_chosen(own):
    """Without `consent` in the query whoever has not consented is chosen, and then suppressed."""
    before = mails_by_address(own, "people")
    batch = create(own, {"labels": "vip", "locales": "fr"})["id"]
    tell(own, batch, "start")
    chosen = expected("vip", True)
    willing = expected("vip", True, True)
    totals = {"sent": len(willing), "suppressed": len(chosen) - len(willing)}
    wait_until(lambda: show(own, batch)["totals"] == totals, 60, "every end")
    assert show(own, batch)["members"] == len(chosen)
    assert set(mails_by_address(own, "people") - before) == {f"people{i}@example.com" for i in willing}


def test_members_are_those_of_the_start_and_a_query_that_finds_no_recipient_is_completed(own):
    batch = create(own, {"labels": "late"})["id"]
    empty = create(own, {"labels": "none-at-all"})["id"]
    own.cli("recipient", "put", "--identity", "guest:late", "--email", "late1@example.com", "--label", "late")
    wait_until(lambda: own.postgres.query("SELECT count(*) FROM people.labels WHERE label = 'late'")[0][0] == 1, 20, "the label")
    own.cli("recipient", "consent", json.loads(own.cli("recipient", "get", "--identity", "guest:late", "--json"))[0]["id"], "--grant", "marketing")
    tell(own, batch, "start")
    wait_until(lambda: show(own, batch)["totals"] == {"sent": 1}, 30, "the one that came after the draft")
    tell(own, empty, "start")
    wait_until(lambda: show(own, empty)["status"] == "completed", 30, "its end")
    assert show(own, empty)["members"] == 0 and show(own, empty)["totals"] == {}


def test_a_cancelled_batch_chooses_no_more(own):
    batch = create(own, {"labels": "customer", "consent": True}, rate_per_second=50)["id"]
    tell(own, batch, "start")
    wait_until(lambda: show(own, batch)["accepted"] > 0, 30, "its beginning")
    assert tell(own, batch, "pause")["paused"] is True
    assert tell(own, batch, "cancel")["status"] == "cancelled"
    wait_until(lambda: own.postgres.query(f"SELECT holder FROM ingest.batches WHERE id = '{batch}'")[0][0] is None, 10, "the stop")
    done = show(own, batch)
    assert done["members"] == len(expected(consent=True)) > done["accepted"] > 0
    assert own.postgres.query(f"SELECT count(data) FROM ingest.batch_chunks WHERE batch_id = '{batch}'")[0][0] == 0


def test_of_a_tenant_that_is_being_deleted_no_member_is_chosen(own):
    """Killed behind the first page of members; when ingest is back the tenant is going."""
    ingest = own.services["ingest"]
    batch = create(own, {"labels": "customer"})["id"]
    ingest.stop()
    ingest.options["STENTOR_CRASH_AT"] = "batch.page_stored:1"
    ingest.start()
    del ingest.options["STENTOR_CRASH_AT"]
    tell(own, batch, "start")
    assert ingest.child.wait(30) == -9, ingest.tail()
    own.cli("tenant", "put", "acme", "--status", "deleting")
    ingest.start()

    def ended():
        return own.postgres.query(f"SELECT status, reason, is_chosen FROM ingest.batches WHERE id = '{batch}'")[0]
    wait_until(lambda: ended()[0] == "failed", 30, "the end of the batch")
    assert ended() == ("failed", "the tenant is being deleted", False)
