# SPDX-License-Identifier: Apache-2.0
"""Kills every service at every crash point, starts it again, and compares what is there at the end with an uninterrupted run.

The points are the binaries' own (common/base/crash.h): a new one is in the matrix by itself. HOW says what makes a point
pass where that is not a batch of plain e-mails; a point that is not reached fails. What the dispatcher's sending window can
do, send a mail twice, is allowed at the points of that window only, and only when the ledger counts it as unknown.

JetStream's duplicate window is 0.1 s here instead of 120 s, so what is published again is stored again: the readers alone
have to drop it, as they would after a crash that lasts for longer."""
import itertools
import json
import os
import pprint
import subprocess
import threading
from dataclasses import dataclass

import pytest

from tests.harness.crash_load import KINDS, Bench, CrashMailbox, Run
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, HOME, SERVICES, Nats, free_port, wait_until

FAST = {"STENTOR_DISPATCHER_LEASE_MS": "10000", "STENTOR_RETRY_LADDER": "1", "STENTOR_INGEST_SWEEP_AGE_MS": "400",
        "STENTOR_INGEST_SWEEP_MS": "200", "STENTOR_INGEST_RESEAL_MS": "200", "STENTOR_SMTP_CONNECTIONS": "1"}
ACK_WAIT_MS = 1000
DIED = -9


def points_of(program, service):
    done = subprocess.run([BIN / program, "--crash-points"], capture_output=True, text=True, timeout=20)
    return [(service, line.split("\t")[0]) for line in done.stdout.splitlines()] if done.returncode == 0 else []


@dataclass(frozen=True)
class How:
    """kind: what makes the point pass. number: at which passing. after: killed there first. drain: on SIGTERM, with mails waiting."""
    kind: str = "batch"
    number: int = 1
    after: str = ""
    drain: bool = False


# One list of cases for a point of all services (by its name), of a service (by "service:name"), or of a service at all.
HOW = {
    "ingest:bus.stored": [How(), How(number=4), How("command")],  # a row of three has six events
    "ingest:worker.unacked": [How("command")],
    "ingest:worker.letter_stored": [How("poison.evt")],
    "intake.stored": [How("command")],
    "ingest.committed": [How(), How("command")],
    "ingest.published": [How(), How(after="ingest.committed")],  # the latter: published by the sweep
    "ingest.refused": [How(after="ingest.committed")],  # the callers, without an answer, repeat their keys
    "ingest.sweep_claimed": [How(after="ingest.committed")],
    # The event that asks for a resend is published straight into EVENTS, in clear.
    "reseal.noted": [How("resend")],
    "reseal.copied": [How("resend")],
    "reseal.erased": [How("resend")],
    "reseal.marked": [How("resend"), How("resend", number=2)],  # once the copy is stored, once the original is erased
    "resend.noted": [How("resend")],
    "resend.published": [How("resend")],
    "resend.marked": [How("resend")],
    "resend.deleted": [How("resend")],
    "batch.accepted": [How("campaign"), How("campaign", number=3)],
    "batch.moved": [How("campaign"), How("campaign", number=3)],
    "batch.page_stored": [How("chosen")],
    "gateway": [How("managed")],
    "gateway:bus.publishing": [How("managed"), How("tenant"), How("asset"), How("reply", number=2)],
    "gateway:bus.stored": [How("managed"), How("tenant"), How("asset"), How("reply"), How("reply", number=2)],  # a release: noted, done
    "gateway:worker.unacked": [How("tenant"), How("reply", number=2)],  # STOP is acked as well
    "gateway:worker.letter_stored": [How("poison.tenant")],
    "gateway.asset_stored": [How("asset")],
    "api.noted": [How("asset")],
    "renderer:bus.stored": [How(), How(number=2), How("endless")],
    "renderer:worker.letter_stored": [How("poison.request")],
    "dispatcher": [How("single")],
    "dispatcher:bus.stored": [How("single"), How("retry"), How("retry", number=2)],  # a deferral is two events
    "dispatcher:worker.letter_stored": [How("poison.rendered")],
    "dispatcher.outcome_committed": [How("single"), How("retry"), How("rejected")],
    "dispatcher.taken_over": [How("single", after="dispatcher.claimed")],
    "dispatcher.late_noted": [How("callback")],
    "dispatcher.released": [How(drain=True)],
    "inapp.stored": [How("inapp")],
    "inbox.status_stored": [How("shown")],
    "inbox.end_stored": [How("snoozed")],
    "smtp.answered": [How("single"), How("retry"), How("rejected")],
    "digest-flusher": [How("scheduled")],
    "digest-flusher:worker.letter_stored": [How("poison.deferred")],
    "flusher.inserted": [How("scheduled"), How("retry")],
    "flusher.frozen": [How("digest")],
    "flusher.digested": [How("digest")],
    "flusher.published": [How("scheduled"), How("retry"), How("digest", after="flusher.digested")],
    "webhook-receiver": [How("callback")],
    "webhook-receiver:bus.stored": [How("callback"), How("callback", number=2), How("reply", number=2), How("reply", number=3)],  # itself, what it says
    "lmtp.stored": [How("bounce")],
    "webhook-receiver:worker.unacked": [How("callback"), How("bounce"), How("reply")],
    "webhook-receiver:worker.letter_stored": [How("poison.inbound")],
    "projector.letter_stored": [How("poison.status")],
    # Only what comes again is marked: killed before its ack first.
    **{f"{service}:{point}": [How(kind, after="worker.unacked")] for point in ("guard.marked", "guard.lifted")
       for service, kind in {"ingest": "command", "renderer": "batch", "dispatcher": "single", "digest-flusher": "scheduled",
                             "webhook-receiver": "callback", "gateway": "tenant"}.items()},
}
SENDING = {"dispatcher.claimed", "dispatcher.taken_over", "dispatcher.released", "smtp.enveloped", "smtp.dot_written", "smtp.answered",
           "inapp.stored"}
TWICE = {"dispatcher.released", "smtp.dot_written", "smtp.answered"}  # of these: the vendor may have the mail

# Of mails with a route: test_crash_vendors.py. Of dead letters over the API and of jobs: operating_api/test_*.py.
ELSEWHERE = {"dispatcher.moved", "http.answered", "gateway.letters_noted", "gateway.end_stored", "job.claimed", "job.ended"}
# Those of ingest at which the caller has read its 202 already: from there on the notification may not depend on a repeat.
ANSWERED = {"bus.publishing", "bus.stored", "ingest.published", "ingest.marked"}


def cases():
    for service, point in itertools.chain.from_iterable(points_of(f"stentor-{name}", name) for name in SERVICES):
        if point in ELSEWHERE:
            continue
        # A process dies at each of its points in every run; at the second passing, or by another kind of input, in full.
        for count, how in enumerate(HOW.get(f"{service}:{point}") or HOW.get(point) or HOW.get(service) or [How()]):
            words = [service, point, how.kind] + ([str(how.number)] if how.number > 1 else []) + (["after-" + how.after] if how.after else [])
            yield pytest.param(service, point, how, id="-".join(words), marks=[pytest.mark.long] if count else [])


CASES = list(cases())
# What an earlier version stored is in no new installation: test_finding_02_config.py ends migrate at config.ordered. A rebuild: test_rebuild_saga.py.
# test_init.py ends init at each of its own, and access/test_cli_noted.py a command.
CLI_POINTS = [point for _, point in points_of("stentor", "cli") if point != "config.ordered" and not point.startswith(("init.", "rebuild.", "command."))]
pytestmark = pytest.mark.skipif(not CASES, reason="built without -DSTENTOR_CRASH_POINTS=ON")


@pytest.fixture(scope="module")
def bench():
    pipeline = Pipeline(FAST, ack_wait_ms=ACK_WAIT_MS)
    pipeline.mailbox = CrashMailbox(pipeline.mailbox.port, pipeline.postgres)
    pipeline.lmtp_port = free_port()
    pipeline.extra = {**FAST, "STENTOR_CREDENTIAL_DIRS": str(pipeline.folder / "credentials"), "STENTOR_LMTP_BIND": "127.0.0.1", "STENTOR_LMTP_PORT": pipeline.lmtp_port,
                      "STENTOR_STORAGE_URL": f"file://{pipeline.folder}/objects", "STENTOR_SEGMENT_S": "1", "STENTOR_CONTENT_KEPT": "3s",
                      "STENTOR_GATEWAY_KEY_LEASE_MS": 1000,
                      "STENTOR_SEGMENT_SPOOL_DIR": pipeline.folder}
    (pipeline.folder / "credentials").mkdir(exist_ok=True)
    pipeline.start()
    bench = Bench(pipeline)
    bench.installed = installation(pipeline, pipeline.nats, "stentor")
    bench.shrink_duplicate_windows()
    yield bench
    bench.close()
    pipeline.stop()


@pytest.fixture(scope="module")
def uninterrupted(bench):
    """What the load leaves without a kill; checked, so that two equal runs are not two broken ones."""
    run = Run(bench, "calm")
    run.send_left()
    run.wait_end()
    seen = run.observe()
    ends = {kind: {dict(row)["status"] for row in rows} for kind, rows in seen["history"].items()}
    assert ends == {"called": {"opened"}, "returned": {"bounced"}, "single": {"sent"}, "batch": {"sent"}, "campaign": {"sent"}, "chosen": {"sent"}, "scheduled": {"sent"}, "retry": {"sent"}, "rejected": {"failed"},
                    "inapp": {"opened"}, "endless": {"failed"}, "command": {"sent"}, "item": {"superseded"}, "digest": {"sent"}, "resend": {"sent"}}
    assert {kind: len(rows) for kind, rows in seen["ledger"].items()} == {
        "called": 1, "returned": 1, "single": 1, "batch": 3, "campaign": 3, "chosen": 3, "scheduled": 2, "retry": 2, "rejected": 1, "inapp": 1, "command": 1, "digest": 1, "resend": 3}
    assert sorted(stage for stage, _, _ in seen["letters"].elements()) == sorted(
        ["ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "webhook-receiver", "archiver", "archiver", "dispatcher", "renderer"])  # the last: what failed
    assert seen["feed"] == {("inapp", "item"): 1}
    assert [dict(row) for row in seen["inbox"]] == [{"read": True, "unseen": 0, "unread": 0, "total": 1}]
    assert seen["tenant"] == ("Inn", "eu", True)
    assert (seen["opt_out"]["by"], seen["opt_out"]["released_by"]) == ("reply", "reply")
    assert seen["people"] == {"recipients": 1, "addresses": 1} and seen["asset"] == {"shown": True, "listed": True}
    assert sum(run.mails.values()) == 18 and sum(run.unknown.values()) == 0
    return seen


def start_armed(service, point, wait=True):
    """wait: until it is ready; not when what makes it pass the point is there already."""
    service.options["STENTOR_CRASH_AT"] = point
    service.start(wait)
    del service.options["STENTOR_CRASH_AT"]


def wait_death(service, point):
    status = service.exit_status(20)
    assert status == DIED and f"crash point '{point}' reached" in service.tail(), f"{status}\n{service.tail()}"


def make_it_pass(run, service, how):
    """In a thread, since a sender may go on until the service is back."""
    mailbox = run.bench.pipeline.mailbox
    if how.drain:
        mailbox.gate.clear()
    sender = threading.Thread(target=run.send, args=(how.kind,), daemon=True)
    sender.start()
    if how.drain:
        wait_until(lambda: mailbox.waiting, 10, "a mail in the server's hands")
        sender.join()
        wait_until(lambda: service.metric("stentor_dispatcher_smtp_queued") > 0, 10, "mails waiting for the connection")
        service.child.terminate()
    return sender


@pytest.mark.parametrize("victim, point, how", CASES)
def test_killed_there_it_ends_as_if_nothing_had_happened(bench, uninterrupted, request, victim, point, how):
    service = bench.pipeline.services[victim]
    run = Run(bench, request.node.callspec.id)
    if how.kind in ("callback", "bounce", "shown", "snoozed"):  # about a mail that is there, and not in the dispatcher's hands when it is killed
        about = {"callback": "called", "bounce": "returned", "shown": "inapp", "snoozed": "inapp"}[how.kind]
        run.send(about)
        run.wait_sent(run.ids[about][0])
    service.kill()
    start_armed(service, how.after or f"{point}:{how.number}")
    sender = make_it_pass(run, service, how)
    wait_death(service, how.after or point)
    if how.after:
        bench.forget_pulls(victim)
        bench.end_leases()
        start_armed(service, f"{point}:{how.number}", wait=False)
        wait_death(service, point)
    bench.pipeline.mailbox.gate.set()
    bench.end_leases()
    service.start()
    sender.join()
    run.send_left()
    run.wait_end()
    seen = run.observe()
    for part, expected in uninterrupted.items():
        assert seen[part] == expected, f"{part} differs from the uninterrupted run:\n{difference(expected, seen[part])}"
    check_mails(run, point, how)
    if victim == "ingest" and point in ANSWERED and how == How(number=how.number):
        assert run.tries["batch"] == 1, "the caller had no answer at a point that comes after it"


def test_a_parked_mail_killed_between_the_ledger_and_its_letter(bench):
    """By policy nothing is sent again here, so its end is not that of the uninterrupted run."""
    service = bench.pipeline.services["dispatcher"]
    run = Run(bench, "parked")
    service.kill()
    service.options["STENTOR_DISPATCHER_UNKNOWN"] = "park"
    try:
        start_armed(service, "dispatcher.claimed")
        run.send("single")
        wait_death(service, "dispatcher.claimed")
        bench.end_leases()
        start_armed(service, "dispatcher.taken_over", wait=False)
        wait_death(service, "dispatcher.taken_over")
        service.start()
        run.wait_end()
    finally:
        del service.options["STENTOR_DISPATCHER_UNKNOWN"]
    seen = run.observe()
    assert [dict(row)["state"] for row in seen["ledger"]["single"]] == ["parked"]
    assert list(run.mails.values()) == [0] and list(run.unknown.values()) == [1]
    assert [(stage, stream) for stage, stream, _ in seen["letters"].elements()] == [("dispatcher", "RENDERED_NORMAL")]


def difference(expected, seen):
    return "\n".join(f"{key}\n  expected {pprint.pformat(expected.get(key))}\n  seen     {pprint.pformat(seen.get(key))}"
                     for key in sorted({*expected, *seen}, key=repr) if expected.get(key) != seen.get(key))


def check_mails(run, point, how):
    due = {i: 0 if run.kind_of(i) in ("rejected", "inapp", "endless", "item") else 1 for i in run.mails}
    doubled = {i for i, count in run.mails.items() if count != due[i]}
    unknown = {i for i, count in run.unknown.items() if count > 0}
    if point in SENDING:
        assert unknown and unknown <= set(run.ids[how.kind]), "the mail that was in the window is not counted as unknown"
    else:
        assert unknown == set()
    allowed = unknown if point in TWICE else set()
    assert doubled <= allowed and all(run.mails[i] == 2 for i in doubled), f"sent twice: {doubled - allowed}"


# ---- stentor migrate: every migration, stream and consumer is a durable effect of its own ----


def migrate(pipeline, nats, database, crash_at=""):
    environment = {"PATH": os.environ["PATH"], "STENTOR_HOME": str(HOME), "STENTOR_NATS_URL": nats.url, "STENTOR_NATS_USER": "stentor-admin",
                   "STENTOR_NATS_PASSWORD": "pw", "STENTOR_DATABASE_URL": pipeline.postgres.url("stentor_owner", database), "STENTOR_CRASH_AT": crash_at}
    return subprocess.run([BIN / "stentor", "migrate", "--bytes-scale-percent", "1", "--ack-wait-ms", str(ACK_WAIT_MS)], env=environment,
                          capture_output=True, text=True, timeout=60)


def installation(pipeline, nats, database):
    """The database's shape, and the configuration of every stream and consumer."""
    dump = subprocess.run([pipeline.postgres.bin / "pg_dump", "--schema-only", "--dbname", pipeline.postgres.url("postgres", database)],
                          check=True, capture_output=True, text=True).stdout
    client = NatsClient(nats.port)
    streams = json.loads(client.request("$JS.API.STREAM.NAMES"))["streams"]
    config = {stream: (client.stream_info(stream)["config"], sorted(
        (consumer["name"], json.dumps(consumer["config"], sort_keys=True))
        for consumer in json.loads(client.request(f"$JS.API.CONSUMER.LIST.{stream}"))["consumers"] or []
        if consumer["config"].get("durable_name"))) for stream in streams}
    client.close()
    applied = pipeline.postgres.query("SELECT schema, number, slug, checksum FROM stentor.migrations ORDER BY 1, 2", database=database)
    return [line for line in dump.splitlines() if not line.startswith("\\")], config, applied


@pytest.mark.parametrize("number", [1, 6])
@pytest.mark.parametrize("point", CLI_POINTS)
def test_migrate_killed_there_and_run_again_ends_the_same(bench, tmp_path_factory, point, number):
    pipeline = bench.pipeline
    database = f"crash_{point.replace('.', '_')}_{number}"
    pipeline.postgres.create_database(database)
    nats = Nats(tmp_path_factory.mktemp("nats")).start()
    try:
        first = migrate(pipeline, nats, database, f"{point}:{number}")
        assert first.returncode == DIED and f"crash point '{point}' reached" in first.stderr, first
        second = migrate(pipeline, nats, database)
        assert second.returncode == 0, second
        assert installation(pipeline, nats, database) == bench.installed
    finally:
        nats.kill()


def test_an_unknown_point_is_refused(bench):
    done = migrate(bench.pipeline, bench.pipeline.nats, "stentor", "no.such_point")
    assert done.returncode == 2 and "no.such_point" in done.stderr


@pytest.mark.parametrize("defined", [True, False], ids=["test-build", "release"])
def test_a_point_is_nothing_in_a_release_build(defined):
    source = '#include "common/base/crash.h"\nCRASH_POINT("a.point");CRASH_POINT_IF("a.point", far < near);'
    flags = ["-DSTENTOR_CRASH_POINTS"] if defined else []
    done = subprocess.run(["cc", "-E", "-P", *flags, f"-I{HOME}", "-x", "c", "-"], input=source, check=True, capture_output=True, text=True)
    expanded = done.stdout.splitlines()[-1]
    if defined:
        assert expanded == 'crash_pass("" "a.point");((far < near) ? crash_pass("" "a.point") : (void)0);'
    else:
        assert expanded == "((void)0);((void)0);"


def test_every_case_of_the_matrix_is_about_a_point_that_exists():
    known = {name for case in CASES for name in (case.values[0], case.values[1], f"{case.values[0]}:{case.values[1]}")}
    assert set(HOW) | SENDING | TWICE <= known
    assert {how.kind for ways in HOW.values() for how in ways} <= set(KINDS)
