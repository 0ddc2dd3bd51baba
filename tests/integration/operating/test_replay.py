# SPDX-License-Identifier: Apache-2.0
"""`stentor replay`: history through a service again without a second send, to a subject, and in the shadow."""
import json
import os
import re
import shlex
import signal
import subprocess
import time
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.nats_client import NatsClient, Subscriber
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, wait_until
from tests.harness.protobuf import messages

COUNT = 60
STREAMS = [f"{stage}_{lane}" for stage in ("REQUEST", "RENDERED") for lane in ("CRITICAL", "HIGH", "NORMAL", "LOW")] + [
    "STATUS", "DEFERRED", "INBOUND", "SETTLE", "HOOK", "CONFIG", "DEAD", "EVENTS"]


@pytest.fixture(scope="module")
def replayed():
    """A pipeline of its own (others' traffic would be replayed too) with COUNT mails sent and one refused for good."""
    running = Pipeline({"STENTOR_TENANT_SHARE": "0"}).start()
    running.ids = [running.send(to=f"user{i}@example.com", variables={"name": f"User {i}"}) for i in range(COUNT - 1)]
    wait_until(lambda: running.history_count("status = 'sent'") == COUNT - 1, 60, "the mails sent")
    running.mailbox.answer("550 5.1.1 no such user")
    running.refused = running.send(to="unknown@example.com")
    running.status(running.refused, wait="failed")
    yield running
    running.stop()


@pytest.fixture
def client(replayed):
    made = NatsClient(replayed.nats.port)
    yield made
    made.close()


def _replay(pipeline, *words, status=0, **environment):
    done = subprocess.run(
        [BIN / "stentor", "replay", *map(str, words), "--json"], text=True, capture_output=True, timeout=120,
        env=_environment(pipeline, **environment))
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if done.stdout else done.stderr


def _environment(pipeline, **more):
    return {"PATH": os.environ["PATH"], "STENTOR_NATS_URL": pipeline.nats.url, "STENTOR_NATS_USER": "stentor-cli",
            "STENTOR_NATS_PASSWORD": "pw", "STENTOR_TENANT": "acme", "STENTOR_DATABASE_URL": pipeline.postgres.url("stentor_cli"),
            "STENTOR_MASTER_KEY_FILE": str(pipeline.folder / "master.key"), **more}


def _lengths(client):
    return {stream: client.stream_info(stream)["state"]["last_seq"] for stream in STREAMS}


def _settled(client, stream, consumer):
    """The service has worked off everything in the stream."""
    info = json.loads(client.request(f"$JS.API.CONSUMER.INFO.{stream}.{consumer}"))
    return info["num_pending"] == 0 and info["num_ack_pending"] == 0


def _rows(pipeline):
    return pipeline.postgres.query(
        "SELECT id, status, reason_code, queued_at, rendered_at, sent_at, ended_at FROM archiver.notifications ORDER BY id")


def _archived(pipeline, client):
    """Everything that STATUS holds is in history."""
    last = client.stream_info("STATUS")["state"]["last_seq"]
    wait_until(lambda: pipeline.postgres.query(
        "SELECT min(sequence) FROM archiver.positions WHERE stream = 'STATUS'")[0][0] >= last, 30, "history being up to date")


# ---- through a service ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream,service,consumer", [
    ("RENDERED_NORMAL", "dispatcher", "dispatcher"), ("REQUEST_NORMAL", "stentor-renderer", "renderer")])
def test_a_replay_sends_nothing_twice_and_changes_no_end(replayed, client, stream, service, consumer):
    _archived(replayed, client)
    before, mails = _rows(replayed), replayed.mailbox.count_by_message_id()
    letters = client.stream_info("DEAD")["state"]["messages"]
    done = _replay(replayed, "--stream", stream, "--from-seq", 1, "--to-service", service)
    assert done["complete"] and done["messages"] == done["published"] == COUNT and done["duplicates"] == 0
    assert done["subjects"] == {client.message(stream, seq=1)[0]: COUNT}
    wait_until(lambda: _settled(client, stream, consumer), 60, "the copies being worked off")
    wait_until(lambda: _settled(client, "RENDERED_NORMAL", "dispatcher"), 60, "what was rendered again being worked off")
    _archived(replayed, client)
    assert _rows(replayed) == before
    assert replayed.mailbox.count_by_message_id() == mails and len(mails) == COUNT - 1
    assert client.stream_info("DEAD")["state"]["messages"] == letters
    again = _replay(replayed, "--stream", stream, "--from-seq", 1, "--to-service", service, "--run", done["run"])
    assert again["messages"] == COUNT == again["skipped"]["copies"] == again["duplicates"]


def test_what_failed_for_good_gets_no_second_letter_and_what_expired_no_failure(replayed, client):
    proto = messages(replayed)
    expires = (datetime.now(timezone.utc) + timedelta(seconds=4)).isoformat().replace("+00:00", "Z")
    short = replayed.send(to="short@example.com", priority="high", expires_at=expires)
    replayed.status(short, wait="sent")
    subject, payload = client.message("REQUEST_HIGH", last_by_subj="ntf.request.high.acme")
    request = proto.NotificationRequest.FromString(payload)
    assert request.meta.notification_id == short and request.expires_at_us > 0
    letters = client.stream_info("DEAD")["state"]["messages"] + 1
    client.publish("ntf.rendered.high.acme", b"\x07 no event", "poison")
    wait_until(lambda: client.stream_info("DEAD")["state"]["messages"] == letters, 20, "the dead letter")
    wait_until(lambda: time.time() * 1e6 > request.expires_at_us, 20, "the expiry")
    for stream, consumer in (("REQUEST_HIGH", "renderer"), ("RENDERED_HIGH", "dispatcher")):
        assert _replay(replayed, "--stream", stream, "--from-time", "5m", "--to-service", consumer)["published"] > 0
        wait_until(lambda: _settled(client, stream, consumer), 30, "the copies being worked off")
    _archived(replayed, client)
    assert replayed.status(short)["status"] == "sent"
    assert client.stream_info("DEAD")["state"]["messages"] == letters


def test_events_keep_their_identity_so_that_ingest_knows_them(replayed, client):
    proto = messages(replayed)
    command = proto.NotifyCommand(to="event@example.com", template="welcome", variables_json='{"name": "E"}', priority=1)
    client.publish("evt.acme.notify", command.SerializeToString(), "order-17")
    command.to = "nameless@example.com"
    client.publish("evt.acme.notify", command.SerializeToString())
    client.publish("evt.acme.other", b"no command", "other-1")
    wait_until(lambda: replayed.history_count("priority = 'critical' AND status = 'sent'") == 2, 30, "two mails")
    # Past JetStream's own duplicate window: without it the copy of 'order-17' would not even be stored.
    config = client.stream_info("EVENTS")["config"]
    config["duplicate_window"] = 100_000_000
    assert "error" not in json.loads(client.request("$JS.API.STREAM.UPDATE.EVENTS", json.dumps(config).encode()))
    time.sleep(1)
    done = _replay(replayed, "--stream", "EVENTS", "--from-seq", 1, "--to-service", "ingest")
    assert (done["published"], done["duplicates"], done["skipped"]["too_old"]) == (3, 0, 0), done
    wait_until(lambda: _settled(client, "EVENTS", "ingest"), 30, "the copies being taken")
    wait_until(lambda: _settled(client, "REQUEST_CRITICAL", "renderer"), 30, "whatever they made")
    _archived(replayed, client)
    assert replayed.history_count("priority = 'critical'") == 2


def test_deferred_work_is_waited_for_once(replayed, client):
    at = (datetime.now(timezone.utc) + timedelta(seconds=3)).isoformat().replace("+00:00", "Z")
    later = replayed.send(to="later@example.com", scheduled_for=at)
    wait_until(lambda: client.message("DEFERRED", last_by_subj="ntf.deferred.schedule.acme"), 20, "the deferral")
    for _ in range(2):  # while it waits, and when it is done and its row gone
        assert _replay(replayed, "--stream", "DEFERRED", "--from-seq", 1, "--to-service", "digest-flusher")["published"] > 0
        replayed.status(later, wait="sent")
    wait_until(lambda: _settled(client, "DEFERRED", "digest-flusher"), 30, "the copies being taken")
    wait_until(lambda: replayed.postgres.query("SELECT count(*) FROM digest_flusher.due_work")[0][0] == 0, 30, "the clock being empty")
    wait_until(lambda: _settled(client, "REQUEST_NORMAL", "renderer"), 30, "the requests")
    wait_until(lambda: _settled(client, "RENDERED_NORMAL", "dispatcher"), 30, "the mails")
    assert len(replayed.mailbox.for_notification(later)) == 1


# ---- what is read ---------------------------------------------------------------------------------------------------


def test_a_dry_run_counts_and_publishes_nothing(replayed, client):
    before = _lengths(client)
    done = _replay(replayed, "--stream", "RENDERED_NORMAL", "--from-seq", 11, "--to-seq", 30, "--dry-run")
    assert (done["messages"], done["published"]) == (20, 0)
    assert (done["first"]["sequence"], done["last"]["sequence"]) == (11, 30)
    assert done["bytes"] > 20 * 100
    shown = replayed.cli("replay", "--stream", "STATUS", "--from-seq", 1, "--subject", "ntf.status.*.email.failed", "--dry-run")
    assert "ntf.status.acme.email.failed" in shown and ".sent" not in shown
    assert _lengths(client) == before


def test_a_replay_begins_and_ends_at_a_time(replayed, client):
    middle = json.loads(client.request("$JS.API.STREAM.MSG.GET.STATUS", b'{"seq": 40}'))["message"]["time"]
    last = client.stream_info("STATUS")["state"]["last_seq"]
    after = _replay(replayed, "--stream", "STATUS", "--from-time", middle, "--dry-run")
    assert after["first"]["sequence"] <= 40 and after["last"]["sequence"] == last
    upto = _replay(replayed, "--stream", "STATUS", "--from-time", "1h", "--to-time", middle, "--dry-run")
    assert upto["first"]["sequence"] == 1 and 39 <= upto["last"]["sequence"] <= 40
    assert _replay(replayed, "--stream", "STATUS", "--from-time", "0s", "--dry-run")["messages"] == 0
    assert _replay(replayed, "--stream", "STATUS", "--from-seq", last + 1, "--dry-run")["messages"] == 0


def test_the_last_of_each_subject(replayed):
    status = _replay(replayed, "--stream", "STATUS", "--last-per-subject", "--dry-run")
    assert len(status["subjects"]) >= 3 and set(status["subjects"].values()) == {1}
    config = _replay(replayed, "--stream", "CONFIG", "--last-per-subject", "--all-tenants", "--dry-run")
    assert config["subjects"]["cfg.tenant.acme.self"] == 1 and config["messages"] == len(config["subjects"])
    one = _replay(replayed, "--stream", "CONFIG", "--last-per-subject", "--subject", "cfg.template.acme.>", "--dry-run")
    assert one["messages"] == 1


def test_a_replay_is_of_one_tenant_unless_all_are_asked_for(replayed, client):
    client.publish("ntf.status.other.email.sent", b"of another tenant", "other-tenants")
    mine = _replay(replayed, "--stream", "STATUS", "--from-seq", 1, "--dry-run")
    other = _replay(replayed, "--stream", "STATUS", "--from-seq", 1, "--tenant", "other", "--dry-run")
    everyone = _replay(replayed, "--stream", "STATUS", "--from-seq", 1, "--all-tenants", "--dry-run")
    assert other["messages"] == 1 and everyone["messages"] == mine["messages"] + 1
    filtered = _replay(replayed, "--stream", "STATUS", "--from-seq", 1, "--subject", "ntf.status.*.email.sent", "--dry-run")
    assert filtered["skipped"]["other_tenant"] == 1 and len(filtered["subjects"]) == 1


# ---- to a subject ---------------------------------------------------------------------------------------------------


def test_to_a_subject_they_are_plain_messages_that_nothing_keeps(replayed, client):
    subscriber = Subscriber(replayed.nats.port)
    subscriber.subscribe("replay.>")
    before = _lengths(client)
    done = _replay(replayed, "--stream", "REQUEST_NORMAL", "--from-seq", 3, "--to-seq", 12, "--to-subject", "replay.audit.one")
    assert done["published"] == 10
    for sequence in range(3, 13):
        subject, headers, payload = subscriber.next()
        stored = json.loads(client.request("$JS.API.STREAM.MSG.GET.REQUEST_NORMAL", json.dumps({"seq": sequence}).encode()))
        assert subject == "replay.audit.one" and payload == client.message("REQUEST_NORMAL", seq=sequence)[1]
        assert headers["Stentor-Replay"] == done["run"] and headers["Stentor-Sequence"] == f"REQUEST_NORMAL/{sequence}"
        assert headers["Stentor-Subject"] == stored["message"]["subject"] and len(headers["Nats-Msg-Id"]) == 22
    subscriber.close()
    assert _lengths(client) == before


def test_the_rate_is_kept(replayed):
    began = time.monotonic()
    done = _replay(replayed, "--stream", "RENDERED_NORMAL", "--from-seq", 1, "--to-seq", 50, "--to-subject", "replay.slow",
                   "--rate", "25/s")
    assert done["published"] == 50 and 1.8 <= time.monotonic() - began <= 10


# ---- interrupted ----------------------------------------------------------------------------------------------------


def test_an_interrupted_replay_goes_on_under_the_same_run(replayed, client):
    """SIGINT in the middle; the printed command does the rest, and nothing is there twice."""
    mails = replayed.mailbox.count_by_message_id()
    before = client.stream_info("RENDERED_NORMAL")["state"]["last_seq"]
    words = ["--stream", "RENDERED_NORMAL", "--from-seq", "1", "--to-seq", str(COUNT), "--to-service", "dispatcher", "--json"]
    child = subprocess.Popen([BIN / "stentor", "replay", *words, "--rate", "20/s"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=_environment(replayed))
    wait_until(lambda: client.stream_info("RENDERED_NORMAL")["state"]["last_seq"] >= before + 10, 30, "some copies")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    first = json.loads(out)
    assert child.returncode == 1 and not first["complete"] and 10 <= first["published"] < COUNT
    assert first["next_sequence"] == first["published"] + 1 and first["continue"] in err
    command = shlex.split(first["continue"])
    assert command[:2] == ["stentor", "replay"] and f"--run {first['run']}" in first["continue"]
    second = _replay(replayed, *command[2:])
    assert second["complete"] and second["duplicates"] == 0 and first["published"] + second["published"] == COUNT
    whole = _replay(replayed, *words[:-1], "--run", first["run"])
    assert whole["published"] == whole["duplicates"] == COUNT
    assert client.stream_info("RENDERED_NORMAL")["state"]["last_seq"] == before + COUNT
    wait_until(lambda: _settled(client, "RENDERED_NORMAL", "dispatcher"), 30, "the copies being worked off")
    assert replayed.mailbox.count_by_message_id() == mails


def test_a_replay_goes_on_after_the_server_was_killed(replayed, client):
    mails = replayed.mailbox.count_by_message_id()
    before = client.stream_info("RENDERED_NORMAL")["state"]["last_seq"]
    child = subprocess.Popen(
        [BIN / "stentor", "replay", "--stream", "RENDERED_NORMAL", "--from-seq", "1", "--to-seq", str(COUNT), "--to-service",
         "dispatcher", "--rate", "20/s", "--json"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=_environment(replayed))
    wait_until(lambda: client.stream_info("RENDERED_NORMAL")["state"]["last_seq"] >= before + 10, 30, "some copies")
    replayed.nats.kill()
    replayed.nats.start()
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    done = json.loads(out)
    assert done["complete"] and done["published"] == COUNT
    fresh = NatsClient(replayed.nats.port)
    assert fresh.stream_info("RENDERED_NORMAL")["state"]["last_seq"] == before + COUNT
    wait_until(lambda: _settled(fresh, "RENDERED_NORMAL", "dispatcher"), 60, "the copies being worked off")
    fresh.close()
    assert replayed.mailbox.count_by_message_id() == mails


@pytest.mark.long
def test_copies_do_not_fill_a_stream(client, replayed):
    """A full one refuses what the pipeline writes."""
    made = client.stream_info("RENDERED_LOW")["config"]
    small = {**made, "max_bytes": 200_000}
    assert "error" not in json.loads(client.request("$JS.API.STREAM.UPDATE.RENDERED_LOW", json.dumps(small).encode()))
    replayed.services["dispatcher"].pause()  # nothing is acknowledged, so the clock may trim nothing
    try:
        for i in range(50):
            client.publish("ntf.rendered.low.acme", b"x" * 2000, f"large-{i}")
        stopped = _replay(replayed, "--stream", "RENDERED_LOW", "--from-seq", 1, "--to-service", "dispatcher", status=1)
        state = client.stream_info("RENDERED_LOW")["state"]
        assert not stopped["complete"] and 0 < stopped["published"] < 50 and stopped["seconds"] > 30
        assert stopped["next_sequence"] == stopped["published"] + 1
        assert 140_000 < state["bytes"] < 190_000, state
        client.publish("ntf.rendered.low.acme", b"what the pipeline writes still fits", "after")
    finally:
        assert "error" not in json.loads(client.request("$JS.API.STREAM.UPDATE.RENDERED_LOW", json.dumps(made).encode()))
        replayed.services["dispatcher"].pause(False)
    wait_until(lambda: _settled(client, "RENDERED_LOW", "dispatcher"), 60, "the unreadable being buried")


# ---- used wrongly ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words,said", [
    (["--from-seq", 1, "--dry-run"], "--stream is required"),
    (["--stream", "STATS", "--from-seq", 1, "--dry-run"], "STATUS"),
    (["--stream", "STATUS", "--dry-run"], "--from-seq N, --from-time TIME and --last-per-subject"),
    (["--stream", "STATUS", "--from-seq", 1, "--from-time", "1h", "--dry-run"], "one of --from-seq"),
    (["--stream", "STATUS", "--from-time", "yesterday", "--dry-run"], "RFC 3339"),
    (["--stream", "STATUS", "--from-seq", 9, "--to-seq", 3, "--dry-run"], "--to-seq is before"),
    (["--stream", "STATUS", "--from-seq", 1], "--to-service NAME, --to-subject replay.NAME or --dry-run"),
    (["--stream", "STATUS", "--from-seq", 1, "--to-service", "archiver"], "a copy in STATUS would reach its subscribers"),
    (["--stream", "RENDERED_LOW", "--from-seq", 1, "--to-service", "renderer"], "--to-service dispatcher"),
    (["--stream", "STATUS", "--from-seq", 1, "--to-subject", "ntf.status.acme"], "below 'replay.'"),
    (["--stream", "STATUS", "--from-seq", 1, "--to-subject", "replay.>"], "below 'replay.'"),
    (["--stream", "STATUS", "--from-seq", 1, "--subject", "ntf.request.>", "--dry-run"], "within 'ntf.status.>'"),
    (["--stream", "INBOUND", "--from-seq", 1, "--dry-run"], "--all-tenants"),
    (["--stream", "STATUS", "--from-seq", 1, "--rate", "0/s", "--dry-run"], "--rate"),
    (["--stream", "STATUS", "--from-seq", 1, "--run", "a b", "--dry-run"], "--run"),
    (["--stream", "STATUS", "--from-seq", 1, "--template", "x.hbs", "--dry-run"], "--shadow"),
    (["--shadow", "--from-time", "1h"], "--template"),
    (["--shadow", "--template", "/dev/null", "--key", "welcome"], "--from-time TIME"),
    (["--shadow", "--template", "/dev/null", "--key", "welcome", "--from-time", "1h", "--tenant", "No Such"], "'No Such' is not a tenant"),
    (["--shadow", "--from-time", "1h", "--template", "/none.hbs"], "/none.hbs"),
    (["--shadow", "--from-time", "1h", "--template", "/dev/null", "--to-service", "renderer"], "no meaning with --shadow"),
])
def test_wrong_use_names_the_right_one(replayed, words, said):
    reported = _replay(replayed, *words, status=2)
    assert said in reported, reported


def test_a_beginning_past_the_streams_age_is_refused(replayed, client):
    for i in range(5):
        client.publish("ntf.settle.unknown", b"x", f"aged-{i}")
    client.request("$JS.API.STREAM.PURGE.SETTLE", b'{"seq": 4}')
    reported = _replay(replayed, "--stream", "SETTLE", "--from-seq", 2, "--all-tenants", "--dry-run", status=1)
    assert "--from-seq 4" in reported


# ---- shadow ---------------------------------------------------------------------------------------------------------


def test_a_shadow_tells_what_would_have_been_different_and_sends_nothing(replayed, client, tmp_path):
    same, other = tmp_path / "welcome.hbs", tmp_path / "welcome.new.hbs"
    same.write_text("<h1>Welcome, {{name}}!</h1>{{#if plan}}<p>Plan: {{plan}}</p>{{/if}}")
    other.write_text("<h1>Good day, {{name}}!</h1>\n<p>Write to help@example.com.</p>\n")
    _archived(replayed, client)
    before, rows = _lengths(client), _rows(replayed)
    nothing = _replay(replayed, "--shadow", "--template", same, "--from-time", "1h")
    assert nothing["same"] == nothing["requests"] >= COUNT and nothing["different"] == 0 and nothing["groups"] == []
    changed = _replay(replayed, "--shadow", "--template", other, "--from-time", "1h")
    assert changed["different"] == changed["requests"] == nothing["requests"] and changed["same"] == 0
    assert len(changed["groups"]) == 1 and changed["groups"][0]["count"] == changed["different"]
    diff = changed["groups"][0]["diff"]
    assert "--- html, as it was\n+++ html, as it would have been\n@@ -1,1 +1,2 @@\n" in diff
    name = re.search(r"^-<h1>Welcome, (.+)!</h1>$", diff, re.M).group(1)
    assert f"\n+<h1>Good day, {name}!</h1>\n" in diff
    assert "hel***@example.com" in diff and "help@example.com" not in diff and "subject" not in diff
    few = _replay(replayed, "--shadow", "--template", other, "--from-time", "1h", "--limit", 7, "--diffs", 0)
    assert few["requests"] == 7 and few["limited"] and few["groups"][0]["diff"] is None
    assert _lengths(client) == before and _rows(replayed) == rows


def test_a_shadow_names_what_would_fail_and_what_the_gate_would_stop(replayed, client, tmp_path):
    subject = tmp_path / "subject.txt"
    subject.write_text("Hello {{name}}\n")
    loop = tmp_path / "welcome.hbs"
    loop.write_text("{{> missing}}")
    reported = _replay(replayed, "--shadow", "--template", loop, "--from-time", "1h", status=1)
    assert "the new content cannot be used" in reported and "missing" in reported
    shadow = ["--shadow", "--subject-template", subject, "--key", "welcome", "--from-time", "1h"]
    assert "subject, as it was" in _replay(replayed, *shadow)["groups"][0]["diff"]
    replayed.cli("tenant", "put", "acme", "--name", "Acme", "--sender", "hello@acme.test", "--sender-name", "Acme", "--suspended")
    stopped = _replay(replayed, *shadow)
    assert stopped["suppressed"] == stopped["requests"] > 0
    replayed.cli("tenant", "put", "acme", "--name", "Acme", "--sender", "hello@acme.test", "--sender-name", "Acme", "--no-suspended")
    # Erased: the key is gone, so nothing can be shown of it.
    erased = replayed.postgres.query("UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now() WHERE (subject, generation) ="
                                     " (SELECT subject, generation FROM keys.data_keys LIMIT 1) RETURNING 1")
    assert len(erased) == 1
    assert _replay(replayed, *shadow)["recipient_erased"] >= 1
    misspelt = _replay(replayed, "--shadow", "--subject-template", subject, "--key", "welcom", "--from-time", "1h", status=3)
    assert "no version of template 'welcom' is published" in misspelt and "--key" in misspelt
    assert "no version of template 'welcome' has the locale 'xx-XX'" in _replay(replayed, *shadow, "--locale", "xx-XX", status=3)
    assert "STENTOR_MASTER_KEY_FILE" in _replay(replayed, *shadow, status=2, STENTOR_MASTER_KEY_FILE="")
    warned = subprocess.run([BIN / "stentor", "replay", *map(str, shadow)], text=True, capture_output=True, timeout=60,
                            env=_environment(replayed))
    assert warned.returncode == 0 and "shows what recipients were sent" in warned.stderr and "different" in warned.stdout


def test_nothing_in_the_shadows_code_can_publish():
    """By construction: no object file of the shadow refers to a function that publishes or sends."""
    archives = sorted(BIN.parent.glob("*/lib*.a"))
    if not archives:
        pytest.skip("the object files of this build are not here")
    members = {archive: subprocess.run(["ar", "t", archive], check=True, capture_output=True, text=True).stdout.split() for archive in archives}
    engines = [archive for archive, names in members.items() if {"shadow_content.c.o", "replay_run.c.o"} & set(names)]
    undefined = subprocess.run(["nm", "-A", "-u", *engines], check=True, capture_output=True, text=True).stdout
    used = {}
    for line in undefined.splitlines():
        found = re.match(r".*:([\w.-]+\.o):\s+U (\w+)", line)
        if found:
            used.setdefault(found.group(1), set()).add(found.group(2))
    senders = {"bus_publish", "bus_send", "bus_send_event", "session_publish", "config_put", "delivery_emit"}
    assert used["replay_run.c.o"] & senders, "the names have changed: this test would find nothing"
    shadow = {name: names for name, names in used.items() if name.startswith(("shadow", "diff"))}
    assert len(shadow) >= 5 and "reader_new" in shadow["shadow.c.o"]
    for name, names in shadow.items():
        assert not names & senders, (name, names & senders)
