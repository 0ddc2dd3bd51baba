# SPDX-License-Identifier: Apache-2.0
"""The search index in another Postgres, history on a hot standby (B71), no index at all: by gateways beside the pipeline's own."""
import http.client
import json
import shutil
import subprocess
import uuid

import pytest

from tests.harness.processes import Postgres, free_port, wait_until
from tests.integration.finding.test_search import new_address, send, when


class Standby(Postgres):
    """A hot standby of another cluster."""

    def __init__(self, folder, primary):
        super().__init__(folder)
        self.primary = primary

    def provide(self, kind, make):
        if self.user():
            shutil.chown(self.folder, self.user())
        subprocess.run([self.bin / "pg_basebackup", "-D", self.data, "-d", self.primary.url(database="postgres"), "-R", "-X", "stream", "-c", "fast",
                        "--no-sync"], check=True, user=self.user(), cwd="/")


@pytest.fixture
def gateway(pipeline):
    """Starts a gateway with these options; answers (status, body) of a path."""
    started = []

    def start(**options):
        port = free_port()
        service = pipeline.service("gateway", f"search{len(started)}", STENTOR_GATEWAY_PORT=port, **options).start()
        started.append(service)

        def get(path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {pipeline.key}"})
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            finally:
                connection.close()
        wait_until(lambda: get("/v1/tenant")[0] == 200, 20, "the API key reaching this gateway")
        return get

    yield start
    assert [service.stop() for service in started] == [0] * len(started)


def found(get, query):
    status, answer = get(f"/v1/notifications?{query}")
    return [item["id"] for item in answer["data"]] if status == 200 else None


def test_the_index_may_be_in_another_postgres_and_be_away(pipeline, gateway):
    other = Postgres(pipeline.folder / "index").start_installed()
    try:
        get = gateway(STENTOR_GATEWAY_FIND_DATABASE_URL=other.url("stentor_gateway"))
        order = f"order-{uuid.uuid4().hex}"
        sent = send(pipeline, to=new_address(), correlation_id=order)
        wait_until(lambda: found(get, f"correlation_id={order}") == [sent], 20, "the other index")
        assert other.query("SELECT count(*) > 0 FROM find.entries WHERE notification_id = %s", sent) == [(True,)]
        other.kill()
        status, answer = wait_until(lambda: (got := get(f"/v1/notifications?correlation_id={order}"))[0] == 503 and got, 30, "an answer that it is away")
        assert "search index is away" in answer["detail"]
        assert get(f"/v1/notifications/{sent}")[0] == 200
        assert sent in found(get, f"from={when(hours=-1)}&to={when(minutes=1)}&limit=1000")
        second = send(pipeline, to=new_address(), correlation_id=order)
        other.start()
        wait_until(lambda: found(get, f"correlation_id={order}") == [second, sent], 40, "the index going on where it stopped")
    finally:
        if other.alive():
            other.kill()


def test_history_may_be_read_from_a_standby_that_lags(pipeline, gateway):
    standby = Standby(pipeline.folder / "standby", pipeline.postgres).start()
    try:
        get = gateway(STENTOR_GATEWAY_READ_DATABASE_URL=standby.url("stentor_gateway"))
        order = f"order-{uuid.uuid4().hex}"
        first = send(pipeline, to=new_address(), correlation_id=order)
        wait_until(lambda: get(f"/v1/notifications/{first}")[1].get("status") == "sent", 30, "the standby having it")
        standby.query("SELECT pg_wal_replay_pause()")
        wait_until(lambda: standby.query("SELECT pg_get_wal_replay_pause_state()")[0][0] == "paused", 20, "the standby standing still")
        second = send(pipeline, to=new_address(), correlation_id=order)
        wait_until(lambda: found(get, f"correlation_id={order}") == [second, first], 20, "both in the index")
        items = get(f"/v1/notifications?correlation_id={order}")[1]["data"]
        assert set(items[0]) == {"id", "created_at"} and items[1]["status"] == "sent"
        assert found(get, f"correlation_id={order}&channel=email") == [first]  # what cannot be compared is not shown
        wait_until(lambda: pipeline.history_count(f"status = 'sent' AND id = '{second}'") == 1, 30, "the primary having it")
        assert get(f"/v1/notifications/{second}")[1]["status"] == "queued"  # never 404: from the accept log
        standby.query("SELECT pg_wal_replay_resume()")
        wait_until(lambda: get(f"/v1/notifications/{second}")[1]["status"] == "sent", 30, "the standby catching up")
    finally:
        standby.kill()


def test_without_an_index_searches_say_so_and_spans_go_on(pipeline, gateway):
    get = gateway(STENTOR_GATEWAY_FIND="false")
    sent = send(pipeline, to=new_address())
    status, answer = get("/v1/notifications?correlation_id=x")
    assert status == 503 and answer["type"] == "urn:stentor:problem:search-off" and "STENTOR_GATEWAY_FIND" in answer["detail"]
    wait_until(lambda: sent in found(get, f"from={when(minutes=-5)}&to={when(minutes=1)}&limit=1000"), 20, "it in the span")
