# SPDX-License-Identifier: Apache-2.0
"""`stentor audit`: every record of every notification. A row deleted by hand from any source is found and named; a busy
healthy system has nothing to find; what a restored store lost is driven again, and nothing is sent twice for it."""
import json
import shutil
import subprocess
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, wait_until
from tests.integration.faults.test_kill import Load
from tests.integration.sending.test_triggers import guest, handled, new_type, publish, put_trigger

COUNTS = ["accepted", "sent", "failed", "suppressed", "in_flight", "unknown", "lost", "doubled"]
REPORTS = 3
FAST = {"STENTOR_DISPATCHER_LEASE_MS": "4000", "STENTOR_RETRY_LADDER": "1,1,1,1,1", "STENTOR_INGEST_SWEEP_AGE_MS": "2000"}


@pytest.fixture(scope="module")
def audited():
    """A pipeline of this module's own, because its records are broken by hand."""
    running = Pipeline(FAST, ack_wait_ms=3000).start()
    yield running
    running.stop()


def moment():
    """A millisecond of its own, as ids have it and as the audit prints it."""
    time.sleep(0.005)
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "000Z"


@pytest.fixture
def since():
    """What a test accepts lies after this, and what earlier ones broke before it."""
    return moment()


@pytest.fixture
def admin(audited):
    client = NatsClient(audited.nats.port)
    yield client
    client.close()


def audit(pipeline, *words, status=0, grace=1):
    done = pipeline.run_cli("audit", "--grace", grace, "--json", *words)
    assert done.stderr == "" and done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def counts(report):
    return {name: report[name] for name in COUNTS if report[name]}


def named(report, what="lost"):
    return {(finding["id"], finding["source"]) for finding in report["findings"] if finding["what"] == what}


def settle():
    """Until what was done is older than the grace of a second."""
    time.sleep(1.5)


def later(**delta):
    return (datetime.now(timezone.utc) + timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def delete_message(client, stream, text):
    """Deletes the stream's messages that hold the text; returns their number."""
    info = client.stream_info(stream)["state"]
    found = 0
    for sequence in range(info["first_seq"], info["last_seq"] + 1):
        message = client.message(stream, seq=sequence)
        if message is not None and all(word in message[0].encode() + message[1] for word in text):
            answer = json.loads(client.request(f"$JS.API.STREAM.MSG.DELETE.{stream}", json.dumps({"seq": sequence}).encode()))
            assert answer["success"], answer
            found += 1
    return found


# ---- healthy ----------------------------------------------------------------------------------------------------------


def test_a_healthy_system_has_only_accepted_and_sent(audited, since):
    ids = [audited.send(to=f"healthy{i}@example.com") for i in range(10)]
    for notification in ids:
        audited.status(notification, wait="sent")
    report = audit(audited, "--since", since)
    assert counts(report) == {"accepted": 10, "sent": 10}
    assert set(report) == {*COUNTS, "since", "until", "oldest_in_flight_s", "findings", "findings_total", "rows", "seconds",
                           "rows_per_s"}
    assert (report["findings"], report["findings_total"], report["oldest_in_flight_s"]) == ([], 0, 0)
    assert report["since"] == since and report["until"] > since
    # Accept rows, requests, rendered, ledger, two statuses, history and attempts of each; the ten may share accept rows.
    assert report["rows"] >= 7 * 10 + 1 and report["seconds"] > 0
    reported = audited.run_cli("audit", "--since", since)
    assert reported.returncode == 0 and "accepted            10" in reported.stdout and "lost                 0" in reported.stdout


def test_the_span_and_the_tenant_choose_what_is_counted(audited, since):
    audited.status(audited.send(to="span@example.com"), wait="sent")
    middle = moment()
    audited.status(audited.send(to="span@example.com"), wait="sent")
    assert audit(audited, "--since", since)["accepted"] == 2
    assert audit(audited, "--since", since, "--until", middle)["accepted"] == 1
    assert audit(audited, "--since", middle)["accepted"] == 1
    assert audit(audited, "--since", "1h", "--until", since)["until"] == since
    assert audit(audited, "--since", since, "--tenant", TENANT)["accepted"] == 2
    assert audit(audited, "--since", since, "--tenant", "unknown")["accepted"] == 0


def test_each_end_has_its_count(audited, since):
    def end(status, reply=None, **fields):
        if reply:
            audited.mailbox.answer(reply)
        notification = audited.send(**fields)
        assert audited.status(notification, wait=status)["status"] == status
        return notification

    end("failed", **audited.put_endless())  # in the renderer
    end("failed", reply="550 5.1.1 no such user", to="unknown@example.com")  # by the vendor
    end("sent", reply="451 4.7.1 try later")  # at the second attempt
    waiting = audited.send(scheduled_for=later(hours=1))
    audited.status(waiting, wait="scheduled")
    end("sent", scheduled_for=later(seconds=2))
    settle()
    report = audit(audited, "--since", since)
    assert counts(report) == {"accepted": 5, "sent": 2, "failed": 2, "in_flight": 1}
    assert 1 < report["oldest_in_flight_s"] < 60


def test_what_is_held_up_is_in_flight_with_its_age(audited, since):
    renderer = audited.services["renderer"]
    assert renderer.stop() == 0
    try:
        audited.send(to="held@example.com")
        time.sleep(3)
        report = audit(audited, "--since", since)
        assert counts(report) == {"accepted": 1, "in_flight": 1}
        assert 3 <= report["oldest_in_flight_s"] < 30
    finally:
        renderer.start()
    wait_until(lambda: counts(audit(audited, "--since", since)) == {"accepted": 1, "sent": 1}, 20, "its end")


def test_expired_ones_have_no_later_records_and_need_none(audited, since):
    audited.services["renderer"].stop()
    in_renderer = audited.send(expires_at=later(seconds=1))
    time.sleep(2)
    audited.services["renderer"].start()
    audited.services["dispatcher"].stop()
    in_dispatcher = audited.send(expires_at=later(seconds=3))
    time.sleep(4)
    audited.services["dispatcher"].start()
    for notification in (in_renderer, in_dispatcher):
        assert audited.status(notification, wait="failed")["reason_code"] == "expired"
    settle()
    assert counts(audit(audited, "--since", since)) == {"accepted": 2, "failed": 2}


# ---- a record deleted by hand -----------------------------------------------------------------------------------------

ROWS = {
    "accept_log": "DELETE FROM ingest.accept_log WHERE %s = ANY (notification_ids)",
    "ledger": "DELETE FROM dispatcher.ledger WHERE notification_id = %s",
    "history": "DELETE FROM archiver.notifications WHERE id = %s",
}
MESSAGES = {  # stream, what the message holds beside the id, the source's name
    "REQUEST": ("REQUEST_NORMAL", []),
    "RENDERED": ("RENDERED_NORMAL", []),
    "STATUS queued": ("STATUS", [b".queued"]),
    "STATUS sent": ("STATUS", [b".sent"]),
}


def check_found(pipeline, since, notification, source, **others):
    settle()
    report = audit(pipeline, "--since", since, status=1)
    assert named(report) == {(notification, source)}
    assert counts(report) == {"accepted": 2, "lost": 1, **others}
    assert report["findings"][0]["tenant"] == TENANT and report["findings_total"] == 1
    return report["findings"][0]["detail"]


def send_two(pipeline):
    """Apart from each other: an accept row each."""
    ids = [pipeline.send(to=f"two{i}@example.com") for i in range(2)]
    for notification in ids:
        pipeline.status(notification, wait="sent")
    return ids


@pytest.mark.parametrize("source", ROWS)
def test_a_row_deleted_by_hand_is_found_and_named(audited, since, source):
    broken, _ = send_two(audited)
    time.sleep(0.2)  # its accept row is marked as published 50 ms after it was
    audited.postgres.query(ROWS[source], broken)
    detail = check_found(audited, since, broken, source, sent=2)
    assert {"accept_log": "gone", "ledger": "needs an operator", "history": "stentor rebuild history"}[source] in detail
    reported = audited.run_cli("audit", "--since", since, "--grace", 1)
    assert reported.returncode == 1 and f"lost     {broken}  {TENANT}  {source}: {detail}" in reported.stdout


@pytest.mark.parametrize("record", MESSAGES)
def test_a_message_deleted_by_hand_is_found_and_named(audited, admin, since, record):
    broken, _ = send_two(audited)
    stream, words = MESSAGES[record]
    assert delete_message(admin, stream, [broken.encode(), *words]) == 1
    assert "--repair" in check_found(audited, since, broken, record.split()[0], sent=2)


def test_an_attempt_deleted_from_history_is_found_too(audited, since):
    broken, _ = send_two(audited)
    audited.postgres.query("DELETE FROM archiver.delivery_attempts WHERE notification_id = %s", broken)
    check_found(audited, since, broken, "history", sent=2)


@pytest.mark.parametrize("source", ["due_work", "DEFERRED"])
def test_a_deferral_that_waits_is_found_when_one_of_its_records_goes(audited, admin, since, source):
    broken, whole = [audited.send(scheduled_for=later(hours=1)) for _ in range(2)]
    for notification in (broken, whole):
        wait_until(lambda n=notification: audited.postgres.query("SELECT 1 FROM digest_flusher.due_work WHERE notification_id = %s", n), 20)
    settle()
    assert counts(audit(audited, "--since", since)) == {"accepted": 2, "in_flight": 2}
    if source == "due_work":
        audited.postgres.query("DELETE FROM digest_flusher.due_work WHERE notification_id = %s", broken)
        check_found(audited, since, broken, source, in_flight=1)
    else:
        assert delete_message(admin, "DEFERRED", [broken.encode()]) == 1
        check_found(audited, since, broken, source, in_flight=2)


def test_the_first_of_two_attempts_is_not_covered_by_the_second(audited, since):
    audited.mailbox.answer("451 4.7.1 try later")
    broken = audited.send()
    assert len(audited.status(broken, wait="sent")["attempts"]) == 2
    audited.status(audited.send(), wait="sent")
    audited.postgres.query("DELETE FROM dispatcher.ledger WHERE notification_id = %s AND attempt = 1", broken)
    assert "needs an operator" in check_found(audited, since, broken, "ledger", sent=2)


def test_two_acceptances_without_an_unknown_are_doubled(audited, since):
    """Made up in the ledger: the pipeline itself has no way to it."""
    doubled, _ = send_two(audited)
    audited.postgres.query(
        "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, owner, lease_until, claimed_at,"
        " finished_at, vendor) SELECT created_at, notification_id, 2, tenant_id, 'sent', owner, lease_until, claimed_at,"
        " finished_at, NULL FROM dispatcher.ledger WHERE notification_id = %s", doubled)
    settle()
    report = audit(audited, "--since", since, status=1)  # the second attempt lacks its other records
    assert report["doubled"] == 1 and named(report, "doubled") == {(doubled, "ledger")}


# ---- repair -----------------------------------------------------------------------------------------------------------


def test_what_was_sent_and_is_not_in_the_ledger_is_left_to_a_person(audited, admin, since):
    broken, _ = send_two(audited)
    audited.postgres.query(ROWS["ledger"], broken)
    assert delete_message(admin, "REQUEST_NORMAL", [broken.encode()]) == 1
    settle()
    report = audit(audited, "--since", since, "--repair", "--wait", 2, status=1)
    assert report["repaired"] == 0 and report["lost"] == report["before"]["lost"] == 1
    assert named(report) == {(broken, "ledger"), (broken, "REQUEST")}
    assert all("needs an operator" in finding["detail"] for finding in report["findings"])
    time.sleep(1)
    assert len(audited.mailbox.for_notification(broken)) == 1


def test_repair_drives_what_never_went_on_and_does_not_send_what_was_sent(audited, admin, since):
    renderer = audited.services["renderer"]
    renderer.stop()
    lost = audited.send(to="lost@example.com")
    assert wait_until(lambda: delete_message(admin, "REQUEST_NORMAL", [lost.encode()]), 10) == 1
    renderer.start()
    sent, whole = send_two(audited)
    assert delete_message(admin, "REQUEST_NORMAL", [sent.encode()]) == 1
    settle()
    report = audit(audited, "--since", since, "--repair", "--wait", 30)
    assert named(report["before"]) == {(lost, "REQUEST"), (sent, "REQUEST")}
    assert counts(report["before"]) == {"accepted": 3, "sent": 2, "lost": 2}
    assert report["repaired"] == 2 and counts(report) == {"accepted": 3, "sent": 3}
    assert [len(audited.mailbox.for_notification(n)) for n in (lost, sent, whole)] == [1, 1, 1]
    reported = audited.run_cli("audit", "--since", since, "--grace", 1, "--repair")
    assert reported.returncode == 0 and "published again: 0" in reported.stdout


def test_repair_does_not_drive_what_has_ended_and_expired_since(audited, admin, since):
    notification = audited.send(expires_at=later(seconds=2))
    audited.status(notification, wait="sent")
    assert delete_message(admin, "REQUEST_NORMAL", [notification.encode()]) == 1
    time.sleep(3)
    report = audit(audited, "--since", since, "--repair", "--wait", 2, status=1)
    assert report["repaired"] == 0 and named(report) == {(notification, "REQUEST")}
    assert audited.status(notification)["status"] == "sent"


def test_repair_supersedes_again_what_a_lost_cancellation_left_waiting(audited, admin, since):
    """A moved date: NATS lost the cancellation and the newer reminder. Driven again alone, the recipient would get both dates."""
    event_type, data = new_type("stay"), guest()
    trigger = put_trigger(audited, event_type, anchor="stay.start", subject_path="stay.id")
    waiting = "SELECT count(*) FROM digest_flusher.due_work WHERE cancel_key = %s AND status IS NULL"

    def confirm(days):
        body = {**data, "stay": {"id": "s1", "start": later(days=days)}, "produced_at": moment()}
        handled(audited, admin, publish(admin, event_type, body, event_id=f"{event_type}-{days}"))

    confirm(2)
    wait_until(lambda: audited.postgres.query(waiting, f"{trigger}/s1")[0][0] == 1, 20, "the first reminder")
    clock = audited.services["digest-flusher"]
    clock.stop()
    confirm(9)
    newer = f"{event_type}-9".encode()
    assert wait_until(lambda: delete_message(admin, "DEFERRED", [f"{trigger}/s1".encode(), newer]), 10) == 2
    clock.start()
    settle()
    report = audit(audited, "--since", since, "--repair", "--wait", 30)
    assert report["before"]["lost"] == 1 and report["repaired"] == 1 and counts(report) == {"accepted": 2, "in_flight": 1, "suppressed": 1}
    assert audited.postgres.query(waiting, f"{trigger}/s1")[0][0] == 1
    assert audited.history_count(f"reason_code = 'rescheduled' AND reason LIKE '%{event_type}%'") == 1


# ---- under load, killed, restored -------------------------------------------------------------------------------------


class Busy(Load):
    """Goes on until stop(), so that every audit before it meets work."""

    def __init__(self, pipeline):
        super().__init__(pipeline, total=0)
        self.ending = threading.Event()

    def run(self):
        while not self.ending.wait(0.05):
            self.ids += self.post(bodies("busy")[:20], f"busy-{self.total}")
            self.total += 20

    def stop(self):
        self.ending.set()
        self.join()
        assert self.refused == []


def test_a_busy_healthy_system_has_nothing_lost():
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    load = Busy(pipeline)
    load.start()
    try:
        reports = []
        while len(reports) < REPORTS or len(load.ids) < 1000:
            pipeline.mailbox.answer("451 4.7.1 try later", times=20)  # the way back: DEFERRED, the clock, RENDERED
            reports.append(audit(pipeline, "--limit", 0, grace=5))
        load.stop()
        for report in reports:
            assert report["findings"] == [], report["findings"][:5]
            assert report["accepted"] == report["sent"] + report["in_flight"]
        wait_until(lambda: pipeline.history_count("status = 'sent'") == load.total, 60, "every end")
        time.sleep(2)
        assert counts(audit(pipeline)) == {"accepted": load.total, "sent": load.total}
    finally:
        pipeline.stop()


def doubles(pipeline):
    taken = {mid.strip("<>").split("@")[0]: count for mid, count in pipeline.mailbox.count_by_message_id().items()}
    return {notification for notification, count in taken.items() if count > 1}


def test_every_unknown_outcome_is_named_after_a_dispatcher_was_killed():
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    load = Load(pipeline, total=2000)
    load.start()
    try:
        def sent():
            return pipeline.postgres.query("SELECT count(*) FROM dispatcher.ledger WHERE state = 'sent'")[0][0]
        while load.is_alive():
            before = sent()
            time.sleep(0.5)
            wait_until(lambda: sent() > before or not load.is_alive(), 30, "mails, between two kills")
            pipeline.services["dispatcher"].kill()
            pipeline.services["dispatcher"].start()
        load.join()
        wait_until(lambda: pipeline.history_count("status = 'sent'") == load.total, 60, "every end")
        unknown = {row[0] for row in pipeline.postgres.query("SELECT notification_id FROM dispatcher.ledger WHERE unknown_count > 0")}
        settle()
        report = audit(pipeline, "--limit", 0)
        assert counts(report) == {name: count for name, count in
                                  {"accepted": load.total, "sent": load.total, "unknown": len(unknown)}.items() if count}
        assert {notification for notification, _ in named(report, "unknown")} == unknown
        assert unknown and doubles(pipeline) <= unknown
        few = audit(pipeline, "--limit", 1)
        assert len(few["findings"]) == 1 and few["findings_total"] == len(unknown)
    finally:
        pipeline.stop()


def test_a_claim_without_an_outcome_and_a_parked_one_are_unknown(audited, since):
    claimed, parked = send_two(audited)
    audited.postgres.query("UPDATE dispatcher.ledger SET state = 'claimed', lease_until = now(), finished_at = NULL"
                           " WHERE notification_id = %s", claimed)
    audited.postgres.query("UPDATE dispatcher.ledger SET state = 'parked' WHERE notification_id = %s", parked)
    report = audit(audited, "--since", since)
    details = {finding["id"]: finding["detail"] for finding in report["findings"] if finding["what"] == "unknown"}
    assert "is gone" in details[claimed] and "parked" in details[parked] and report["unknown"] == 2
    # An operator has it sent again, as the next attempt; the parked one stays.
    columns = [name for name, in audited.postgres.query(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'dispatcher' AND table_name = 'ledger'")]
    second = ", ".join({"attempt": "2::smallint", "state": "'sent'"}.get(name, name) for name in columns)
    audited.postgres.query(f"INSERT INTO dispatcher.ledger ({', '.join(columns)}) SELECT {second} FROM dispatcher.ledger"
                           " WHERE notification_id = %s", parked)
    # It has no events here: once the grace is over they count as lost.
    again = json.loads(audited.run_cli("audit", "--grace", 1, "--json", "--since", since).stdout)
    details = {one["id"]: one["detail"] for one in again["findings"] if one["what"] == "unknown"}
    assert "may have been sent twice" in details[parked]


def bodies(name):
    return [{"to": f"{name}{i}@example.com", "template": "welcome", "variables": {"name": name}} for i in range(100)]


def restore(pipeline, copy):
    store = pipeline.nats.folder / "store"
    pipeline.nats.kill()
    shutil.rmtree(store)
    shutil.copytree(copy, store)
    pipeline.nats.start()


def test_a_store_restored_to_an_earlier_copy_is_repaired_and_nothing_is_sent_twice():
    """As after a power cut: the ends of REQUEST, RENDERED and STATUS are gone, the accept rows count as published."""
    pipeline = Pipeline(FAST, ack_wait_ms=3000, durable=True).start()
    try:
        kept = Load(pipeline, total=300)
        kept.run()
        wait_until(lambda: pipeline.history_count("status = 'sent'") == 300, 60, "what is in the copy")
        pipeline.nats.pause()
        copy = pipeline.folder / "copy"
        shutil.copytree(pipeline.nats.folder / "store", copy)
        pipeline.nats.pause(False)
        sent = [n for chunk in range(6) for n in kept.post(bodies("b"), f"sent-{chunk}")]
        wait_until(lambda: pipeline.history_count("status = 'sent'") == 900, 60, "what is sent and lost")
        for service in ("renderer", "dispatcher"):
            pipeline.services[service].kill()
        under_way = kept.post(bodies("c"), "under-way")
        wait_until(lambda: pipeline.history_count() == 1000, 60, "history knowing all of them: what is lost is in the streams alone")
        restore(pipeline, copy)
        for service in ("renderer", "dispatcher"):
            pipeline.services[service].start()
        ids = {*kept.ids, *sent, *under_way}
        time.sleep(3)
        report = audit(pipeline, "--limit", 0, status=1)
        lost = {notification for notification, _ in named(report)}
        assert lost == {*sent, *under_way}
        # A retry that was on its way to its time is missed there.
        assert {source for _, source in named(report)} - {"DEFERRED"} == {"REQUEST", "RENDERED", "STATUS"}

        repaired = audit(pipeline, "--limit", 0, "--repair", "--wait", 60)
        assert repaired["repaired"] == len(lost)
        unknown = {notification for notification, _ in named(repaired, "unknown")}
        assert counts({**repaired, "unknown": 0}) == {"accepted": 1000, "sent": 1000}
        assert {row[0] for row in pipeline.postgres.query("SELECT notification_id FROM dispatcher.ledger WHERE state = 'sent'")} == ids
        taken = {mid.strip("<>").split("@")[0] for mid in pipeline.mailbox.count_by_message_id()}
        assert taken == ids and doubles(pipeline) <= unknown
        # The archiver's position is beyond the restored end: it has to notice, and to read the log again.
        wait_until(lambda: pipeline.history_count("status = 'sent'") == 1000, 30, "history reading the restored log")
        assert {row[0] for row in pipeline.postgres.query("SELECT id FROM archiver.notifications WHERE status = 'sent'")} == ids
    finally:
        pipeline.stop()


def test_a_retry_whose_last_record_is_lost_is_repaired_when_the_server_has_forgotten_the_first(since):
    """The store kept the first attempt, so the server drops its repeat for the duplicate window, and nothing leads to the second."""
    pipeline = Pipeline(FAST, ack_wait_ms=3000, durable=True).start()
    try:
        pipeline.mailbox.answer("451 4.7.1 try later")
        notification = pipeline.send()
        assert len(pipeline.status(notification, wait="sent")["attempts"]) == 2
        admin = NatsClient(pipeline.nats.port)
        second = admin.stream_info("RENDERED_NORMAL")["state"]["last_seq"]
        deleted = json.loads(admin.request("$JS.API.STREAM.MSG.DELETE.RENDERED_NORMAL", json.dumps({"seq": second}).encode()))
        assert second == 2 and deleted["success"], deleted
        admin.close()
        pipeline.nats.stop()
        pipeline.nats.start()  # it remembers the ids that it finds in its store: the first attempt's alone
        time.sleep(3)
        report = audit(pipeline, "--since", since, "--repair", "--wait", 2, status=1)
        assert report["repaired"] == 1 and named(report) == {(notification, "RENDERED")}
        assert "run the audit again in two minutes" in report["findings"][0]["detail"]

        admin = NatsClient(pipeline.nats.port)
        for stream in ("REQUEST_NORMAL", "RENDERED_NORMAL", "DEFERRED", "STATUS"):
            config = {**admin.stream_info(stream)["config"], "duplicate_window": 100_000_000}
            assert "error" not in json.loads(admin.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode()))
        admin.close()
        time.sleep(3)
        report = audit(pipeline, "--since", since, "--repair", "--wait", 20)
        assert report["repaired"] == 1 and counts(report) == {"accepted": 1, "sent": 1}
        assert len(pipeline.mailbox.for_notification(notification)) == 1
    finally:
        pipeline.stop()


# ---- past the retention -----------------------------------------------------------------------------------------------


def test_past_its_retention_the_accept_log_says_what_is_audited(audited, since):
    ids = []
    for i in range(4):
        ids.append(audited.send(to=f"old{i}@example.com"))
        audited.status(ids[-1], wait="sent")
    settle()
    audited.postgres.query("UPDATE ingest.retention_watermark SET since = now()")
    try:
        # Retention has dropped what has ended; what is lost to history, or its ledger row, it keeps.
        audited.postgres.query("DELETE FROM ingest.accept_log WHERE notification_ids && %s", ids[:2])
        audited.postgres.query("DELETE FROM archiver.notifications WHERE id = %s", ids[2])
        audited.postgres.query("DELETE FROM dispatcher.ledger WHERE notification_id = %s", ids[3])
        done = audited.run_cli("audit", "--grace", 1, "--json", "--since", since)
        assert "are audited only where the accept log still holds them" in json.loads(done.stderr)["note"]
        report = json.loads(done.stdout)
        assert done.returncode == 1 and counts(report) == {"accepted": 2, "sent": 2, "lost": 2}
        assert named(report) == {(ids[2], "history"), (ids[3], "ledger")}
    finally:
        audited.postgres.query("UPDATE ingest.retention_watermark SET since = '-infinity'")


# ---- wrong uses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words,why", [
    (["--since", "yesterday"], "--since is 'yesterday'"),
    (["--since", "2"], "--since is '2'"),
    (["--since", "-2h"], "--since is '-2h'"),
    (["--since", "99999d"], "--since is '99999d'"),
    (["--until", "2h30"], "--until is '2h30'"),
    (["--since", "1h", "--until", "2h"], "--since is not before --until"),
    (["--grace", "soon"], "--grace is 'soon'"),
    (["--limit", "-1"], "--limit is '-1'"),
    (["--tenant", "No Such"], "--tenant 'No Such'"),
    (["--wait", "5"], "--wait is for --repair"),
    (["--sinse", "1h"], "unknown option '--sinse'"),
    (["word"], "usage: stentor audit"),
])
def test_a_wrong_use_is_named_and_ends_with_two(words, why):
    done = subprocess.run([BIN / "stentor", "audit", *words], env={}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and why in done.stderr and done.stdout == "", done.stderr


def test_without_its_servers_it_says_which_one_is_missing(audited):
    words = [BIN / "stentor", "audit"]
    done = subprocess.run(words, env={}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "STENTOR_DATABASE_URL is not set" in done.stderr
    environment = {"STENTOR_DATABASE_URL": audited.postgres.url("stentor_cli"), "STENTOR_NATS_URL": "nats://127.0.0.1:1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "cannot connect to NATS" in done.stderr


def test_no_other_service_may_look_across_tenants(audited):
    import psycopg2
    for function in ("ingest.audit_events('{1}')", "dispatcher.audit_ledger(now(), now(), NULL, now(), '', 0::smallint, 1)",
                 "digest_flusher.audit_due('', '', NULL, '', 1)", "stentor.audit_history(now(), now(), NULL, now(), '', '', 1)"):
        assert audited.postgres.query(f"SELECT count(*) FROM {function}", role="stentor_cli") is not None
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            audited.postgres.query(f"SELECT count(*) FROM {function}", role="stentor_renderer")
