# SPDX-License-Identifier: Apache-2.0
"""Finding 14: a relay in the account of one tenant's application drains its table and reads their statuses, and reaches no other tenant's."""
import json

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.outbox import Application, prepare
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline({"STENTOR_RETRY_LADDER": "1,1"}).start()
    prepare(pipeline)
    yield pipeline
    pipeline.stop()


def _rows_end(app, wanted):
    wait_until(lambda: app.mail_row(wanted)["status"] == "SENT", 30, f"SENT\n{dict(app.mail_row(wanted))}\n{app.process.tail(5)}")


def test_finding_14_a_relay_of_one_tenant_works_within_its_account(pipeline):
    app = Application(pipeline, "memo")
    relay = app.relay(STENTOR_NATS_USER="memo-app", STENTOR_OUTBOX_TENANTS="memo").start()
    pipeline.services[relay.name] = relay
    app.process = relay
    _rows_end(app, app.memo("bob@example.com", "memo-own-account", "In an account of its own", "Please read."))
    assert "permission" not in relay.tail(50).lower()
    positions = {row["stream"] for row in app.rows("SELECT stream FROM stentor_outbox.positions")}
    assert positions == {"STATUS ntf.status.memo.>"}  # DEAD holds nothing of it, and nothing else was read


def test_finding_14_the_same_user_reaches_no_other_tenant(pipeline):
    admin = NatsClient(pipeline.nats.port)
    before = admin.stream_info("EVENTS")["state"]["last_seq"]
    client = NatsClient(pipeline.nats.port, "memo-app")
    for subject in ("evt.acme.notify", "evt.platform.CleanUpSentEmail", "cfg.tenant.acme.self", "ntf.status.acme.email.sent"):
        client._write(f"PUB {subject} 1\r\nx\r\n".encode())
    assert json.loads(client.request("evt.memo.order.made", b"{}"))["seq"] == before + 1  # the next one stored is its own tenant's
    client.close()
    admin.close()
