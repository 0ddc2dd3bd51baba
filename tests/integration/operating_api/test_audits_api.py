# SPDX-License-Identifier: Apache-2.0
"""The audit as a job: any replica answers about it, one at a time runs it, and one whose process is killed is run by another or fails honestly."""
import signal
import subprocess
import uuid

import pytest

from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, wait_until
from tests.integration.operating_api.test_dead_letters_api import ask, refused_or_cut, slug

DIED = -9
NUMBERS = ("sent", "failed", "suppressed", "in_flight", "unsettled")


@pytest.fixture(scope="module")
def world():
    running = Pipeline({"STENTOR_RETRY_LADDER": "1"}, durable=True).start()
    yield running
    running.stop()


def begin(pipeline, body=None, tenant=TENANT, **headers):
    status, job = ask(pipeline, "POST", "/v1/ops/audits", body, tenant, headers=headers)
    assert status == 202 and job["state"] in ("waiting", "running"), job
    return job["id"]


def ended(pipeline, job, tenant=TENANT, seconds=60):
    def shown():
        status, seen = ask(pipeline, "GET", f"/v1/ops/audits/{job}", tenant=tenant)
        assert status == 200, seen
        return seen["state"] in ("done", "failed") and seen
    return wait_until(shown, seconds, "the job's end")


def hurry(pipeline, job):
    """Its process is gone: the lease ends now instead of in 20 s."""
    pipeline.postgres.query("UPDATE gateway.jobs SET lease_until = now() WHERE id = %s AND state = 'running'", job)


def test_an_audit_counts_every_notification_once_and_agrees_with_the_command(world):
    sent = [world.send(to=f"audit{i}@example.com") for i in range(4)]
    world.mailbox.answer("550 5.1.1 no such user")
    failed = world.send(to="unknown@example.com")
    for notification in sent + [failed]:
        wait_until(lambda: world.status(notification)["status"] in ("sent", "failed"), 30, "its end")
    other = f"aud-{uuid.uuid4().hex[:8]}"
    world.cli("tenant", "put", other)

    job = begin(world, {"grace_s": 0})
    done = ended(world, job)
    result = done["result"]
    assert done["state"] == "done" and done["error"] is None and done["tries"] == 1 and done["asked_by"].startswith("API key ")
    assert result["accepted"] == sum(result[name] for name in NUMBERS) == 5
    assert (result["sent"] + result["failed"], result["lost"], result["doubled"], result["unknown"], result["unsettled"]) == (5, 0, 0, 0, 0)
    everyone = ended(world, begin(world, tenant="platform"), tenant="platform")["result"]
    assert everyone["accepted"] >= 5
    assert ended(world, begin(world, tenant=other), tenant=other)["result"]["accepted"] == 0

    again = begin(world, {"grace_s": 1}, **{"Idempotency-Key": f"list-{other}"})  # its id has no time
    last = ended(world, again)
    status, first = ask(world, "GET", "/v1/ops/audits?limit=1")
    assert status == 200 and first["data"] == [last]
    rest = ask(world, "GET", f"/v1/ops/audits?limit=1&cursor={first['next']}")[1]
    assert rest == {"data": [done], "next": None}
    assert len(ask(world, "GET", "/v1/ops/audits", tenant=other)[1]["data"]) == 1, "another tenant's are not there"
    assert ask(world, "GET", "/v1/ops/audits?limit=0")[0] in (400, 422) and ask(world, "GET", f"/v1/ops/audits?cursor={first['next']}", tenant=other)[0] == 400
    assert slug(ask(world, "GET", f"/v1/ops/audits/{job}", tenant=other)) == (404, "not-found")


def test_what_is_lost_is_a_number(world):
    notification = world.send(to="lost@example.com")
    world.status(notification, wait="sent")
    rows = world.postgres.query("DELETE FROM dispatcher.ledger WHERE notification_id = %s RETURNING 1", notification)
    assert rows
    assert ended(world, begin(world, {"grace_s": 0}))["result"]["lost"] == 1


def test_a_key_leads_to_one_job(world):
    key = {"Idempotency-Key": f"audit-{uuid.uuid4().hex[:8]}"}
    _, first = ask(world, "POST", "/v1/ops/audits", {"grace_s": 1}, headers=key)
    assert ended(world, first["id"])["state"] == "done"
    status, again = ask(world, "POST", "/v1/ops/audits", {"grace_s": 1}, headers=key)
    assert status == 202 and again == first  # GET says how far it is
    assert slug(ask(world, "POST", "/v1/ops/audits", {"grace_s": 2}, headers=key)) == (409, "idempotency-conflict")


@pytest.mark.parametrize("body, field", [
    ({"from": "yesterday"}, "from"), ({"to": 7}, "to"), ({"grace_s": -1}, "grace_s"), ({"tenant": "globex"}, "tenant"),
    ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "from"), ({"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}, "from"),
])
def test_what_does_not_fit_names_the_field(world, body, field):
    status, answer = ask(world, "POST", "/v1/ops/audits", body)
    assert (status, answer["field"]) == (422, field), answer


def test_an_audit_needs_a_scope_of_its_own(world):
    for method, path in (("POST", "/v1/ops/audits"), ("GET", "/v1/ops/audits/job_1")):
        refused = ask(world, method, path, key=world.key)
        assert slug(refused) == (403, "missing-scope") and "ops:read" in refused[1]["detail"]
    for name in ("job_1", "x" * 200, "%00", "job_01KAGTQ5M0000000000000000A"):
        assert ask(world, "GET", f"/v1/ops/audits/{name}")[0] in (400, 404), name


def test_more_than_five_wait_for_no_one(world):
    gateway = world.services["gateway"]
    world.postgres.query("INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, state, asked_by, lease_until, tries)"
                         " SELECT 'job_full' || i, 'full', 'audit', '{}', 'running', 'x', now() + interval '1 hour', 1 FROM generate_series(1, 5) i")
    world.cli("tenant", "put", "full")
    try:
        assert slug(ask(world, "POST", "/v1/ops/audits", tenant="full")) == (409, "too-many-jobs")
        job = begin(world)  # two at once, of all replicas: it waits
        assert ask(world, "GET", f"/v1/ops/audits/{job}")[1]["state"] == "waiting"
    finally:
        world.postgres.query("DELETE FROM gateway.jobs WHERE tenant_id = 'full'")
    assert ended(world, job)["state"] == "done"


# ---- killed ---------------------------------------------------------------------------------------------------------


def armed(pipeline, point):
    if "job.claimed" not in subprocess.run([BIN / "stentor-gateway", "--crash-points"], capture_output=True, text=True, timeout=20).stdout:
        pytest.skip("built without -DSTENTOR_CRASH_POINTS=ON")
    gateway = pipeline.services["gateway"]
    gateway.kill()
    gateway.options["STENTOR_CRASH_AT"] = point
    gateway.start()
    del gateway.options["STENTOR_CRASH_AT"]
    return gateway


@pytest.mark.parametrize("point", ["job.claimed", "job.ended"])
def test_a_job_whose_process_is_killed_is_run_by_another(world, point):
    gateway = armed(world, point)
    key = {"Idempotency-Key": f"kill-{uuid.uuid4().hex[:8]}"}
    refused_or_cut(world, "GET", "/v1/limits")
    status, job = ask(world, "POST", "/v1/ops/audits", {}, headers=key)
    assert status == 202, job
    assert gateway.exit_status(30) == DIED and f"crash point '{point}' reached" in gateway.tail()
    assert world.postgres.query("SELECT state, tries FROM gateway.jobs WHERE id = %s", job["id"]) == [("running", 1)]
    hurry(world, job["id"])
    gateway.start()
    done = ended(world, job["id"])
    assert done["state"] == "done" and done["tries"] == 2


def test_one_that_kills_every_process_fails_and_says_so(world):
    job = f"job_{uuid.uuid4().hex[:12]}"
    world.postgres.query("INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, state, asked_by, lease_until, tries)"
                         " VALUES (%s, %s, 'audit', '{}', 'running', 'x', now() - interval '1 s', 3)", job, TENANT)
    failed = ended(world, job)
    assert failed["state"] == "failed" and "each time" in failed["error"] and failed["result"] is None


def test_one_that_cannot_be_done_fails_with_a_reason(world):
    job = f"job_{uuid.uuid4().hex[:12]}"
    world.postgres.query("INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, asked_by) VALUES (%s, %s, 'audit', '{}', 'x')", job, TENANT)
    failed = ended(world, job)
    assert failed["state"] == "failed" and "log has the reason" in failed["error"]


def test_a_gateway_that_is_stopped_gives_its_job_back(world):
    gateway = world.services["gateway"]
    job = begin(world)
    gateway.child.send_signal(signal.SIGTERM)
    assert gateway.exit_status(30) == 0
    state, tries = world.postgres.query("SELECT state, tries FROM gateway.jobs WHERE id = %s", job)[0]
    assert (state, tries) in (("waiting", 0), ("done", 1)), (state, tries)
    gateway.start()
    assert ended(world, job)["state"] == "done"
