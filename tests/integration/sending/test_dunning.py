# SPDX-License-Identifier: Apache-2.0
"""Reminders and dunning steps (C67, C68, C74, findings 8 and 9 of the five documents): steps that share a template, dates that move."""
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.integration.sending.test_triggers import FAST, call, guest, handled, letters, last_seq, mails_to, new_type, publish, put_trigger

NOW = datetime.now


def event(event_type, event_id, at, data):
    return {"specversion": "1.0", "id": event_id, "type": event_type, "time": at.isoformat(), "data": data}


def due_within(pipeline, event_type, span):
    """How much work of the type's events the clock holds that is due by then. Their ids begin with the type: other files' work waits there too."""
    work = "SELECT count(*) FROM digest_flusher.due_work WHERE starts_with(source_event_id, %s) AND due_at < now() + %s::interval"
    return pipeline.postgres.query(work, event_type, span)[0][0]


def ends(pipeline, event_type, address, mails, timeout=30):
    """How many mails to the address, at least that many, when the clock holds nothing more of the type's events that is due soon."""
    wait_until(lambda: len(mails_to(pipeline, address)) >= mails, timeout, f"{mails} mails to {address}")
    wait_until(lambda: due_within(pipeline, event_type, "1 hour") == 0, timeout, "the clock's last row")
    return len(mails_to(pipeline, address))


def waiting(pipeline, key):
    return pipeline.postgres.query("SELECT notification_id FROM digest_flusher.due_work WHERE cancel_key = %s AND status IS NULL", key)


def ended(pipeline, event_type):
    """How many ended because a newer event moved their date; the reason names the trigger or the type, and the event."""
    like = f"%{event_type.rsplit('.', 1)[-1]}%"
    return pipeline.history_count(f"status = 'suppressed' AND reason_code = 'rescheduled' AND reason LIKE '{like}'")


# ---- dunning --------------------------------------------------------------------------------------------------------------


def test_three_dunning_steps_of_one_event_and_one_template_are_three_mails(pipeline, nats):
    """C68 `dunning_step`, finding 8 (S17): three offsets, one template; at d9095a0 one mail and no warning."""
    event_type = new_type("invoice")
    for step in range(3):
        put_trigger(pipeline, event_type, name=f"dun{step}", offset_s=1 + step, identity="trigger")
    data = guest()
    for _ in range(2):  # a repeat makes nothing new
        handled(pipeline, nats, publish(nats, event_type, event(event_type, event_type, NOW(timezone.utc), data)))
    assert ends(pipeline, event_type, data["guest"]["email"], 3) == 3


def test_a_second_trigger_that_would_send_nothing_is_refused_with_the_reason(pipeline):
    """Finding 8: C's trigger map is unique by event, template and channel; ours took them and lost the steps."""
    event_type = new_type("invoice")
    first = put_trigger(pipeline, event_type, name="dun0", offset_s=10)
    second = {"event_type": event_type, "template": "welcome", "resolver": "address:guest.email", "offset_s": 20}
    status, problem = call(pipeline, "PUT", f"/v1/triggers/second-{uuid.uuid4().hex}", second)
    assert status == 409 and problem["type"].endswith("trigger-collision") and problem["field"] == "identity"
    assert first in problem["detail"] and '"identity": "trigger"' in problem["detail"]
    words = ["trigger", "put", f"second-{uuid.uuid4().hex}", "--event", event_type, "--template", "welcome", "--resolver", "address:guest.email"]
    done = pipeline.run_cli(*words, "--offset", "20")
    assert done.returncode != 0 and first in done.stderr
    pipeline.cli(*words, "--offset", "20", "--identity", "trigger")
    put_trigger(pipeline, event_type, name="dun0", offset_s=30)  # itself is put again
    put_trigger(pipeline, event_type, name="other", resolver="address:host.email")
    put_trigger(pipeline, event_type, name="off", enabled=False)


# ---- a date that moves ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["in order", "newest first"])
def test_a_moved_date_leaves_one_reminder_at_the_new_date(pipeline, nats, order):
    """C74 "Changed date re-schedules", finding 9 (S3): three confirmations of one stay; at d9095a0 one reminder each."""
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id")
    made = NOW(timezone.utc) - timedelta(minutes=5)
    data = guest(stay={"id": "s1"})
    due = NOW(timezone.utc) + timedelta(seconds=5)
    days = [due + timedelta(days=1), due, due + timedelta(days=2)]
    # The last two are of the same moment: their ids decide.
    versions = [("a", made, days[0]), ("c", made + timedelta(minutes=1), days[1]), ("b", made + timedelta(minutes=1), days[2])]
    neighbour = guest(stay={"id": "s2", "start": days[0].isoformat()})
    handled(pipeline, nats, publish(nats, event_type, event(event_type, f"{event_type}-n", made, neighbour)))
    for repeat in range(2):
        for n, at, start in versions if order == "in order" else [versions[1], versions[2], versions[0]]:
            body = event(event_type, f"{event_type}-{n}", at, {**data, "stay": {"id": "s1", "start": start.isoformat()}})
            handled(pipeline, nats, publish(nats, event_type, body))
    assert len(wait_until(lambda: mails_to(pipeline, data["guest"]["email"]), 30, "the reminder")) == 1
    assert NOW(timezone.utc) >= due
    wait_until(lambda: ended(pipeline, event_type) == 2, 20, "two superseded ones")
    assert waiting(pipeline, f"{trigger}/s1") == [] and len(waiting(pipeline, f"{trigger}/s2")) == 1
    assert (due_within(pipeline, event_type, "1 hour"), due_within(pipeline, event_type, "2 days")) == (0, 1)  # the neighbour's


@pytest.mark.parametrize("moved,mails", [(timedelta(days=-3), 0), (timedelta(minutes=-5), 1)], ids=["long past", "just past"])
def test_a_date_that_moved_into_the_past_leaves_no_reminder_of_the_old_one(pipeline, nats, moved, mails):
    """C74: more than a day past sends nothing, less goes at once; either way the old date's is wrong."""
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id")
    made, data = NOW(timezone.utc) - timedelta(minutes=5), guest()
    for n, days in enumerate([timedelta(days=9), moved]):
        stay = {"stay": {"id": "s1", "start": (NOW(timezone.utc) + days).isoformat()}}
        handled(pipeline, nats, publish(nats, event_type, event(event_type, f"{event_type}-{n}", made + timedelta(seconds=n), {**data, **stay})))
    wait_until(lambda: ended(pipeline, event_type) == 1, 20, "the superseded one")
    assert ends(pipeline, event_type, data["guest"]["email"], mails) == mails and waiting(pipeline, f"{trigger}/s1") == []


def test_a_repeat_of_an_old_event_without_a_time_does_not_end_the_newer_one(pipeline, nats):
    """Without a time of its own a repeat would be the newest; it makes nothing, so it supersedes nothing."""
    event_type = new_type("stay")
    trigger = put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id")
    data = guest(stay={"id": "s1", "start": (NOW(timezone.utc) + timedelta(days=9)).isoformat()})
    for n, header in [("a", 1), ("b", 1), ("a", 2)]:  # for JetStream no duplicate: another Nats-Msg-Id would be needed for one
        headers = {"ce-specversion": "1.0", "ce-id": f"{event_type}-{n}", "ce-type": "x", "round": str(header)}
        handled(pipeline, nats, publish(nats, event_type, data, headers=headers))
    wait_until(lambda: ended(pipeline, event_type) == 1, 20, "the first one's end")
    assert len(waiting(pipeline, f"{trigger}/s1")) == 1


def test_a_trigger_may_keep_the_earlier_ones_and_an_event_without_a_subject_is_a_letter(pipeline, nats):
    event_type = new_type("visit")
    trigger = put_trigger(pipeline, event_type, anchor="at", subject_path="stay.id", reschedule=False, obsoleted_by=["x.y"])
    for n in range(2):
        data = guest(stay={"id": "s1"}, at=(NOW(timezone.utc) + timedelta(days=9 + n)).isoformat())
        handled(pipeline, nats, publish(nats, event_type, data, event_id=f"{event_type}-{n}"))
    wait_until(lambda: len(waiting(pipeline, f"{trigger}/s1")) == 2, 20, "both")
    put_trigger(pipeline, event_type, anchor="at", subject_path="stay.id")
    since = last_seq(nats, "DEAD")
    handled(pipeline, nats, publish(nats, event_type, guest(at=data["at"])))
    assert "subject_path" in wait_until(lambda: letters(pipeline, nats, since), 20, "the letter")[0].reason


def test_a_trigger_that_does_not_wait_sends_each_event_of_a_subject(pipeline, nats):
    """Only a date or an offset re-schedules: three comments on one ticket are three mails."""
    event_type = new_type("comment")
    put_trigger(pipeline, event_type, subject_path="ticket", obsoleted_by=["ticket.deleted"])
    data = guest(ticket="t1")
    for n in range(3):
        handled(pipeline, nats, publish(nats, event_type, data, event_id=f"{event_type}-{n}"))
    assert ends(pipeline, event_type, data["guest"]["email"], 3) == 3


# ---- crashes --------------------------------------------------------------------------------------------------------------


@pytest.mark.long  # 25 s: what a killed ingest had in hand comes again after the ack wait
def test_kills_leave_one_reminder_for_each_subject_at_its_last_date():
    """The cancellation stands in the accept row of the newer notification: killed between any two lines both come again under
    the same ids, or neither was. Never two mails about a stay, never none."""
    pipeline = Pipeline(FAST, ack_wait_ms=2000).start()
    try:
        nats, event_type, stays = NatsClient(pipeline.nats.port), new_type("stay"), 60
        put_trigger(pipeline, event_type, anchor="stay.start", subject_path="stay.id")
        made, due = NOW(timezone.utc) - timedelta(minutes=5), NOW(timezone.utc) + timedelta(seconds=20)
        old, new = f"{uuid.uuid4().hex}@example.com", f"{uuid.uuid4().hex}@example.com"
        for version, address, start in [(0, old, due + timedelta(seconds=2)), (1, new, due)]:
            for n in range(stays):
                data = {"guest": {"email": address, "name": f"stay {n}"}, "name": f"stay {n}", "stay": {"id": f"s{n}", "start": start.isoformat()}}
                at = made + timedelta(seconds=version)
                ack = publish(nats, event_type, event(event_type, f"{event_type}-{n}-{version}", at, data))
                if n % 20 == 10:
                    for name in ("ingest", "digest-flusher"):
                        pipeline.services[name].kill()
                        pipeline.services[name].start()
        handled(pipeline, nats, ack)
        assert NOW(timezone.utc) < due, "too slow to tell anything"
        wait_until(lambda: ended(pipeline, event_type) == stays, 40, "the superseded ones")
        assert ends(pipeline, event_type, new, stays, 60) == stays and mails_to(pipeline, old) == []
        assert len({str(mail["Subject"]) for mail in mails_to(pipeline, new)}) == stays
        nats.close()
    finally:
        pipeline.stop()
