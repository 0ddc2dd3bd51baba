# SPDX-License-Identifier: Apache-2.0
"""/v1/ops/...: the picture of the pipeline, of all tenants, for an operator; and as it changes, /v1/live/pipeline."""
import json

from tests.harness.clients.sse import EventStream
from tests.harness.processes import SERVICES, wait_until


def look(pipeline, what, key=None):
    status, headers, answer = pipeline.post(b"", path=f"/v1/ops/{what}", method="GET",
                                            headers={"Authorization": f"Bearer {key or pipeline.operator_key}"})
    assert status == 200 and headers["Cache-Control"] == "no-store", answer
    return answer


def row(rows, **named):
    (name, value), = named.items()
    return next(one for one in rows if one[name] == value)


def test_streams_and_consumers_show_what_is_there_and_what_waits(pipeline):
    before = look(pipeline, "streams")
    status = row(before["data"], name="STATUS")
    assert status["there"] and status["subjects"] == "ntf.status.>" and status["max_bytes"] > 0, status
    pipeline.status(pipeline.send(), wait="sent")
    wait_until(lambda: row(look(pipeline, "streams")["data"], name="STATUS")["last_sequence"] >= status["last_sequence"] + 2, 20, "two more statuses")
    consumers = look(pipeline, "consumers")["data"]
    renderer = row([one for one in consumers if one["stream"] == "REQUEST_NORMAL"], name="renderer")
    assert renderer["there"] and renderer["lag"] == 0 and renderer["age_s"] == 0 and "oldest_at" not in renderer, renderer


def test_every_process_says_how_it_is(pipeline):
    def all_ready():
        said = {one["service"]: one for one in look(pipeline, "processes")["data"] if one["state"] == "ready"}
        return said if set(SERVICES) <= set(said) else None
    said = wait_until(all_ready, 20, "a heartbeat of each service")
    gateway = said["gateway"]
    assert gateway["rss_bytes"] > 1_000_000 and gateway["why"] == "" and gateway["version"] and gateway["started_at"] < gateway["heard_at"], gateway
    assert gateway["values"]["stentor_gateway_feed_active"] in (0, 1) and "stentor_archiver_lag" in said["archiver"]["values"], said


def test_the_pipeline_says_where_it_stands(pipeline):
    """A dispatcher that stands still: its stage and its lane show how many wait, and since when; the operator sees it live."""
    stream = EventStream(pipeline.api_port, "/v1/live/pipeline", pipeline.operator_key)
    first = stream.next("pipeline", timeout=30).json
    assert [one["stage"] for one in first["stages"]] == ["accept", "render", "send", "record", "wait", "hear", "post"], first
    assert [one["lane"] for one in first["lanes"]] == ["critical", "high", "normal", "low"]
    pipeline.services["dispatcher"].pause()
    try:
        for _ in range(5):
            pipeline.send()
        def behind():
            said = stream.events[-1].json
            send, normal = row(said["stages"], stage="send"), row(said["lanes"], lane="normal")
            return said if send["lag"] >= 5 and send["age_s"] > 1 and normal["lag"] >= 5 and normal["age_s"] > 1 else None
        said = wait_until(behind, 30, "what waits for the dispatcher")
        assert row(said["stages"], stage="send")["oldest_at"] < said["at"]
        wait_until(lambda: row(stream.events[-1].json["stages"], stage="send")["replicas"]["down"] >= 1, 30, "a silent process is down")
    finally:
        pipeline.services["dispatcher"].pause(False)
    wait_until(lambda: row(stream.events[-1].json["stages"], stage="send")["lag"] == 0, 30, "all sent")
    wait_until(lambda: row(stream.events[-1].json["stages"], stage="send")["replicas"]["ready"] >= 1, 30, "it is heard again")
    same = look(pipeline, "pipeline")
    assert set(same) == set(stream.events[-1].json) and row(same["stages"], stage="render")["in_per_s"] >= 0, same
    stream.close()


def test_it_is_an_operator_s(pipeline):
    for path in ("/v1/ops/pipeline", "/v1/ops/streams", "/v1/ops/consumers", "/v1/ops/processes", "/v1/live/pipeline"):
        status, _, answer = pipeline.post(b"", path=path, method="GET")  # a tenant's admin
        assert status == 403 and "ops:read" in answer["detail"], (path, answer)
    assert json.loads(pipeline.cli("apikey", "list", "--json"))  # it goes on
