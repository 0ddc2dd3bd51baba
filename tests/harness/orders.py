# SPDX-License-Identifier: Apache-2.0
"""Orders for the saga: what a shop would publish, and what the tables say of it."""
import http.client
import json
import subprocess
import uuid

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.processes import BIN, HOME, wait_until


class Order:
    """One order of one person. `say` publishes an event of it; the id of the event is its name."""

    def __init__(self, shop, email=None, tenant=TENANT):
        self.shop, self.tenant = shop, tenant
        self.id = str(uuid.uuid4())
        self.email = email or f"{uuid.uuid4().hex}@example.com"

    def say(self, event, data, message_id=None, headers=None):
        payload = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.shop.nats.publish(f"evt.{self.tenant}.{event}", payload, message_id or f"{event}-{uuid.uuid4().hex}", headers)
        return self

    def check_out(self, message_id=None, **fields):
        data = {"orderId": self.id, "basketId": str(uuid.uuid4()), "fullName": "Alice Doe", "email": self.email, "totalMoney": "59.90",
                "currency": "EUR", **fields}
        return self.say("UserCheckedOut", data, message_id)

    def complete(self, message_id=None, **fields):
        return self.say("StatusChanged", {"orderId": self.id, "status": "Completed", "carrier": "DHL", "trackingNumber": "JD0146", **fields},
                        message_id)

    def cancel(self, message_id=None, **fields):
        return self.say("StatusChanged", {"orderId": self.id, "status": "Cancelled", "reason": "out of stock", **fields}, message_id)

    # ---- what is there ----

    def row(self, columns="current_state", table="order_state"):
        rows = self.shop.query(f"SELECT {columns} FROM order_saga.{table} WHERE correlation_id = %s AND tenant_id = %s", self.id, self.tenant)
        return rows[0] if rows else None

    def state(self):
        row = self.row()
        return row and row[0]

    def wait_state(self, state, seconds=30):
        wait_until(lambda: self.state() == state, seconds, f"order {self.id} being {state}, not {self.state()}")
        return self

    def inbox(self):
        """(event, verdict, from, to, times), in the stream's order."""
        return self.shop.query("SELECT event_type, verdict, coalesce(from_state, ''), coalesce(to_state, ''), receive_count FROM order_saga.inbox_state"
                               " WHERE correlation_id = %s AND tenant_id = %s ORDER BY sequence", self.id, self.tenant)

    def wait_inbox(self, count, seconds=30):
        wait_until(lambda: len(self.inbox()) == count, seconds, f"{count} messages of order {self.id}")
        return self.inbox()

    def sent(self):
        """Types of the outbox's rows, in their order; all of them are sent."""
        wait_until(lambda: not self.shop.query("SELECT 1 FROM order_saga.outbox_message WHERE correlation_id = %s AND sent_time IS NULL", self.id), 20,
                   "the outbox being empty")
        return [name for name, in self.shop.query("SELECT message_type FROM order_saga.outbox_message WHERE correlation_id = %s ORDER BY sequence_number",
                                                  self.id)]

    def mails(self):
        """Subjects of the order's mails, sorted."""
        return sorted(str(mail["Subject"]).replace(self.id, "#") for mail in self.shop.pipeline.mailbox.mails(self.email) if self.email in str(mail["To"]))

    def wait_mails(self, *subjects, seconds=40):
        wait_until(lambda: len(self.mails()) >= len(subjects), seconds, f"mails of order {self.id}: {subjects}, not {self.mails()}")
        assert self.mails() == sorted(subjects)


PLACED, COMPLETED, CANCELLED = "Your order #", "Your order # is on its way", "Your order # is cancelled"


class Shop:
    """Publishes into a pipeline that runs order-saga."""

    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.nats = NatsClient(pipeline.nats.port)

    def query(self, sql, *params):
        return self.pipeline.postgres.query(sql, *params)

    def order(self, tenant=TENANT, **fields):
        """Of a tenant that is made here when it is not the pipeline's own."""
        if tenant not in (TENANT, "platform"):
            self.pipeline.cli("tenant", "put", tenant)
        return Order(self, tenant=tenant, **fields)

    def put_mails(self):
        """The three mails of deploy/examples/orders."""
        environment = {**self.pipeline.cli_environment(), "STENTOR": str(BIN / "stentor")}
        done = subprocess.run([HOME / "deploy/examples/orders/put"], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: all(self.knows(name) for name in ("place-order", "complete-order", "cancel-order")), 20, "the triggers reaching ingest")
        return self

    def knows(self, trigger):
        connection = http.client.HTTPConnection("127.0.0.1", self.pipeline.api_port, timeout=30)
        try:
            connection.request("GET", f"/v1/triggers/{trigger}", headers={"Authorization": f"Bearer {self.pipeline.key}"})
            return connection.getresponse().status == 200
        finally:
            connection.close()

    def close(self):
        self.nats.close()
