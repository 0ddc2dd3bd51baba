# SPDX-License-Identifier: Apache-2.0
"""Batches through the real pipeline: each member exactly one notification, whatever dies; paused, resumed, cancelled;
totals that are what became of them; and a one-time code that overtakes a campaign."""
import collections
import http.client
import json
import statistics
import time

import pytest

from tests.harness.length import amount
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

OPTIONS = {"STENTOR_RETRY_LADDER": "1,1", "STENTOR_DISPATCHER_LEASE_MS": "4000", "STENTOR_INGEST_SWEEP_AGE_MS": "2000",
           "STENTOR_INGEST_BATCH_LEASE_MS": "2000"}
PART = 1000
CAMPAIGN = amount(15_000, 100_000)
KILLED, KILLED_RATE = amount((4000, 1000), (20_000, 4000))


def call(pipeline, method, path, body=None, headers=None):
    """(status, parsed body); body: JSON-able, or bytes as they are."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=60)
    raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, raw, {"Authorization": f"Bearer {pipeline.key}", **(headers or {})})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def lines(count, prefix="member", first=0):
    return "".join(json.dumps({"to": f"{prefix}{i}@example.com", "variables": {"name": f"N{i}"}}) + "\n"
                   for i in range(first, first + count)).encode()


def create(pipeline, **fields):
    status, batch = call(pipeline, "POST", "/v1/batches", {"name": "spring", "template": "welcome", **fields})
    assert status == 201, batch
    return batch["id"]


def fill(pipeline, batch, count, prefix="member"):
    for number, first in enumerate(range(0, count, PART), 1):
        status, answer = call(pipeline, "PUT", f"/v1/batches/{batch}/members?part={number}",
                              lines(min(PART, count - first), prefix, first))
        assert status == 200 and answer["broken"] == 0, answer
    assert answer["members"] == count
    return batch


def tell(pipeline, batch, word, body=None):
    status, answer = call(pipeline, "POST", f"/v1/batches/{batch}/{word}", body)
    assert status == 200, answer
    return answer


def show(pipeline, batch):
    status, answer = call(pipeline, "GET", f"/v1/batches/{batch}")
    assert status == 200, answer
    return answer


def ids_of(pipeline, batch):
    return [row[0] for row in pipeline.postgres.query(f"SELECT id FROM archiver.notifications WHERE batch_id = '{batch}'")]


def mails_by_address(pipeline, prefix):
    with pipeline.mailbox.lock:
        taken = [to for _, tos, _ in pipeline.mailbox.raw for to in tos]
    return collections.Counter(to for to in taken if to.startswith(prefix))


def check_each_member_once(pipeline, batch, count, prefix):
    wait_until(lambda: show(pipeline, batch)["totals"].get("sent", 0) == count, 120, "every member sent")
    done = show(pipeline, batch)
    assert done["totals"] == {"sent": count} and done["accepted"] == count and done["members"] == count
    assert len(set(ids_of(pipeline, batch))) == count
    assert pipeline.history_count(f"batch_id = '{batch}'") == count
    mails = mails_by_address(pipeline, prefix)
    assert len(mails) == count and set(mails.values()) == {1}
    accepted = pipeline.postgres.query("SELECT unnest(notification_ids) FROM ingest.accept_log")
    per_id = collections.Counter(row[0] for row in accepted)
    assert all(per_id[i] == 1 for i in ids_of(pipeline, batch))


@pytest.fixture(scope="module")
def own():
    running = Pipeline(OPTIONS).start()
    yield running
    running.stop()


def test_a_batch_reaches_each_member_once_and_its_totals_say_so(own):
    batch = fill(own, create(own, variables={"plan": "gold"}), 2500, "plain")
    assert show(own, batch)["status"] == "draft"
    tell(own, batch, "start")
    wait_until(lambda: show(own, batch)["status"] == "completed", 60, "the batch")
    check_each_member_once(own, batch, 2500, "plain")
    mail = next(m for m in own.mailbox.mails("plain7@") if m["To"] == "plain7@example.com")
    assert mail["Subject"] == "Welcome, N7!" and "gold" in str(mail)
    stored = own.postgres.query(f"SELECT count(*), count(data) FROM ingest.batch_chunks WHERE batch_id = '{batch}'")
    assert stored[0] == (3, 0)  # what was needed is gone


def test_members_are_never_stored_in_clear(own):
    batch = fill(own, create(own, variables={"plan": "secretplan"}), 50, "hidden")
    rows = own.postgres.query(f"SELECT encode(data, 'escape') FROM ingest.batch_chunks WHERE batch_id = '{batch}'"
                              f" UNION ALL SELECT encode(variables, 'escape') FROM ingest.batches WHERE id = '{batch}'")
    assert len(rows) == 2 and not any("hidden" in row[0] or "example" in row[0] or "secretplan" in row[0] for row in rows)


def test_a_repeated_part_is_one_and_another_body_is_refused(own):
    batch = create(own)
    path = f"/v1/batches/{batch}/members?part=1"
    assert call(own, "PUT", path, lines(3))[1]["repeated"] is False
    status, again = call(own, "POST", path, lines(3))
    assert status == 200 and again["repeated"] is True and again["members"] == 3 and again["added"] == 0
    status, problem = call(own, "PUT", path, lines(4))
    assert status == 409 and "other content" in problem["detail"]
    status, problem = call(own, "PUT", f"/v1/batches/{batch}/members", lines(1))
    assert status == 422 and problem["field"] == "part"


def test_a_broken_line_is_named_and_the_rest_goes_on(own):
    batch = create(own)
    good = lines(1).decode().strip()
    body = "\n".join([good, "{oops", "", '{"to":"no address"}', '{"to":"a@b.test","nick":"x"}', "[]",
                      '{"to":"a@b.test","variables":[1]}', good]).encode()
    status, answer = call(own, "PUT", f"/v1/batches/{batch}/members?part=1", body)
    assert status == 200 and answer["added"] == 2 and answer["broken"] == 5 and answer["members"] == 2
    assert [(line["line"], line["field"]) for line in answer["lines"]] == [
        (2, ""), (4, "to"), (5, "nick"), (6, ""), (7, "variables")]
    assert "not JSON" in answer["lines"][0]["detail"]
    assert show(own, batch)["broken_lines"] == 5


def test_faults_of_a_batch_name_the_field(own):
    for body, field in [({"template": "welcome"}, "name"), ({"name": "x"}, "template"),
                        ({"name": "x", "template": "nosuch"}, "template"),
                        ({"name": "x", "template": "welcome", "rate_per_second": -1}, "rate_per_second"),
                        ({"name": "x", "template": "welcome", "scheduled_for": "2001-01-01T00:00:00Z"}, "scheduled_for"),
                        ({"name": "x", "template": "welcome", "colour": 1}, "colour"),
                        ({"name": "x", "template": "welcome", "variables": {"name": "B"}, "members": [{"to": "a@b.test"}, {"to": "b"}]}, "members[1].to")]:
        status, problem = call(own, "POST", "/v1/batches", body)
        assert (status, problem["field"]) == (422, field), problem
    assert call(own, "GET", "/v1/batches/dbt_nosuch")[0] == 404
    status, problem = call(own, "POST", f"/v1/batches/{create(own)}/start")
    assert status == 409 and "no members" in problem["detail"]


def test_an_idempotency_key_makes_one_batch(own):
    body = {"name": "once", "template": "welcome", "members": [{"to": "once0@example.com", "variables": {"name": "O"}}]}
    first = call(own, "POST", "/v1/batches", body, {"Idempotency-Key": "b-1"})
    second = call(own, "POST", "/v1/batches", body, {"Idempotency-Key": "b-1"})
    assert first[0] == second[0] == 201 and first[1]["id"] == second[1]["id"]
    assert first[1]["members"] == second[1]["members"] == 1
    reordered = call(own, "POST", "/v1/batches", dict(reversed(body.items())), {"Idempotency-Key": "b-1"})
    assert (reordered[0], reordered[1]["id"]) == (201, first[1]["id"])
    assert call(own, "POST", "/v1/batches", {**body, "name": "other"}, {"Idempotency-Key": "b-1"})[0] == 409


def test_a_paced_batch_is_paused_and_goes_on_exactly_where_it_stopped(own):
    batch = fill(own, create(own, rate_per_second=200), 600, "paced")
    started = time.monotonic()
    tell(own, batch, "start")
    wait_until(lambda: show(own, batch)["accepted"] >= 100, 30, "some of it")
    assert tell(own, batch, "pause")["paused"] is True
    wait_until(lambda: own.postgres.query(f"SELECT holder FROM ingest.batches WHERE id = '{batch}'")[0][0] is None, 10, "the stop")
    stopped = show(own, batch)
    assert 100 <= stopped["accepted"] < 600 and stopped["status"] == "running"
    time.sleep(1.5)
    assert show(own, batch)["accepted"] == stopped["accepted"]
    wait_until(lambda: own.history_count(f"batch_id = '{batch}'") == stopped["accepted"], 20, "what was accepted")
    assert tell(own, batch, "resume")["paused"] is False
    wait_until(lambda: show(own, batch)["status"] == "completed", 30, "the rest")
    assert time.monotonic() - started > 600 / 200  # never faster than its pace
    check_each_member_once(own, batch, 600, "paced")


def test_a_cancelled_batch_makes_no_more_and_what_was_accepted_goes_on(own):
    batch = fill(own, create(own, rate_per_second=100), 1000, "dropped")
    tell(own, batch, "start")
    wait_until(lambda: show(own, batch)["accepted"] >= 50, 30, "some of it")
    assert tell(own, batch, "cancel")["status"] == "cancelled"
    time.sleep(1)
    accepted = show(own, batch)["accepted"]
    assert 50 <= accepted < 1000
    wait_until(lambda: show(own, batch)["totals"] == {"sent": accepted}, 30, "what was accepted")
    assert own.postgres.query(f"SELECT count(data) FROM ingest.batch_chunks WHERE batch_id = '{batch}'")[0][0] == 0
    assert tell(own, batch, "cancel")["status"] == "cancelled"
    assert call(own, "POST", f"/v1/batches/{batch}/start")[0] == 409


def test_a_scheduled_batch_starts_at_its_time(own):
    batch = fill(own, create(own), 5, "later")
    at = time.time() + 2
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"
    assert tell(own, batch, "schedule", {"scheduled_for": stamp})["status"] == "scheduled"
    wait_until(lambda: show(own, batch)["status"] == "completed", 20, "the time")
    assert time.time() >= at
    check_each_member_once(own, batch, 5, "later")


def test_failed_members_are_in_the_totals_and_every_status_names_the_batch(own):
    nats = NatsClient(own.nats.port)
    before = nats.stream_info("STATUS")["state"]["last_seq"]
    body = {"name": "mixed", "template": "welcome",
            "members": [{"to": "mixed0@example.com", "variables": {"name": "M"}}, {"to": "mixed1@example.com", "variables": {"name": 7}}]}  # not a string
    batch = call(own, "POST", "/v1/batches", body)[1]["id"]
    tell(own, batch, "start")
    wait_until(lambda: show(own, batch)["totals"] == {"sent": 1, "failed": 1}, 30, "both ends")
    kind, reported = messages(own).NotificationStatus, set()
    for sequence in range(before + 1, nats.stream_info("STATUS")["state"]["last_seq"] + 1):
        event = kind.FromString(nats.message("STATUS", seq=sequence)[1])
        if event.meta.notification_id in ids_of(own, batch):
            reported.add((event.status, event.batch_id))
    nats.close()
    assert {name for _, name in reported} == {batch} and len(reported) == 3  # queued, failed by the renderer, sent by the dispatcher


def batch_cli(pipeline, *words):
    return json.loads(pipeline.cli("batch", *words, "--json"))


def test_the_command_uploads_a_csv_and_names_its_broken_lines(own):
    batch = batch_cli(own, "create", "--name", "by hand", "--template", "welcome", "--rate", "0", "--priority", "normal")["id"]
    rows = [f"cli{i}@example.com,Mr {i},N{i}" for i in range(5101)]
    rows[10] = "no at sign,Mr X,X"
    rows[20] = 'cli20@example.com,"Mr, 20","N ""20"""'
    rows[5050] = "cli5050@example.com,too,many,fields"
    path = own.folder / "people.csv"
    path.write_text("to,name,variables.name\n" + "\n".join(rows) + "\n")
    done = own.run_cli("batch", "add", batch, path, "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and (answer["members"], answer["added"], answer["parts"], answer["broken"]) == (5099, 5099, 2, 2)
    assert sorted((line["line"], line["field"]) for line in answer["lines"]) == [(12, "to"), (5052, "")]
    assert "4 fields, the header has 3" in done.stdout
    again = json.loads(own.run_cli("batch", "add", batch, path, "--json").stdout)
    assert (again["members"], again["added"], again["repeated_parts"]) == (5099, 0, 2)
    assert batch_cli(own, "start", batch)["status"] == "running"
    lines_seen = [json.loads(line) for line in own.run_cli("batch", "show", batch, "--watch", "--json").stdout.splitlines()]
    assert lines_seen[-1]["totals"] == {"sent": 5099} and lines_seen[-1]["status"] == "completed"
    assert set(mails_by_address(own, "cli").values()) == {1}
    mail = next(m for m in own.mailbox.mails("cli20@") if "cli20@" in m["To"])
    assert mail["Subject"] == 'Welcome, N "20"!' and "Mr, 20" in mail["To"]
    assert "completed" in own.cli("batch", "show", batch) and batch in own.cli("batch", "list", "--status", "completed")


def test_the_command_lists_every_page(own):
    made = [create(own, name=f"listed {i}") for i in range(103)]
    listed = [batch["id"] for batch in batch_cli(own, "list", "--limit", "0")]
    assert listed[:103] == made[::-1] and len(listed) == len(set(listed)) >= 103
    assert [batch["id"] for batch in batch_cli(own, "list")] == made[:2:-1], "100 when nothing is said"
    assert [batch["id"] for batch in batch_cli(own, "list", "--limit", "102", "--status", "draft")] == made[:0:-1]
    assert own.run_cli("batch", "list", "--status", "gone").returncode == 2
    assert "--limit" in own.run_cli("batch", "list", "--limit", "many").stderr


def test_the_command_uploads_ndjson_and_tells_the_words_to_the_batch(own):
    batch = batch_cli(own, "create", "--name", "three-statuses", "--template", "welcome", "--rate", "50")["id"]
    path = own.folder / "members.ndjson"
    path.write_bytes(lines(300, "members"))
    assert own.cli("batch", "add", batch, path).startswith(f"{batch} 300 added, 300 in it")
    assert batch_cli(own, "schedule", batch, "--at", "2027-01-01T00:00:00Z")["status"] == "scheduled"
    assert batch_cli(own, "start", batch)["status"] == "running"
    assert batch_cli(own, "pause", batch)["paused"] is True
    assert batch_cli(own, "resume", batch)["paused"] is False
    assert batch_cli(own, "cancel", batch)["status"] == "cancelled"
    refused = own.run_cli("batch", "start", batch)
    assert refused.returncode == 1 and "cancelled" in refused.stderr
    assert own.run_cli("batch", "show", "dbt_nosuch").returncode == 3
    assert own.run_cli("batch", "add", batch, own.folder / "nosuch.csv").returncode == 2


def kill_and_start(pipeline):
    pipeline.services["ingest"].kill()
    pipeline.services["ingest"].start()


def test_killed_in_the_middle_each_member_is_one_notification():
    """kill -9 of ingest again and again, while it uploads nothing more and makes all of them."""
    pipeline = Pipeline(OPTIONS).start()
    batch = fill(pipeline, create(pipeline, rate_per_second=KILLED_RATE), KILLED, "killed")
    tell(pipeline, batch, "start")
    kills = 0
    while show(pipeline, batch)["status"] != "completed":
        time.sleep(0.7)
        kill_and_start(pipeline)
        kills += 1
        assert kills < 60, "it does not get on"
        reached = show(pipeline, batch)["accepted"]
        wait_until(lambda: show(pipeline, batch)["accepted"] > reached or show(pipeline, batch)["status"] == "completed", 30, "a step")
    assert kills >= 3
    check_each_member_once(pipeline, batch, KILLED, "killed")
    pipeline.cli("audit", "--since", "1h", "--grace", "1")  # ends with 0 only when nothing is lost, doubled or unknown
    pipeline.stop()


def test_another_replica_takes_a_batch_over():
    """Two of them: one runs it; that one dies for good and the other goes on."""
    pipeline = Pipeline(OPTIONS).start()
    other = pipeline.service("ingest", "b", STENTOR_INGEST_PORT=0).start()
    batch = fill(pipeline, create(pipeline, rate_per_second=500), 3000, "moved")
    tell(pipeline, batch, "start")
    wait_until(lambda: show(pipeline, batch)["accepted"] > 500, 30, "some of it")
    running = "stentor_ingest_batches_running"
    here, there = pipeline.services["ingest"].metric(running), other.metric(running)
    assert here + there == 1
    first = pipeline.services["ingest"] if here else other
    first.kill()
    if first is not other:
        wait_until(lambda: other.metric(running) == 1, 20, "the take-over")
        pipeline.services["ingest"].start()
    wait_until(lambda: show(pipeline, batch)["status"] == "completed", 60, "the batch")
    check_each_member_once(pipeline, batch, 3000, "moved")
    if first is not other:
        assert other.stop() == 0
    pipeline.stop()


def test_a_batch_whose_template_is_gone_fails_and_says_why(own):
    own.cli("template", "put", "brief", "--subject", "Brief", "--html", own.folder / "welcome.html", "--text", own.folder / "welcome.txt",
            "--require", "name:string")
    wait_until(lambda: call(own, "POST", "/v1/batches", {"name": "probe", "template": "brief"})[0] == 201, 20, "the template")
    batch = fill(own, create(own, template="brief", rate_per_second=100), 1500, "brief")
    tell(own, batch, "start")
    wait_until(lambda: show(own, batch)["accepted"] > 50, 20, "some of it")
    nats = NatsClient(own.nats.port)
    nats.publish("cfg.template.acme.brief.email.1_0_0", b"", "gone")
    nats.close()
    wait_until(lambda: show(own, batch)["status"] == "failed", 30, "the end")
    done = show(own, batch)
    assert "brief" in done["reason"] and done["accepted"] == 1000  # looked at with every chunk
    assert own.postgres.query(f"SELECT count(data) FROM ingest.batch_chunks WHERE batch_id = '{batch}'")[0][0] == 0


def test_another_tenant_sees_nothing_of_it(own):
    batch = create(own)
    own.cli("tenant", "put", "rival", "--name", "Rival", "--sender", "r@rival.test", "--sender-name", "R")
    key = json.loads(own.cli("apikey", "create", "--name", "test", "--json", tenant="rival"))["key"]
    headers = {"Authorization": f"Bearer {key}"}
    wait_until(lambda: call(own, "GET", f"/v1/batches/{batch}", headers=headers)[0] != 401, 20, "the key")
    assert call(own, "GET", f"/v1/batches/{batch}", headers=headers)[0] == 404
    assert call(own, "PUT", f"/v1/batches/{batch}/members?part=1", lines(1), headers)[0] == 404
    assert call(own, "POST", f"/v1/batches/{batch}/cancel", headers=headers)[0] == 404
    assert call(own, "GET", "/v1/batches", headers=headers)[1] == {"data": [], "next": None}
    assert batch in [b["id"] for b in call(own, "GET", "/v1/batches?status=draft")[1]["data"]]
    younger = create(own)
    first = call(own, "GET", "/v1/batches?status=draft&limit=1")[1]
    assert [b["id"] for b in first["data"]] == [younger]
    path = f"/v1/batches?status=draft&limit=1&cursor={first['next']}"
    assert [b["id"] for b in call(own, "GET", path)[1]["data"]] == [batch]
    status, problem = call(own, "GET", path, headers=headers)  # the same cursor, another tenant
    assert (status, problem["field"]) == (400, "cursor"), problem


def code_seconds(pipeline, number):
    """From the request of a one-time code to its mail in the box."""
    address = f"code{number}@example.com"
    started = time.monotonic()
    pipeline.send(address, priority="critical", category="security")
    while not mails_by_address(pipeline, address):
        assert time.monotonic() < started + 20, "the code does not come"
        time.sleep(0.01)
    return time.monotonic() - started


def test_a_one_time_code_overtakes_a_campaign():
    """While it is made, and again when all of it waits in the low lane, rendered or not, before the dispatcher begins."""
    pipeline = Pipeline(OPTIONS, bytes_percent=10).start()
    batch = create(pipeline)
    for number in range(1, CAMPAIGN // 5000 + 1):
        status, answer = call(pipeline, "PUT", f"/v1/batches/{batch}/members?part={number}", lines(5000, "mass", number * 5000))
        assert status == 200, answer
    tell(pipeline, batch, "start")
    wait_until(lambda: show(pipeline, batch)["accepted"] > 0, 30, "its beginning")
    meanwhile = [code_seconds(pipeline, 100 + number) for number in range(5)]
    assert show(pipeline, batch)["status"] == "running", "it was made before the codes came"
    pipeline.services["dispatcher"].stop()
    wait_until(lambda: show(pipeline, batch)["status"] == "completed", 240, "all of it accepted")
    pipeline.services["dispatcher"].start()
    seconds = [code_seconds(pipeline, number) for number in range(12)]
    waiting = CAMPAIGN - len(mails_by_address(pipeline, "mass"))
    assert waiting > CAMPAIGN // 2, "the campaign was over before the codes came"
    assert statistics.median(meanwhile + seconds) < 1 and max(meanwhile + seconds) < 5, (meanwhile, seconds)  # a busy machine may stand still
    pipeline.kill()
