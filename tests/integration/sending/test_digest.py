# SPDX-License-Identifier: Apache-2.0
"""Digests and cancellations: what comes out of digest-flusher for what the gate puts on DEFERRED, through the real
pipeline, with preferences that change in the middle and processes that die."""
import itertools
import json
import random
import time
import uuid

import pytest

from tests.harness.digests import Deferrals, now_us
from tests.harness.pipeline import Pipeline
from tests.harness.processes import HOME, wait_until
from tests.integration.sending.test_triggers import call

FAST = {"STENTOR_DISPATCHER_LEASE_MS": "4000", "STENTOR_RETRY_LADDER": "1"}
PLATFORM = HOME / "deploy" / "local" / "platform"
SECOND_US = 1_000_000
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def gathered():
    running = Pipeline(FAST, ack_wait_ms=3000).start()
    running.cli("template", "put", "digest", "--from", PLATFORM / "digest.json", tenant="platform")
    running.services["digest-flusher-2"] = running.service("digest-flusher", instance="-2").start()
    yield running
    running.stop()


@pytest.fixture
def bus(gathered):
    deferrals = Deferrals(gathered)
    deferrals.start = deferrals.last("STATUS")
    yield deferrals
    deferrals.close()


def person():
    return f"rcp_01KAGTQ5M0{next(NUMBERS):016d}"


def in_s(seconds):
    return now_us() + int(seconds * SECOND_US)


def query(pipeline, sql, *params):
    return pipeline.postgres.query(sql, *params)


def window_state(pipeline, window):
    return query(pipeline, "SELECT state FROM digest_flusher.digest_windows WHERE window_id = %s", window)[0][0]


def wait_gathered(pipeline, window, count):
    sql = "SELECT count(*) FROM digest_flusher.digest_items WHERE window_id = %s"
    wait_until(lambda: query(pipeline, sql, window)[0][0] == count, 20, f"{count} items in the window")


def wait_words(bus, ids, word):
    """Until each of them has been reported so; returns all reports."""
    def shown():
        seen = bus.statuses(bus.start)
        return seen if all(any(status == word for status, _ in seen.get(one, [])) for one in ids) else None
    return wait_until(shown, 30, f"{word} of {len(ids)}")


def end_of(seen, notification):
    return [(status, code) for status, code in seen[notification] if status != "scheduled"]


def ids_of(requests):
    return [request.meta.notification_id for request in requests]


# ---- windows ----


def test_several_items_go_out_as_one_digest(gathered, bus):
    who = person()
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    items = bus.accept([who] * 3)
    start = bus.last("REQUEST_NORMAL")
    flush_us = in_s(3)
    window = [bus.gather(item, flush_us) for item in items][0]
    wait_gathered(gathered, window, 3)
    report = json.loads(gathered.cli("audit", "--since", since, "--grace", 0, "--json"))
    assert (report["accepted"], report["in_flight"], report["lost"]) == (3, 3, 0), report
    seen = wait_words(bus, ids_of(items), "superseded")
    assert time.time() * 1e6 >= flush_us
    digest, = bus.digests(start)
    assert (digest.digest_window_id, digest.digest_total) == (window, 3)
    assert [item.notification_id for item in digest.digest_items] == ids_of(items)
    assert [item.variables for item in digest.digest_items] == [item.variables for item in items]
    assert (digest.template, digest.template_version, digest.recipient_id) == ("digest", "1.0.0", who)
    assert digest.address_hash == items[2].address_hash and digest.address != items[2].address
    assert digest.accepted_at_us == flush_us
    for item in ids_of(items):
        assert end_of(seen, item) == [("superseded", "digest")]
    shown = [event for event in bus.since("STATUS", bus.start, bus.proto.NotificationStatus) if event.status == bus.proto.STATUS_SUPERSEDED]
    assert {event.digest_window_id for event in shown} == {window}
    notification = digest.meta.notification_id
    assert gathered.status(notification, wait="sent")["status"] == "sent"
    mail, = gathered.mailbox.for_notification(notification)
    assert mail["Subject"].endswith("notifications for you") and mail["To"] == f"{who}@example.com".lower()
    assert [gathered.mailbox.for_notification(one) for one in ids_of(items)] == [[], [], []]
    for item in ids_of(items):  # B08: the digest is found from an item, and its items from the digest
        row = gathered.status(item, wait="superseded")
        assert (row["status"], row["digest_window_id"], row["taken_up_by"], row["takes_up"]) == ("superseded", window, notification, None)
    row = gathered.status(notification)
    assert (row["digest_window_id"], row["taken_up_by"], row["takes_up"]) == (window, None, sorted(ids_of(items)))
    assert sorted(row["id"] for row in json.loads(gathered.cli("find", "--digest", window, "--json"))) == sorted([notification, *ids_of(items)])
    time.sleep(1.5)
    report = json.loads(gathered.cli("audit", "--since", since, "--grace", 1, "--json"))
    assert {name: report[name] for name in ("accepted", "sent", "suppressed", "in_flight", "lost", "doubled")} == {
        "accepted": 4, "sent": 1, "suppressed": 3, "in_flight": 0, "lost": 0, "doubled": 0}, report


def test_a_single_item_goes_out_as_itself_and_a_late_one_too(gathered, bus):
    who = person()
    first, late = bus.accept([who] * 2)
    start = bus.last("REQUEST_NORMAL")
    flush_us = in_s(1)
    window = bus.gather(first, flush_us)
    assert gathered.status(first.meta.notification_id, wait="sent")["status"] == "sent"
    assert bus.gather(late, flush_us) == window
    assert gathered.status(late.meta.notification_id, wait="sent")["status"] == "sent"
    assert bus.digests(start) == []
    # Delivered once more after its window was flushed: nothing comes of it.
    last = bus.last("REQUEST_NORMAL")
    bus.gather(first, flush_us, again="again")
    wait_until(lambda: bus.nats.stream_info("DEFERRED")["state"]["last_seq"] ==
               json.loads(bus.nats.request("$JS.API.CONSUMER.INFO.DEFERRED.digest-flusher"))["ack_floor"]["stream_seq"], 20)
    time.sleep(1)
    assert bus.last("REQUEST_NORMAL") == last
    for one in (first, late):
        assert len(gathered.mailbox.for_notification(one.meta.notification_id)) == 1


@pytest.mark.parametrize("reason", ["quiet", "limit"])
def test_what_quiet_hours_or_a_limit_put_off_goes_out_when_it_is_due(gathered, bus, reason):
    request, = bus.accept([person()])
    due_us = in_s(2)
    bus.wait(request, reason, due_us)
    assert gathered.status(request.meta.notification_id, wait="sent")["status"] == "sent"
    assert time.time() * 1e6 >= due_us
    assert len(gathered.mailbox.for_notification(request.meta.notification_id)) == 1


# ---- preferences ----


def open_window(gathered, bus, who, count=2):
    items = bus.accept([who] * count)
    flush_us = in_s(3600)
    window = [bus.gather(item, flush_us) for item in items][0]
    wait_gathered(gathered, window, count)
    return items, window


def test_immediate_flushes_the_open_window_now(gathered, bus):
    who = person()
    bus.prefer(who, "daily")
    items, window = open_window(gathered, bus, who)
    start = bus.last("REQUEST_NORMAL")
    bus.prefer(who, "weekly")  # another digest: the open window keeps its time
    time.sleep(1.5)
    assert window_state(gathered, window) == "open"
    bus.prefer(who, "immediate", category="")  # less specific: the weekly one still decides
    time.sleep(1.5)
    assert window_state(gathered, window) == "open"
    bus.prefer(who, cleared=True)
    wait_words(bus, ids_of(items), "superseded")
    digest, = bus.digests(start)
    assert digest.digest_total == 2
    assert abs(digest.accepted_at_us - now_us()) < 30 * SECOND_US, "the id's time is not in the future"
    assert gathered.status(digest.meta.notification_id, wait="sent")["status"] == "sent"


class Reader:
    """A recipient who is stored, and reads social news as a digest, through the API alone."""

    def __init__(self, pipeline, bus, **preference):
        self.pipeline, self.bus = pipeline, bus
        self.address = f"{uuid.uuid4().hex}@example.com"
        status, answer = call(pipeline, "POST", "/v1/recipients", {"name": "Ada", "addresses": [{"channel": "email", "address": self.address}]})
        assert status == 201, answer
        self.id = answer["id"]
        self.prefer(**preference)

    def prefer(self, **preference):
        wanted = [{"category": "social", "channel": "email", **preference}]
        status, answer = call(self.pipeline, "PUT", f"/v1/recipients/{self.id}/preferences", wanted)
        assert status == 200, answer

    def news(self, title, text):
        """The gate's event on DEFERRED of a request that was put into a window."""
        start = self.bus.last("DEFERRED")
        status, answer = call(self.pipeline, "POST", "/v1/notifications", {
            "template": "welcome", "category": "social", "recipient_id": self.id, "variables": {"name": "Ada", "title": title, "text": text}})
        assert (status, answer["status"]) == (202, "scheduled"), answer
        mine = lambda: [e for e in self.bus.since("DEFERRED", start, self.bus.proto.Deferred) if e.meta.notification_id == answer["id"]]  # noqa: E731
        event, = wait_until(mine, 20, "the gate's event")
        assert event.reason == "digest" and event.request.recipient_id == self.id
        assert self.pipeline.status(answer["id"], wait="scheduled")["reason_code"] == "digest"
        return event

    def mails(self):
        return [mail for mail in self.pipeline.mailbox.mails(self.address) if self.address in mail["To"]]


def in_twelve_hours():
    return {"frequency": "daily", "at": time.strftime("%H:%M", time.gmtime(time.time() + 12 * 3600))}


def test_what_the_gate_gathered_is_one_mail_with_every_item(gathered, bus):
    reader = Reader(gathered, bus, **in_twelve_hours())
    words = [("First", "a reply"), ("Second", "a <like>"), ("Third", "an invitation")]
    events = [reader.news(*one) for one in words]
    window, = {event.digest.window_id for event in events}
    first = events[0].digest
    assert (first.template, first.template_version, first.recipient_id) == ("digest", "1.0.0", reader.id)
    assert 11.9 * 3600 < first.flush_at_us / 1e6 - time.time() <= 12 * 3600
    wait_gathered(gathered, window, 3)
    assert reader.mails() == []
    reader.prefer(frequency="immediate")
    ids = [event.meta.notification_id for event in events]
    assert {end_of(wait_words(bus, ids, "superseded"), one)[0] for one in ids} == {("superseded", "digest")}
    for one in ids:
        row = gathered.status(one, wait="superseded")
        assert (row["status"], gathered.mailbox.for_notification(one)) == ("superseded", [])
    mail, = wait_until(reader.mails, 30, "the digest's mail")
    assert mail["Subject"] == "3 notifications for you"
    text = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert [line.partition(" (")[0] for line in lines] == ["- Welcome, Ada!: a reply", "- Welcome, Ada!: a <like>", "- Welcome, Ada!: an invitation"]
    html = mail.get_body(("html",)).get_content()
    assert "Welcome, Ada!: a &lt;like&gt; <small>" in html and "more" not in html
    assert window_state(gathered, window) == "flushed" and len(reader.mails()) == 1


def test_the_default_digest_says_what_happened_in_the_readers_language(gathered, bus):
    """B72 (student portal): grades of a day for a reader of Dari, with the subject of each notification and its time, without a template of the tenant."""
    words = {"fa": ("نمره {{subject}}: {{grade}}", "fa-AF"), "en": ("{{subject}}: grade {{grade}}", "en")}
    locales = [{"locale": locale, "subject": subject, "text": "-"} for locale, (subject, _) in words.items()]
    page = gathered.folder / "grade.json"
    page.write_text(json.dumps({"key": "grade", "category": "operational", "locales": locales}))
    gathered.cli("template", "put", "grade", "--from", page)
    gathered.cli("template", "put", "nameless", "--category", "operational", "--subject", "{{#each missing}}{{/each}}", "--text", HOME / "README.md")
    who = person()
    flush_us = in_s(2)
    grades = [bus.accept([who], "grade", locale="fa-AF", variables={"subject": subject, "grade": grade})[0]
              for subject, grade in (("ریاضی", 18), ("<b>هنر", 20))]
    nameless = bus.accept([who], "nameless", locale="fa-AF")[0]
    start = bus.last("REQUEST_NORMAL")
    for request in (*grades, nameless):
        bus.gather(request, flush_us, locale="fa-AF")
    wait_words(bus, ids_of(grades), "superseded")
    digest, = bus.digests(start)
    gathered.status(digest.meta.notification_id, wait="sent")
    mail, = gathered.mailbox.for_notification(digest.meta.notification_id)
    assert mail["Subject"] == "۳ اعلان برای شما"
    text = mail.get_body(("plain",)).get_content()
    html = mail.get_body(("html",)).get_content()
    at = [line for line in text.splitlines() if line.startswith("- ")]
    assert at[0].startswith("- نمره ریاضی: 18 (") and at[1].startswith("- نمره <b>هنر: 20 ("), at
    assert at[2].startswith("- nameless (")  # a template that gives no subject is named
    assert all(line.endswith(")") and any(sign in line for sign in "۰۱۲۳۴۵۶۷۸۹") for line in at)  # the time, in the reader's digits
    assert 'lang="fa"' in html and 'dir="rtl"' in html and "نمره &lt;b&gt;هنر: 20" in html


def test_one_item_that_the_gate_gathered_goes_out_as_itself(gathered, bus):
    reader = Reader(gathered, bus, frequency="hourly")
    event = reader.news("Only", "one")
    assert event.digest.flush_at_us % 3_600_000_000 == 0
    wait_gathered(gathered, event.digest.window_id, 1)
    reader.prefer(frequency="immediate")
    assert gathered.status(event.meta.notification_id, wait="sent")["status"] == "sent"
    mail, = reader.mails()
    assert mail["Subject"] == "Welcome, Ada!" and gathered.mailbox.for_notification(event.meta.notification_id)


@pytest.mark.parametrize("what, code", [("off", "preference"), ("unsubscribed", "unsubscribed"), ("removed", "no_address")])
def test_who_wants_no_more_gets_none_of_the_open_window(gathered, bus, what, code):
    who = person()
    bus.prefer(who, "daily")
    items, window = open_window(gathered, bus, who)
    start = bus.last("REQUEST_NORMAL")
    if what == "off":
        bus.prefer(who, off=True)
    elif what == "unsubscribed":
        bus.say(who, unsubscription=bus.proto.Unsubscription(unsubscribed=True))
    else:
        bus.say(who, removal=bus.proto.Removal(reason="asked"))
    seen = wait_words(bus, ids_of(items), "suppressed")
    assert [end_of(seen, one) for one in ids_of(items)] == [[("suppressed", code)]] * 2
    wait_until(lambda: window_state(gathered, window) == "flushed", 10)
    assert bus.digests(start) == []
    assert gathered.status(ids_of(items)[0], wait="suppressed")["reason_code"] == code


# ---- cancellations ----


def test_a_cancellation_ends_what_waits_and_what_comes_late_and_nothing_newer(gathered, bus):
    who = person()
    waiting, item, other, late, newer = bus.accept([who] * 5)
    bus.wait(waiting, "schedule", in_s(3600), cancel_key="reminder/stay1")
    window = bus.gather(item, in_s(3600), cancel_key="reminder/stay1")
    bus.gather(other, in_s(3600), category="billing")
    wait_gathered(gathered, window, 1)
    wait_until(lambda: query(gathered, "SELECT 1 FROM digest_flusher.due_work WHERE notification_id = %s", waiting.meta.notification_id), 20)
    cut_us = now_us()
    bus.cancel("reminder/stay1", cut_us)
    seen = wait_words(bus, [waiting.meta.notification_id, item.meta.notification_id], "suppressed")
    for one in (waiting, item):
        assert end_of(seen, one.meta.notification_id) == [("suppressed", "obsolete")]
    shown = [event for event in bus.since("STATUS", bus.start, bus.proto.NotificationStatus) if event.reason_code == "obsolete"]
    assert {event.reason for event in shown} == {"stay.cancelled"}
    bus.wait(late, "schedule", in_s(3600), cancel_key="reminder/stay1")
    wait_words(bus, [late.meta.notification_id], "suppressed")
    newer, = bus.accept([who])  # caused after the cut: another stay
    bus.wait(newer, "schedule", in_s(1), cancel_key="reminder/stay1")
    assert gathered.status(newer.meta.notification_id, wait="sent")["status"] == "sent"
    assert gathered.mailbox.for_notification(waiting.meta.notification_id) == []


# ---- crashes ----


def test_killed_in_the_middle_of_some_hundred_windows_each_is_flushed_once(gathered, bus):
    windows, each = 300, 3
    people = [person() for _ in range(windows)]
    items = bus.accept([who for who in people for _ in range(each)])
    start = bus.last("REQUEST_NORMAL")
    flush_us = in_s(10)
    # One window each 20 ms, so that the kills of these 6 s are in the middle.
    names = {bus.gather(item, flush_us + at // each * 20_000) for at, item in enumerate(items)}
    assert len(names) == windows
    victims = [gathered.services["digest-flusher"], gathered.services["digest-flusher-2"]]
    chance = random.Random(4)
    time.sleep(max(0.0, flush_us / 1e6 - time.time()))
    kills = 0
    left = []  # windows not flushed yet, at each kill
    state = "SELECT count(*) FROM digest_flusher.digest_windows WHERE state <> 'flushed' AND window_id = ANY (%s)"
    while kills < 4 or (left[-1] > 0 and kills < 25):
        time.sleep(chance.uniform(0.0, 0.1))
        left.append(query(gathered, state, list(names))[0][0])
        victim = chance.choice(victims)
        victim.kill()
        kills += 1
        # A lease is 15 s at least. Those of the replica that lives end too: then two do the same work at once.
        query(gathered, "UPDATE digest_flusher.digest_windows SET claimed_until = now() WHERE claimed_until > now()")
        query(gathered, "UPDATE digest_flusher.due_work SET claimed_until = now() WHERE claimed_until > now()")
        victim.start()
    wait_words(bus, ids_of(items), "superseded")
    digests = bus.digests(start)
    assert sorted(digest.digest_window_id for digest in digests) == sorted(names)
    assert {digest.digest_total for digest in digests} == {each}
    listed = [item.notification_id for digest in digests for item in digest.digest_items]
    assert sorted(listed) == sorted(ids_of(items))
    ids = [digest.meta.notification_id for digest in digests]
    assert len(set(ids)) == windows
    wait_until(lambda: query(gathered, "SELECT count(*) FROM archiver.notifications WHERE status = 'sent' AND id = ANY (%s)", ids)[0][0]
               == windows, 60, "every digest sent")
    counts = gathered.mailbox.count_by_message_id()
    assert {counts.get(f"<{one}@localhost>", 0) for one in ids} == {1}
    assert {counts.get(f"<{one}@localhost>", 0) for one in ids_of(items)} == {0}
    seen = bus.statuses(bus.start)
    assert {tuple(end_of(seen, one)) for one in ids_of(items)} == {(("superseded", "digest"),)}
    print(f"{windows} windows, {kills} kills, windows left at each {left}")
    assert any(0 < count < windows for count in left), "no kill was in the middle"
