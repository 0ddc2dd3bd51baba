# SPDX-License-Identifier: Apache-2.0
"""NATS accounts of the version before: `stentor-webhook` may not move its consumer of STATUS, so it reads every status, as that version did."""
import json
import re

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import Nats, wait_until
from tests.harness.webhooks import Endpoint, Subscriptions, Verifier

MOVES = r',?\s*"\$JS\.API\.CONSUMER\.(CREATE|DELETE)\.STATUS\.webhook(\.>)?"'


class EarlierNats(Nats):
    def argv(self):
        text, count = re.subn(MOVES, "", self.config.read_text())
        assert count == 3, "the rights by which it moves its consumer are other ones now"
        self.config.write_text(text)
        return super().argv()


@pytest.fixture
def pipeline():
    made = Pipeline({"STENTOR_WEBHOOK_ADDRESSES": "loopback"})
    made.nats = EarlierNats(made.folder / "nats")
    made.start(["ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "webhook"])
    yield made
    made.stop()


def test_without_the_right_to_move_its_consumer_it_reads_as_the_version_before(pipeline):
    service, client, verifier = pipeline.services["webhook"], NatsClient(pipeline.nats.port), Verifier()
    subscriptions, endpoint = Subscriptions(pipeline), Endpoint(verifier)

    def place():
        return json.loads(client.request("$JS.API.CONSUMER.INFO.STATUS.webhook"))
    before = place()["config"]
    wait_until(lambda: "could not be moved" in service.log.read_text(), 20, "a refused move")
    first = pipeline.send()
    wait_until(lambda: place()["ack_floor"]["stream_seq"] >= 2, 20, "both statuses being read and acked")
    subscriptions.put(endpoint.url, endpoint.secret, wait=False)
    later = []

    def got():
        later.append(pipeline.send())  # until the service has seen the subscription
        return {request.event["data"]["id"] for request in list(endpoint.requests)} & set(later)
    wait_until(got, 30, "a status at the endpoint")
    last = pipeline.send()
    wait_until(lambda: sorted(request.status for request in endpoint.of(last)) == ["queued", "sent"], 30, "both statuses of the last mail")
    assert endpoint.of(first) == [] and endpoint.refused == []
    assert place()["config"] == before and place()["num_pending"] == 0
    assert service.ready(), service.get("/readyz")
    for id in list(subscriptions.entries):
        subscriptions.remove(id)
    endpoint.close()
    client.close()
    verifier.close()
