# SPDX-License-Identifier: Apache-2.0
"""Restarts that lose no time, and freezes that lose nothing.

A graceful restart in the middle of the work delays no notification by the ack wait: what was pulled and not settled is
given back, and only once nothing of it can come to the leaving process again (common/bus/link.h)."""
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.integration.test_kill import FAST, Load, check_nothing_lost_nothing_doubled

ACK_WAIT_S = 30
TOTAL = 6000
CHUNK_S = 0.1  # between two arrays of 100: a restart meets messages at every stage


class SteadyLoad(Load):
    def post(self, bodies, key):
        time.sleep(CHUNK_S)
        return super().post(bodies, key)


@pytest.mark.parametrize("name", ["renderer", "dispatcher"])
def test_a_graceful_restart_delays_nothing_by_the_ack_wait(name):
    pipeline = Pipeline(FAST, ack_wait_ms=ACK_WAIT_S * 1000).start()
    load = SteadyLoad(pipeline, total=TOTAL)
    load.start()
    try:
        restarts = 0
        while load.is_alive():
            assert pipeline.services[name].stop() == 0, pipeline.services[name].tail()
            pipeline.services[name].start()
            restarts += 1
        load.join()
        wait_until(lambda: pipeline.history_count("status = 'sent'") >= TOTAL, 3 * ACK_WAIT_S, "every mail sent")
        times = pipeline.postgres.query("SELECT extract(epoch FROM sent_at - queued_at)::float8 FROM history.notifications")
        # Less than that is a queue: on a busy machine a restart takes as long as the work between two of them.
        late = [row[0] for row in times if row[0] > ACK_WAIT_S - 1]
        print(f"{name}: {restarts} restarts, {len(late)} late, the slowest took {max(row[0] for row in times):.1f} s")
        # nats-server 2.9.10 still loses about one redelivery in 100 restarts to the ack wait; it was 250 to 2,587 in 60.
        assert 10 * len(late) <= restarts
    finally:
        pipeline.stop()


# Longer than the ack wait (3 s), so that all in hand is delivered to somebody else too; NATS longer than a publish is tried.
@pytest.mark.parametrize("victim, seconds", [("ingest", 6), ("renderer", 6), ("archiver", 6), ("nats", 13), ("postgres", 8)])
def test_a_frozen_process_that_goes_on_loses_and_doubles_nothing(victim, seconds):
    pipeline = Pipeline(FAST, ack_wait_ms=3000).start()
    load = SteadyLoad(pipeline, total=3000)
    load.start()
    try:
        process = pipeline.services.get(victim) or getattr(pipeline, victim)
        time.sleep(1)
        process.pause()
        time.sleep(seconds)
        process.pause(False)
        load.join()
        check_nothing_lost_nothing_doubled(pipeline, load)
    finally:
        pipeline.stop()
