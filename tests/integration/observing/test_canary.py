# SPDX-License-Identifier: Apache-2.0
"""The canary: one notification of `platform` in each span of time, however many ingests run, goes the whole way, and its absence shows."""
import json
import time

import pytest

from tests.harness.processes import HOME, wait_until

ROUND = "stentor_archiver_canary_timestamp_seconds"


@pytest.fixture(scope="module")
def ingests(pipeline):
    """Two replicas with a canary every second."""
    first = pipeline.services["ingest"]
    before = dict(first.options)
    first.stop()
    first.options.update(STENTOR_CANARY_S="1")
    second = pipeline.service("ingest", instance="-2", STENTOR_INGEST_PORT=0, STENTOR_CANARY_S=1)
    for service in (first, second):
        service.start()
    yield first, second
    assert second.stop() == 0
    first.stop()
    first.options.clear()
    first.options.update(before)
    first.start()


def test_a_canary_without_its_template_says_what_is_missing(pipeline, ingests):
    wait_until(lambda: all(service.metric('stentor_ingest_canaries_total{result="failed"}') > 1 for service in ingests), 20, "canaries that are not sent")
    assert all(service.log.read_text().count("no canary is sent") == 1 for service in ingests)
    assert pipeline.services["archiver"].metric(ROUND) == 0


def test_a_canary_comes_round_once_for_each_span_of_time(pipeline, ingests):
    accepted = lambda: sum(service.metric('stentor_ingest_canaries_total{result="accepted"}') for service in ingests)  # noqa: E731
    begun = time.time()
    pipeline.cli("template", "put", "canary", "--from", HOME / "deploy" / "local" / "platform" / "canary.json", tenant="platform")
    archiver = pipeline.services["archiver"]
    wait_until(lambda: archiver.metric(ROUND) >= begun and accepted() >= 3, 30, "canaries coming round")
    counted = "SELECT count(*) FROM archiver.notifications WHERE template = 'canary'"
    wait_until(lambda: pipeline.postgres.query(f"{counted} AND status = 'sent'")[0][0] >= 3, 20, "the history having them")
    assert pipeline.postgres.query(f"{counted} AND tenant_id <> 'platform'") == [(0,)], "no tenant has it"
    assert accepted() <= time.time() - begun + 2, "of two replicas one has each"
    assert not pipeline.mailbox.mails("canary"), "nothing goes outside"


def test_a_canary_that_does_not_come_round_shows(pipeline, ingests):
    archiver, dispatcher = pipeline.services["archiver"], pipeline.services["dispatcher"]
    dispatcher.stop()
    try:
        stopped = time.time()
        wait_until(lambda: time.time() - archiver.metric(ROUND) > 4, 30, "the age of the last one growing")
        assert archiver.metric(ROUND) < stopped + 2
    finally:
        dispatcher.start()
    wait_until(lambda: time.time() - archiver.metric(ROUND) < 4, 40, "canaries coming round again")


def test_the_audit_loses_no_canary(pipeline, ingests):
    for service in ingests:
        service.stop()  # none is on its way
    try:
        report = json.loads(pipeline.run_cli("audit", "--tenant", "platform", "--grace", "0", "--since", "1h", "--json", timeout=120).stdout)
        assert report["accepted"] == report["sent"] > 3 and not report["lost"] and not report["findings"], report
    finally:
        for service in ingests:
            service.start()
