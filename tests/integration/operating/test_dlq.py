# SPDX-License-Identifier: Apache-2.0
"""Dead letters: listed, shown, sent again past the limits, dropped."""
import json
import time
import uuid

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

LIMITED = {"STENTOR_RETRY_LADDER": "1"}
TRY_LATER = "451 4.3.0 try later"
EVERY_ATTEMPT = 2  # the first, and one of the ladder


@pytest.fixture(scope="module")
def limited():
    """A pipeline of its own: its dead letters are counted."""
    running = Pipeline(LIMITED, durable=True).start()
    yield running
    running.stop()


@pytest.fixture
def bus(limited):
    client = NatsClient(limited.nats.port)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def no_letters(limited):
    """Each test begins and ends with an empty stream."""
    yield
    limited.cli("dlq", "drop", "--all", "--yes", "--all-tenants")
    assert letters(limited, "--all-tenants") == []


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def letters(pipeline, *more):
    return lines(pipeline.cli("dlq", "list", "--json", *more))


def letters_of(pipeline, notification):
    return [letter for letter in letters(pipeline) if letter["notification_id"] == notification]


def exhaust(pipeline, count=1):
    """So many mails whose ladder ended at a server that answers 4xx; returns their ids."""
    pipeline.mailbox.answer(TRY_LATER, times=count * EVERY_ATTEMPT)
    ids = [pipeline.send(to=f"dlq{i}-{uuid.uuid4().hex[:6]}@example.com") for i in range(count)]
    wait_until(lambda: all_are(pipeline, ids, "failed"), 60, "every ladder's end")
    wait_until(lambda: set(ids) <= {letter["notification_id"] for letter in letters(pipeline)}, 20, "the dead letters")
    return ids


def all_are(pipeline, ids, status):
    return pipeline.postgres.query("SELECT count(*) FROM archiver.notifications WHERE id = ANY (%s) AND status = %s", ids, status)[0][0] == len(ids)


def poison(pipeline, bus, payload=b"\xff\xff\xff\xff", subject=f"ntf.request.normal.{TENANT}"):
    """The letter's sequence. A request is read by the renderer and by the history: either may be the first."""
    ack = bus.publish(subject, payload)

    def sequence():
        state = bus.stream_info("DEAD")["state"]
        for seq in range(max(state["first_seq"], 1), state["last_seq"] + 1):
            found = bus.message("DEAD", seq=seq)
            if found:
                letter = messages(pipeline).DeadLetter.FromString(found[1])
                if (letter.stream, letter.stream_sequence) == (ack["stream"], ack["seq"]):
                    return seq
        return None

    return wait_until(sequence, 20, "the dead letter")


def make_letter(pipeline, bus, event, subject, stage="dispatcher", tenant=TENANT, reason="retries_exhausted: 451", **fields):
    """A letter as a stage would write it. Returns its sequence."""
    proto = messages(pipeline)
    name = uuid.uuid4().hex[:22]
    letter = proto.DeadLetter(
        stage=stage, reason=reason, stream="RENDERED_NORMAL", stream_sequence=1, subject=subject, deliveries=1,
        payload=event if isinstance(event, bytes) else event.SerializeToString(), **fields)
    letter.meta.event_id, letter.meta.tenant, letter.meta.notification_id = name, tenant, "unknown"
    return bus.publish(f"ntf.dead.{stage}.{tenant}", letter.SerializeToString(), name)["seq"]


def rendered_of(pipeline, bus, notification):
    """The event that the notification's letter holds."""
    proto = messages(pipeline)
    sequence = letters_of(pipeline, notification)[0]["sequence"]
    letter = proto.DeadLetter.FromString(bus.message("DEAD", seq=sequence)[1])
    return proto.Rendered.FromString(letter.payload)


def last_sequence(bus, stream):
    return bus.stream_info(stream)["state"]["last_seq"]


def sent_once(pipeline, notification):
    wait_until(lambda: pipeline.status(notification)["status"] == "sent", 30, "the mail that was sent again")
    assert len(pipeline.mailbox.for_notification(notification)) == 1
    assert letters_of(pipeline, notification) == []
    return pipeline.status(notification)


# ---- a mail whose retries are used up -------------------------------------------------------------------------------


def test_a_mail_whose_retries_are_used_up_is_sent_again_from_its_letter(limited):
    notification = exhaust(limited)[0]
    letter = letters_of(limited, notification)[0]
    assert letter["stage"] == "dispatcher" and letter["tenant"] == TENANT and letter["readable"]
    assert letter["reason"].startswith("retries_exhausted: ") and "try later" in letter["reason"]
    shown = json.loads(limited.cli("dlq", "show", letter["sequence"], "--json"))
    assert shown["event_type"] == "stentor.v1.Rendered" and shown["event"]["attempt"] == EVERY_ATTEMPT
    assert shown["event"]["address"] == shown["event"]["content"] == "sealed"
    assert shown["event"]["meta"]["notification_id"] == notification and "T" in shown["event"]["accepted_at"]
    assert f"letter {letter['sequence']} on " in limited.cli("dlq", "show", notification)
    dry = lines(limited.cli("dlq", "resend", letter["sequence"], "--dry-run", "--json"))
    assert dry[0]["result"] == "would_resend" and dry[0]["attempt"] == EVERY_ATTEMPT + 1 and dry[1]["total"]["would_resend"] == 1
    assert letters_of(limited, notification), "a dry run changes nothing"

    done = lines(limited.cli("dlq", "resend", letter["sequence"], "--json"))
    assert done[0]["result"] == "resent" and done[0]["attempt"] == EVERY_ATTEMPT + 1
    assert done[0]["notification_id"] == notification and done[0]["event_id"] == dry[0]["event_id"]
    assert done[1]["total"] == {"resent": 1, "refused": 0, "failed": 0, "not_found": 0}
    row = sent_once(limited, notification)
    assert [attempt["number"] for attempt in row["attempts"]] == list(range(1, EVERY_ATTEMPT + 2))
    assert row["attempts"][-1]["outcome"] == "accepted" and not row["reason_code"]


def test_the_timeline_of_a_mail_that_was_sent_again_shows_its_end_and_its_second_life(limited):
    notification = exhaust(limited)[0]
    assert [step["status"] for step in limited.status(notification)["timeline"]][-1] == "failed"
    limited.cli("dlq", "resend", letters_of(limited, notification)[0]["sequence"])
    row = sent_once(limited, notification)
    assert [step["status"] for step in row["timeline"]] == ["queued", "rendered", "failed", "sent"]
    times = [step["at"] for step in row["timeline"]]
    assert times == sorted(times)
    shown = limited.cli("status", notification)
    assert shown.startswith(f"{notification}  sent\n") and f"attempt {EVERY_ATTEMPT + 1} via smtp: accepted" in shown


def test_a_mail_that_fails_again_gets_a_fresh_ladder_and_another_letter(limited):
    notification = exhaust(limited)[0]
    first = letters_of(limited, notification)[0]["sequence"]
    limited.mailbox.answer(TRY_LATER, times=EVERY_ATTEMPT)
    limited.cli("dlq", "resend", first)
    second = wait_until(lambda: letters_of(limited, notification), 30, "the second letter")
    assert len(second) == 1 and second[0]["sequence"] != first
    shown = json.loads(limited.cli("dlq", "show", second[0]["sequence"], "--json"))
    assert shown["event"]["attempt"] == 2 * EVERY_ATTEMPT and shown["event"]["resends"] == 1
    assert limited.status(notification)["status"] == "failed"
    limited.cli("dlq", "resend", second[0]["sequence"])
    assert len(sent_once(limited, notification)["attempts"]) == 2 * EVERY_ATTEMPT + 1


def test_a_letter_that_is_sent_again_twice_makes_one_mail(limited, bus):
    """As after a kill between JetStream's ack and the letter's end, within the duplicate window and after it."""
    notification = exhaust(limited)[0]
    sequence = letters_of(limited, notification)[0]["sequence"]
    subject, stored = bus.message("DEAD", seq=sequence)
    before = last_sequence(bus, "RENDERED_NORMAL")
    first = lines(limited.cli("dlq", "resend", sequence, "--json"))[0]
    sent_once(limited, notification)
    assert last_sequence(bus, "RENDERED_NORMAL") == before + 1

    again = bus.publish(subject, stored, "the-letter-was-not-deleted")["seq"]
    second = lines(limited.cli("dlq", "resend", again, "--json"))[0]
    assert (second["event_id"], second["attempt"]) == (first["event_id"], first["attempt"])
    assert last_sequence(bus, "RENDERED_NORMAL") == before + 1, "the same id: JetStream drops it"

    event = bus.message("RENDERED_NORMAL", seq=before + 1)[1]
    refused = limited.services["dispatcher"].metric("stentor_dispatcher_claims_refused_total")
    bus.publish(f"ntf.rendered.normal.{TENANT}", event, "after-the-duplicate-window")
    wait_until(lambda: limited.services["dispatcher"].metric("stentor_dispatcher_claims_refused_total") > refused, 20, "the ledger's refusal")
    sent_once(limited, notification)


def test_all_letters_are_sent_again_in_batches(limited):
    many = 70  # more than two batches of the scan
    ids = exhaust(limited, many)
    assert len(letters(limited, "--stage", "dispatcher")) == many
    assert letters(limited, "--stage", "renderer") == []
    assert len(letters(limited, "--limit", "5")) == 5
    assert [letter["sequence"] for letter in letters(limited, "--limit", "5")] == [letter["sequence"] for letter in letters(limited)][-5:]
    done = lines(limited.cli("dlq", "resend", "--all", "--stage", "dispatcher", "--since", "1h", "--json"))
    assert done[-1]["total"] == {"resent": many, "refused": 0, "failed": 0, "not_found": 0}
    assert {line["notification_id"] for line in done[:-1]} == set(ids)
    wait_until(lambda: all_are(limited, ids, "sent"), 60, "the mails that were sent again")
    assert [len(limited.mailbox.for_notification(notification)) for notification in ids] == [1] * many
    assert letters(limited) == []
    assert limited.cli("dlq", "resend", "--all") == "0 resent, 0 refused, 0 failed\n"


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_a_mail_with_an_unknown_outcome_is_sent_again_only_with_the_option(limited, bus):
    notification = exhaust(limited)[0]
    event = rendered_of(limited, bus, notification)
    limited.cli("dlq", "drop", letters_of(limited, notification)[0]["sequence"])
    sequence = make_letter(limited, bus, event, f"ntf.rendered.normal.{TENANT}", reason="unknown_outcome: a process ended")
    done = limited.run_cli("dlq", "resend", sequence)
    assert done.returncode == 1 and "--may-double" in done.stdout and "1 refused" in done.stdout
    assert limited.mailbox.for_notification(notification) == []
    assert limited.run_cli("dlq", "resend", sequence, "--may-double").returncode == 0
    sent_once(limited, notification)


def test_a_dropped_letter_ends_its_notification(limited, bus):
    event = rendered_of(limited, bus, exhaust(limited)[0])
    ahead = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    waiting = limited.send(scheduled_for=ahead)  # has no end yet, as a mail that was parked
    limited.status(waiting, wait="scheduled")
    event.meta.notification_id = waiting
    event.attempt = 1
    sequence = make_letter(limited, bus, event, f"ntf.rendered.normal.{TENANT}", reason="unknown_outcome: a process ended")
    before = bus.stream_info("STATUS")["state"]["messages"]
    assert "would_drop" in limited.cli("dlq", "drop", sequence, "--dry-run", "--json")
    assert bus.stream_info("STATUS")["state"]["messages"] == before
    limited.cli("dlq", "drop", sequence)
    assert limited.status(waiting, wait="failed")["reason_code"] == "dropped"


def test_an_expired_mail_is_sent_again_only_without_its_expiry(limited, bus):
    notification = exhaust(limited)[0]
    event = rendered_of(limited, bus, notification)
    limited.cli("dlq", "drop", letters_of(limited, notification)[0]["sequence"])
    event.expires_at_us = int(time.time() * 1e6) - 1
    sequence = make_letter(limited, bus, event, f"ntf.rendered.normal.{TENANT}")
    done = limited.run_cli("dlq", "resend", sequence, "--json")
    refusal = lines(done.stdout)[0]
    assert done.returncode == 1 and refusal["result"] == "refused" and "--ignore-expiry" in refusal["reason"]
    limited.cli("dlq", "resend", sequence, "--ignore-expiry")
    sent_once(limited, notification)


@pytest.mark.parametrize("subject,stage,reason", [
    (f"ntf.status.{TENANT}.email.sent", "archiver", "stentor rebuild history"),
    (f"ntf.request.normal.{TENANT}", "archiver", "stentor rebuild history"),
    (f"ntf.status.{TENANT}.email.sent", "ingest", "stentor rebuild history"),
    (f"cfg.template.{TENANT}.welcome", "renderer", "no stage reads"),
    (f"ntf.dead.renderer.{TENANT}", "renderer", "no stage reads"),
])
def test_what_no_stage_should_read_again_is_refused(limited, bus, subject, stage, reason):
    before = {stream: last_sequence(bus, stream) for stream in ("STATUS", "CONFIG", "REQUEST_NORMAL", "DEAD")}
    sequence = make_letter(limited, bus, b"\xff", subject, stage=stage)
    done = limited.run_cli("dlq", "resend", "--all")
    assert done.returncode == 1 and reason in done.stdout and "0 resent, 1 refused" in done.stdout
    assert limited.run_cli("dlq", "show", sequence).returncode == 0
    after = {stream: last_sequence(bus, stream) for stream in before}
    assert after == {**before, "DEAD": before["DEAD"] + 1}


@pytest.mark.parametrize("words,message", [
    (["resend"], "--all"),
    (["resend", "1", "--all"], "--all"),
    (["resend", "one"], "'one' is not a letter's sequence"),
    (["resend", "1", "--since", "2h"], "go with --all"),
    (["drop", "--all"], "--yes"),
    (["drop", "0"], "'0' is not a letter's sequence"),
    (["list", "--since", "yesterday"], "--since is 'yesterday'"),
    (["list", "--stage", "no.stage"], "--stage 'no.stage'"),
    (["list", "--limit", "0"], "--limit"),
    (["show"], "usage"),
])
def test_wrong_use_is_named(limited, words, message):
    done = limited.run_cli("dlq", *words)
    assert done.returncode == 2 and message in done.stderr, done


def test_a_misspelt_stage_gets_the_list_of_stages(limited):
    for words in (["list", "--stage", "render"], ["resend", "--all", "--stage", "render"]):
        done = limited.run_cli("dlq", *words)
        assert done.returncode == 0 and "no dead letter of stage 'render'" in done.stderr and "renderer, " in done.stderr
    assert limited.run_cli("dlq", "list").stderr == ""


def test_what_is_not_there_has_its_own_exit_status(limited):
    for words in (["show", "999999"], ["show", "A" * 22], ["resend", "999999"], ["drop", "999999"]):
        assert limited.run_cli("dlq", *words).returncode == 3, words
    assert limited.cli("dlq", "list").splitlines()[-1] == "0 dead letters"


# ---- poison, and other stages ---------------------------------------------------------------------------------------


def test_poison_is_listed_shown_as_hex_and_dropped(limited, bus):
    sequence = poison(limited, bus)
    row = [letter for letter in letters(limited) if letter["sequence"] == sequence][0]
    assert row["stage"] in ("renderer", "archiver") and row["notification_id"] == "" and "NotificationRequest" in row["reason"]
    shown = json.loads(limited.cli("dlq", "show", sequence, "--json"))
    assert shown["payload_hex"] == "ffffffff" and shown["payload_bytes"] == 4 and "event" not in shown
    assert shown["stream"] == "REQUEST_NORMAL" and shown["deliveries"] == 1
    reported = limited.cli("dlq", "show", shown["event_id"])
    assert "ffffffff" in reported and "4 bytes that are not an event of its subject" in reported and f"letter {sequence} " in reported
    assert "would_drop" in limited.cli("dlq", "drop", sequence, "--dry-run")
    assert f"{sequence}  dropped" in limited.cli("dlq", "drop", sequence)
    assert limited.run_cli("dlq", "show", sequence).returncode == 3


def test_a_long_letter_is_shown_by_its_first_kibibyte(limited, bus):
    sequence = poison(limited, bus, b"\xff" * 800_000)
    shown = json.loads(limited.cli("dlq", "show", sequence, "--json"))
    assert shown["payload_bytes"] == 800_000 and shown["payload_hex"] == "ff" * 1024 + "..."
    assert len(limited.cli("dlq", "show", sequence)) < 4000


def test_a_letter_that_is_none_is_listed_and_dropped(limited, bus):
    sequence = bus.publish(f"ntf.dead.renderer.{TENANT}", b"\xff\xff\xff\xff")["seq"]
    row = letters(limited)[0]
    assert row["sequence"] == sequence and row["readable"] is False and "DeadLetter" in row["reason"]
    assert "not a dead letter" in limited.cli("dlq", "list")
    assert limited.run_cli("dlq", "resend", sequence).returncode == 1
    assert limited.cli("dlq", "show", sequence)
    limited.cli("dlq", "drop", sequence)


def test_the_attempts_of_a_letter_are_shown_and_carried_over(limited, bus):
    notification = exhaust(limited)[0]
    event = rendered_of(limited, bus, notification)
    limited.cli("dlq", "drop", letters_of(limited, notification)[0]["sequence"])
    tried = [messages(limited).Attempt(number=n, vendor="smtp", outcome=2, code="451", enhanced_code="4.3.0",
                                       text="busy\x1b[31m", finished_at_us=1763648968320000 + n) for n in range(1, 26)]
    del event.attempts[:]
    sequence = make_letter(limited, bus, event, f"ntf.rendered.normal.{TENANT}", attempts=tried)
    assert letters(limited)[0]["attempts"] == 25
    shown = json.loads(limited.cli("dlq", "show", sequence, "--json"))["attempts"]
    assert [attempt["number"] for attempt in shown] == list(range(1, 26))
    assert shown[0]["outcome"] == "rejected_retryable" and shown[0]["finished_at"].startswith("2025-11-20T")
    reported = limited.cli("dlq", "show", sequence)
    assert "via smtp: rejected_retryable, 451 4.3.0 busy?[31m" in reported and "\x1b" not in reported
    before = last_sequence(bus, "RENDERED_NORMAL")
    assert lines(limited.cli("dlq", "resend", sequence, "--json"))[0]["attempt"] == 26
    resent = messages(limited).Rendered.FromString(bus.message("RENDERED_NORMAL", seq=before + 1)[1])
    assert [attempt.number for attempt in resent.attempts] == list(range(6, 26))
    assert (resent.attempt, resent.rung, resent.resends) == (26, 0, 1)
    sent_once(limited, notification)


def test_a_letter_of_another_stage_is_read_again_as_it_was(limited, bus):
    before = last_sequence(bus, "DEFERRED")
    subject = f"ntf.deferred.retry.{TENANT}"
    sequence = poison(limited, bus, subject=subject)
    done = lines(limited.cli("dlq", "resend", sequence, "--json"))
    assert done[0]["result"] == "resent" and "attempt" not in done[0]
    assert bus.message("DEFERRED", seq=before + 2) == (subject, b"\xff\xff\xff\xff")
    again = wait_until(lambda: letters(limited, "--stage", "digest-flusher"), 20, "the same verdict")
    assert again[0]["sequence"] > sequence and "Deferred" in again[0]["reason"]


def test_a_command_keeps_its_id_so_that_it_stays_one_notification(limited, bus):
    name = f"late-{uuid.uuid4().hex[:8]}"
    command = messages(limited).NotifyCommand(to="late@example.com", template=name).SerializeToString()
    bus.publish(f"evt.{TENANT}.notify", command, name)
    letter = wait_until(lambda: letters(limited, "--stage", "ingest"), 20, "the letter")[0]
    shown = json.loads(limited.cli("dlq", "show", letter["sequence"], "--json"))
    assert shown["causation_id"] == name and shown["event"]["template"] == name and name in shown["reason"]
    limited.cli("dlq", "resend", letter["sequence"])
    again = wait_until(lambda: letters(limited, "--stage", "ingest"), 30, "the same verdict")
    assert again[0]["sequence"] > letter["sequence"]
    assert json.loads(limited.cli("dlq", "show", again[0]["sequence"], "--json"))["causation_id"] == name
    limited.cli("dlq", "drop", again[0]["sequence"])


def test_a_tenant_sees_only_its_own_letters(limited, bus):
    sequence = poison(limited, bus, subject="ntf.deferred.retry.other-tenant")
    assert letters(limited) == []
    for words in (["show"], ["resend"], ["drop"]):
        assert limited.run_cli("dlq", *words, sequence).returncode == 3
    assert [letter["tenant"] for letter in letters(limited, "--all-tenants")] == ["other-tenant"]
    assert limited.run_cli("dlq", "list", tenant="").returncode == 2
    assert limited.run_cli("dlq", "list", "--all-tenants", tenant="").returncode == 0
    assert limited.cli("dlq", "drop", "--all", "--yes") == "0 dropped, 0 refused, 0 failed\n"
    assert limited.cli("dlq", "drop", "--all", "--yes", tenant="other-tenant").endswith("1 dropped, 0 refused, 0 failed\n")
