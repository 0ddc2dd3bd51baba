# SPDX-License-Identifier: Apache-2.0
"""A line for each request: who asked, by which route, with which answer, after how long; never an address or a path."""
import json

from tests.harness.processes import wait_until
from tests.integration.security.test_operator_key import ask


def lines(pipeline, service):
    text = pipeline.services[service].tail(4000)
    parsed = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return [line for line in parsed if line["event"] == "request"]


def test_a_request_is_a_line_without_what_stands_in_its_path(pipeline):
    status, headers, _ = pipeline.post(b"", "/v1/suppressions?address=eve.lines@example.com&limit=1", method="GET")
    assert status == 200
    wait_until(lambda: [line for line in lines(pipeline, "gateway") if line["request"] == headers["Stentor-Request-Id"]], 20, "its line")
    line = next(line for line in lines(pipeline, "gateway") if line["request"] == headers["Stentor-Request-Id"])
    key_id = pipeline.key.removeprefix("stn_").split(".")[0]
    assert (line["actor"], line["method"], line["route"], line["status"], line["each"]) == (f"key {key_id}", "GET", "/v1/suppressions", 200, 1)
    assert 0 < line["us"] < 60_000_000
    status, headers, _ = pipeline.post(b"", "/v1/nowhere/eve.lines@example.com", method="GET")
    assert status == 404
    wait_until(lambda: [line for line in lines(pipeline, "gateway") if line["request"] == headers["Stentor-Request-Id"]], 20, "its line")
    assert next(line for line in lines(pipeline, "gateway") if line["request"] == headers["Stentor-Request-Id"])["route"] == "-"
    assert "eve.lines" not in pipeline.services["gateway"].tail(4000)


def test_ingest_writes_each_hundredth_that_it_accepts_and_all_that_it_refuses(pipeline):
    refused = [pipeline.post({"to": 7})[1]["Stentor-Request-Id"] for _ in range(5)]
    wait_until(lambda: set(refused) <= {line["request"] for line in lines(pipeline, "ingest")}, 20, "the refused ones")
    before = len([line for line in lines(pipeline, "ingest") if line["status"] < 400])
    for _ in range(20):
        pipeline.send(to="alice@example.com")
    accepted = [line for line in lines(pipeline, "ingest") if line["status"] < 400]
    assert len(accepted) - before <= 1 and all(line["each"] == 100 for line in accepted)
    assert ask(pipeline, "stn_no.key", "POST", "/v1/notifications", {})[0] == 401
    assert {line["actor"] for line in lines(pipeline, "ingest") if line["status"] == 401} == {"-"}
