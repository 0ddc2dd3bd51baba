# SPDX-License-Identifier: Apache-2.0
"""Kills a relay at each of its crash points, starts it again, and compares what is there at the end with a calm run: the
application's rows, the mails, Stentor's letters, the events.

JetStream's duplicate window is 0.1 s here, so what is published again is stored again: the ids must be the same, and the
readers alone have to drop it."""
import itertools
import json
import subprocess

import pytest

from tests.harness.crash_load import DUPLICATE_WINDOW_NS
from tests.harness.outbox import Application, Events, prepare
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, wait_until

LEASE = {"STENTOR_OUTBOX_LEASE_MS": "3000", "STENTOR_OUTBOX_BATCH": "10"}
DIED = -9
numbers = itertools.count(1)


def points():
    done = subprocess.run([BIN / "stentor-outbox-relay", "--crash-points"], capture_output=True, text=True, timeout=20)
    return [line.split("\t")[0] for line in done.stdout.splitlines()] if done.returncode == 0 else []


POINTS = points()
OF_REQUESTS = {"outbox.noted", "outbox.feedback", "projector.committed"}  # events pass the others only
pytestmark = pytest.mark.skipif(not POINTS, reason="built without -DSTENTOR_CRASH_POINTS=ON")


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline({"STENTOR_RETRY_LADDER": "1"}).start()
    prepare(pipeline)
    events = Events(pipeline)
    for stream in json.loads(events.nats.request("$JS.API.STREAM.NAMES"))["streams"]:
        config = {**events.nats.stream_info(stream)["config"], "duplicate_window": DUPLICATE_WINDOW_NS}
        assert "error" not in json.loads(events.nats.request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode()))
    events.close()
    yield pipeline
    pipeline.stop()


@pytest.fixture(scope="module")
def memo(pipeline):
    return Application(pipeline, "memo")


@pytest.fixture(scope="module")
def hotel(pipeline):
    return Application(pipeline, "hotel")


class Run:
    """One load, its relay, and what they leave."""

    def __init__(self, app, point=None):
        self.app = app
        self.number = next(numbers)
        self.events = Events(app.pipeline)
        self.relay = app.relay(f"-{self.number}", **LEASE)
        if point is None:
            self.relay.start()
            self.load()
        else:
            self.relay.options["STENTOR_CRASH_AT"] = point
            self.relay.start(wait=False)
            self.load()
            assert self.relay.exit_status(30) == DIED and f"crash point '{point.split(':')[0]}' reached" in self.relay.tail(), self.relay.tail()
            del self.relay.options["STENTOR_CRASH_AT"]
            self.relay.start()

    def seen(self):
        try:
            self.wait_end()
            wait_until(lambda: self.app.one("SELECT count(*) FROM stentor_outbox.claims") == 0, 20, "no claim left")
            return self.observe()
        finally:
            status = self.relay.stop()
            self.events.close()
            assert status == 0, self.relay.tail()


class MemoRun(Run):
    """25 mails of which one does not fit and one is put off once."""

    def load(self):
        tag = f"run{self.number}"
        self.app.pipeline.mailbox.answer("451 4.3.0 later")
        self.ids = [self.app.memo("no-at-sign" if n == 7 else f"{tag}-{n}@example.com", f"{tag}/{n}") for n in range(25)]

    def wait_end(self):
        wait_until(lambda: self.app.one("SELECT count(*) FROM email_outbox WHERE status NOT IN ('SENT', 'FAILED')") == 0, 60,
                   f"all rows ended: {self.app.counts()}")

    def observe(self):
        rows = self.app.rows("SELECT * FROM email_outbox WHERE id::text = ANY (%s)", self.ids)
        letters = self.app.sql("SELECT attempt, state, ended_at IS NOT NULL FROM stentor_outbox.requests WHERE row_key = ANY (%s)", self.ids)
        mails = [mail["To"] for mail in self.app.pipeline.mailbox.mails(f"run{self.number}-") if f"run{self.number}-" in mail["To"]]
        assert len(set(mails)) == len(mails), "a mail went out twice"
        return {
            "rows": sorted((row["status"], row["sent_at"] is not None, row["error_message"] or "") for row in rows),
            "retries": sum(row["retry_count"] for row in rows),
            "letters": sorted(letters), "mails": len(mails),
            "history": self.app.pipeline.history_count(f"correlation_id LIKE 'run{self.number}/%'"),
            "event ids": len({event["headers"]["Nats-Msg-Id"] for event in self.events.all()}),
        }


class HotelRun(Run):
    """40 events of four keys, of which one does not fit."""

    def load(self):
        self.app.sql(
            "INSERT INTO notification.outbox (id, tenant_id, subject, payload, envelope, ordering_key) SELECT %s || '-' || lpad(n::text, 4, '0'),"
            " CASE WHEN n = 9 THEN 'No Tenant' ELSE 'acme' END, 'room.booked', json_build_object('n', n), '{}', 'key-' || n %% 4"
            " FROM generate_series(1, 40) AS n", f"run{self.number}")

    def wait_end(self):
        wait_until(lambda: self.app.one("SELECT count(*) FROM notification.outbox WHERE published_at IS NULL AND last_error IS NULL") == 0, 60,
                   "all rows ended")

    def observe(self):
        rows = self.app.rows("SELECT * FROM notification.outbox WHERE id LIKE %s", f"run{self.number}-%")
        first = {}
        for event in self.events.all():
            first.setdefault(event["headers"]["Nats-Msg-Id"], json.loads(event["data"])["n"])
        order = list(first.values())
        for key in range(4):
            mine = [number for number in order if number % 4 == key]
            assert mine == sorted(mine), f"key {key} out of order"
        return {"rows": sorted((row["published_at"] is not None, row["last_error"] or "") for row in rows), "events": sorted(order)}


@pytest.fixture(scope="module")
def calm_memo(memo):
    seen = MemoRun(memo).seen()
    assert [row[0] for row in seen["rows"]].count("SENT") == 24 and seen["mails"] == 24 and seen["retries"] == 1
    return seen


@pytest.fixture(scope="module")
def calm_hotel(hotel):
    seen = HotelRun(hotel).seen()
    assert seen["events"] == [n for n in range(1, 41) if n != 9]
    return seen


@pytest.mark.parametrize("point", POINTS)
def test_requests_end_the_same(memo, calm_memo, point):
    assert MemoRun(memo, point).seen() == calm_memo


@pytest.mark.parametrize("point", [f"{point}:2" for point in POINTS])
def test_requests_end_the_same_when_it_dies_at_the_second_passing(memo, calm_memo, point):
    assert MemoRun(memo, point).seen() == calm_memo


@pytest.mark.parametrize("point", [point for point in POINTS if point not in OF_REQUESTS])
def test_events_end_the_same(hotel, calm_hotel, point):
    assert HotelRun(hotel, point).seen() == calm_hotel
