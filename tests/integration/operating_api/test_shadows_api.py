# SPDX-License-Identifier: Apache-2.0
"""A version tried on the past requests of its template, as a job: what would differ, without anything sent and without personal data."""
import contextlib
import json
import signal
import uuid
from pathlib import Path

import pytest

from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.integration.operating_api.test_audits_api import DIED, armed, hurry
from tests.integration.operating_api.test_dead_letters_api import ask, slug

OTHER = "globex"
OPEN = ("waiting", "running")
NAMES = ["Alice", "Böb", "Chloé"]


@pytest.fixture(scope="module")
def world():
    running = Pipeline({"STENTOR_RETRY_LADDER": "1"}, durable=True).start()
    running.cli("tenant", "put", OTHER)
    publish(running, "1.0.0", "active", "Bill {{n}} for {{name}}", "<p>Dear {{name}},</p>\n<p>please pay {{total}}.</p>")
    body = [{"to": f"{i}@example.com", "template": "bill", "variables": {"name": name, "n": i, "total": 10 + i}} for i, name in enumerate(NAMES)]
    wait_until(lambda: running.post(body[0])[0] == 202, 20, "the template reaching ingest")
    sent = [running.send(**one) for one in body[1:]]
    for notification in sent:
        running.status(notification, wait="sent")
    yield running
    running.stop()


def publish(pipeline, version, status, subject, html, tenant=TENANT, **fields):
    document = {"key": "bill", "version": version, "status": status, "category": "billing", "locales": [{"locale": "en", "subject": subject, "html": html}], **fields}
    answer = ask(pipeline, "POST", "/v1/templates", document, tenant)
    assert answer[0] == 201, answer


def begin(pipeline, version, tenant=TENANT, **body):
    status, job = ask(pipeline, "POST", "/v1/templates/bill/shadow", {"version": version, **body}, tenant)
    assert status == 202 and job["state"] in OPEN and job["result"] is None, job
    return job["id"]


def shown(pipeline, job, tenant=TENANT):
    status, seen = ask(pipeline, "GET", f"/v1/shadows/{job}", tenant=tenant)
    assert status == 200, seen
    return seen


def ended(pipeline, job, seconds=60):
    def seen():
        now = shown(pipeline, job)
        return now["state"] not in OPEN and now
    return wait_until(seen, seconds, "the job's end")


def lines(difference, part):
    found = [one["lines"] for one in difference["parts"] if one["part"] == part]
    return [(line["op"], line["text"]) for line in found[0]] if found else None


def test_a_draft_is_compared_with_what_was_sent_and_no_value_is_shown(world):
    before = len(world.mailbox.mails())
    publish(world, "2.0.0-rc.1", "draft", "Your bill {{n}}, {{name}}", "<p>Dear {{name}},</p>\n<p>please pay {{total}}.</p>")
    done = ended(world, begin(world, "2.0.0-rc.1"))
    result = done["result"]
    assert (done["state"], done["error"], done["template"], done["channel"], done["days"], done["limit"]) == ("done", None, "bill", "email", 7, 10000)
    assert result["different"] == result["compared"] == result["scanned"] >= len(NAMES) and result["complete"] is True
    assert (result["same"], result["failed"], result["fixed"], result["failed_both"], result["reasons"]) == (0, 0, 0, 0, [])
    [difference] = result["differences"]
    assert difference["count"] == result["different"] and difference["version"] == "1.0.0" and difference["cut"] is False
    assert ask(world, "GET", f"/v1/notifications/{difference['notification_id']}")[1]["template"] == "bill"
    assert [part["part"] for part in difference["parts"]] == ["subject"]
    assert lines(difference, "subject")[1:] == [("-", "Bill {{n}} for {{name}}"), ("+", "Your bill {{n}}, {{name}}")]
    stored = world.postgres.query("SELECT result::text || parameters::text FROM gateway.jobs WHERE id = %s", done["id"])[0][0]
    assert not any(name in stored or json.dumps(name)[1:-1] in stored for name in NAMES) and "@example.com" not in stored
    assert len(world.mailbox.mails()) == before


def test_the_same_content_is_the_same_and_other_parts_and_lines_are_named(world):
    publish(world, "2.1.0", "draft", "Bill {{n}} for {{name}}", "<p>Dear {{name}},</p>\n<p>please pay {{total}}.</p>")
    same = ended(world, begin(world, "2.1.0"))["result"]
    assert same["same"] == same["compared"] >= len(NAMES) and same["differences"] == []
    publish(world, "2.2.0", "draft", "Bill {{n}} for {{name}}", "<p>Dear {{name}},</p>\n<p>you owe {{number total \"0.00\"}}.</p>")
    html = lines(ended(world, begin(world, "2.2.0"))["result"]["differences"][0], "html")
    assert ("-", "<p>please pay {{total}}.</p>") in html and ("+", "<p>you owe {{number total \"0.00\"}}.</p>") in html, html


def test_what_would_fail_is_counted_with_its_reason(world):
    publish(world, "3.0.0", "draft", "Bill {{iban}}", "x", variables=[{"name": "iban", "required": True}])
    result = ended(world, begin(world, "3.0.0"))["result"]
    assert result["failed"] == result["compared"] >= len(NAMES)
    assert result["reasons"] == [{"reason": "missing_variable: required variable 'iban' is missing", "count": result["failed"]}]


def test_a_version_that_compares_values_or_fails_by_them_shows_none(world):
    spell = "".join(f'{{{{#if (eq (truncate name 1 "") "{letter}")}}}}{letter}{{{{else}}}}-{{{{/if}}}}' for letter in "ABC")
    publish(world, "3.1.0", "draft", f"Begins with {spell}", "{{#if (eq name 'Alice')}}{{date '2026-01-01T00:00:00Z' zone=name}}{{else}}\n{{currency n name}}{{/if}}")
    result = ended(world, begin(world, "3.1.0"))["result"]
    assert result["reasons"] == [{"reason": "render_failed: html: a preview with such data says where", "count": result["failed"]}] and result["failed"] >= len(NAMES)
    publish(world, "3.2.0", "draft", f"Begins with {spell}", "<p>Dear {{name}},</p>\n<p>please pay {{total}}.</p>")
    result = ended(world, begin(world, "3.2.0"))["result"]
    assert result["different"] == result["compared"] >= len(NAMES)
    assert {lines(difference, "subject")[-1] for difference in result["differences"]} == {("+", "Begins with A-B-C-")}


def test_a_limit_ends_it_and_says_that_there_is_more(world):
    result = ended(world, begin(world, "1.0.0", limit=2, days=1))["result"]
    assert (result["compared"], result["complete"]) == (2, False)


def test_one_at_a_time_and_a_key_leads_to_one_job(world):
    world.postgres.query("INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, state, asked_by, lease_until, tries)"
                         " SELECT 'job_full' || i, 'full', 'audit', '{}', 'running', 'x', now() + interval '1 hour', 1 FROM generate_series(1, 2) i")
    try:
        key = {"Idempotency-Key": f"shadow-{uuid.uuid4().hex[:8]}"}
        body = {"version": "1.0.0"}
        status, first = ask(world, "POST", "/v1/templates/bill/shadow", body, headers=key)
        assert status == 202 and first["state"] == "waiting"
        assert ask(world, "POST", "/v1/templates/bill/shadow", body, headers=key) == (202, first)
        assert slug(ask(world, "POST", "/v1/templates/bill/shadow", {"version": "1.0.0", "days": 2}, headers=key)) == (409, "idempotency-conflict")
        assert slug(ask(world, "POST", "/v1/templates/bill/shadow", body)) == (409, "too-many-jobs")
        cancelled = ask(world, "POST", f"/v1/shadows/{first['id']}/cancel")
        assert cancelled[0] == 200 and cancelled[1]["state"] == "cancelled" and cancelled[1]["finished_at"]
        again = begin(world, "1.0.0")
    finally:
        world.postgres.query("DELETE FROM gateway.jobs WHERE tenant_id = 'full'")
    assert ended(world, again)["state"] == "done"
    assert ask(world, "POST", f"/v1/shadows/{again}/cancel")[1]["state"] == "done"


def test_they_are_listed_newest_first_by_pages_and_by_template(world):
    jobs = [ended(world, begin(world, "1.0.0"))["id"] for _ in range(2)]
    status, page = ask(world, "GET", "/v1/shadows?limit=1")
    assert status == 200 and [job["id"] for job in page["data"]] == [jobs[1]] and page["data"][0]["result"] is None
    assert ask(world, "GET", f"/v1/shadows?limit=1&cursor={page['next']}")[1]["data"][0]["id"] == jobs[0]
    assert ask(world, "GET", "/v1/shadows?template=welcome")[1] == {"data": [], "next": None}
    assert slug(ask(world, "GET", "/v1/shadows?template=No")) == (400, "invalid-parameter")


def test_another_tenant_has_neither_the_job_nor_the_requests(world):
    job = ended(world, begin(world, "1.0.0"))["id"]
    assert slug(ask(world, "GET", f"/v1/shadows/{job}", tenant=OTHER)) == (404, "not-found")
    assert slug(ask(world, "POST", f"/v1/shadows/{job}/cancel", tenant=OTHER)) == (404, "not-found")
    assert ask(world, "GET", "/v1/shadows", tenant=OTHER)[1]["data"] == []
    assert slug(ask(world, "POST", "/v1/templates/bill/shadow", {"version": "1.0.0"}, tenant=OTHER)) == (404, "not-found")
    publish(world, "1.0.0", "draft", "Other", "x", tenant=OTHER)
    other = ask(world, "POST", "/v1/templates/bill/shadow", {"version": "1.0.0"}, tenant=OTHER)[1]["id"]
    found = wait_until(lambda: shown(world, other, OTHER)["result"], 60, "its end")
    assert (found["scanned"], found["compared"]) == (0, 0)


@pytest.mark.parametrize("body, field", [
    ({}, "version"), ({"version": "new"}, "version"), ({"version": 2}, "version"), ({"version": "1.0.0", "days": 0}, "days"),
    ({"version": "1.0.0", "days": 31}, "days"), ({"version": "1.0.0", "limit": 100001}, "limit"), ({"version": "1.0.0", "limit": "all"}, "limit"),
    ({"version": "1.0.0", "html": "x"}, "html"),
])
def test_what_does_not_fit_names_the_field(world, body, field):
    status, answer = ask(world, "POST", "/v1/templates/bill/shadow", body)
    assert (status, answer["field"]) == (422, field), answer


def test_what_is_not_there_is_404_and_scopes_are_named(world):
    for key, version in (("bill", "9.9.9"), ("nowhere", "1.0.0"), ("*", "1.0.0")):
        assert slug(ask(world, "POST", f"/v1/templates/{key}/shadow", {"version": version})) == (404, "not-found")
    assert slug(ask(world, "POST", "/v1/templates/bill/shadow?channel=fax", {"version": "1.0.0"})) == (400, "invalid-parameter")
    for name in ("job_1", "x" * 200, "%00", "job_01KAGTQ5M0000000000000000A"):
        assert ask(world, "GET", f"/v1/shadows/{name}")[0] in (400, 404), name
    reader = json.loads(world.cli("apikey", "create", "--name", "reader", "--scopes", "templates:read", "--json"))["key"]
    wait_until(lambda: ask(world, "GET", "/v1/me", key=reader)[0] == 200, 20, "the key reaching the gateway")
    assert ask(world, "GET", "/v1/shadows", key=reader)[0] == 200
    refused = ask(world, "POST", "/v1/templates/bill/shadow", {"version": "1.0.0"}, key=reader)
    assert slug(refused) == (403, "missing-scope") and "templates:write" in refused[1]["detail"]


def test_a_version_that_has_gone_meanwhile_fails_with_the_reason(world):
    job = f"job_{uuid.uuid4().hex[:12]}"
    parameters = {"template": "bill", "version": "7.7.7", "version_tenant": TENANT, "channel": "email", "days": 7, "limit": 10, "from": "2026-11-01T00:00:00Z"}
    world.postgres.query("INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, asked_by) VALUES (%s, %s, 'shadow', %s, 'x')", job, TENANT, json.dumps(parameters))
    failed = ended(world, job)
    assert failed["state"] == "failed" and failed["error"] == "template 'bill' has no version '7.7.7' for email" and failed["result"] is None


# ---- killed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["job.claimed", "job.ended"])
def test_a_shadow_whose_gateway_is_killed_is_run_by_another(world, point):
    gateway = armed(world, point)
    job = begin(world, "1.0.0")
    assert gateway.exit_status(30) == DIED and f"crash point '{point}' reached" in gateway.tail()
    hurry(world, job)
    gateway.start()
    done = ended(world, job)
    assert (done["state"], done["tries"]) == ("done", 2)


@contextlib.contextmanager
def under_way(world):
    """A job that has begun and waits for the keys of the recipients, which are locked."""
    connection = world.postgres.connect("postgres", "stentor")
    cursor = connection.cursor()
    cursor.execute("BEGIN; LOCK TABLE keys.data_keys IN ACCESS EXCLUSIVE MODE")
    try:
        job = begin(world, "1.0.0")
        wait_until(lambda: (shown(world, job)["progress"] or {}).get("scanned", 0) >= len(NAMES), 30, "its progress")
        assert shown(world, job)["state"] == "running" and len(children()) == 1
        yield job
    finally:
        connection.close()


def children():
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and b"--shadow-job" in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(process.name)
    return found


def test_a_gateway_that_is_killed_in_the_middle_takes_its_child_along_and_another_begins_again(world):
    gateway = world.services["gateway"]
    with under_way(world) as job:
        gateway.kill()
        wait_until(lambda: children() == [], 20, "the end of the child")
    hurry(world, job)
    gateway.start()
    done = ended(world, job)
    assert (done["state"], done["tries"]) == ("done", 2) and done["result"]["same"] == done["result"]["compared"] >= len(NAMES)


def test_a_stopped_gateway_gives_it_back(world):
    gateway = world.services["gateway"]
    with under_way(world) as job:
        gateway.child.send_signal(signal.SIGTERM)
        assert gateway.exit_status(30) == 0
        assert world.postgres.query("SELECT state, tries FROM gateway.jobs WHERE id = %s", job) == [("waiting", 0)]
    gateway.start()
    assert ended(world, job)["state"] == "done"


def test_cancelling_ends_the_child_and_leaves_how_far_it_was(world):
    with under_way(world) as job:
        cancelled = ask(world, "POST", f"/v1/shadows/{job}/cancel")[1]
        assert cancelled["state"] == "cancelled" and cancelled["progress"]["scanned"] >= len(NAMES)
        wait_until(lambda: children() == [], 20, "the end of the child")
    assert ended(world, begin(world, "1.0.0"))["state"] == "done"
    assert (shown(world, job)["state"], shown(world, job)["result"]) == ("cancelled", None)
