# SPDX-License-Identifier: Apache-2.0
"""Vendors for a pipeline: doubles, their credentials and the routes to them, as entries of CONFIG."""
import itertools
import json
import time

from tests.harness.nats_client import NatsClient
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.harness.vendor_doubles import Double

TENANT = "acme"


def options(pipeline, **more):
    """Of the dispatcher, before the pipeline starts."""
    (pipeline.folder / "credentials").mkdir(exist_ok=True)
    return {"STENTOR_CREDENTIAL_DIRS": str(pipeline.folder / "credentials"), "STENTOR_VENDOR_ADDRESSES": "loopback", **more}


class Routing:
    """Each route has a domain of recipients of its own, and doubles of its own: one scenario's breakers are no other's."""

    def __init__(self, pipeline):
        self.pipeline, self.types = pipeline, messages(pipeline)
        self.nats = NatsClient(pipeline.nats.port)
        self.doubles, self.numbers = [], itertools.count(1)

    def close(self):
        self.nats.close()
        for double in self.doubles:
            double.stop()

    def put(self, subject, entry):
        self.nats.publish(f"cfg.{subject}", entry.SerializeToString())

    def vendor(self, name, credential, token="", rate_per_s=0):
        """token: of an AWS session; the secret is then what a credential_process prints, and CONFIG has another key's id."""
        double = Double(name).start()
        self.doubles.append(double)
        secret = self.pipeline.folder / "credentials" / f"{name}-{credential}"
        secret.write_text(double.secret if not token else json.dumps(
            {"Version": 1, "AccessKeyId": double.key_id, "SecretAccessKey": double.secret, "SessionToken": token}, indent=2) + "\n")
        types = self.types
        entry = types.VendorCredential(
            tenant=TENANT, vendor=name, name=credential, id="chc_01ARZ3NDEKTSV4RRFFQ69G5FAV", reference=f"file:{secret}", key_id="AKIABEFORE" if token else double.key_id,
            state=types.CREDENTIAL_STATE_ACTIVE, changed_at_us=int(time.time() * 1e6), rate_per_s=rate_per_s)
        for key, value in {**double.settings, "base_url": double.base_url}.items():
            entry.settings.add(name=key, value=value)
        self.put(f"credential.{TENANT}.{name}.{credential}", entry)
        return double

    def route(self, *vendors, token="", rate_per_s=0, **fields):
        """vendors: names, each with a double of its own, or "smtp". Returns the domain whose mails take it, and the doubles."""
        key = f"r{next(self.numbers)}"
        domain = f"{key}.example"
        entry = self.types.Route(tenant=TENANT, key=key, domain=domain, updated_at_us=int(time.time() * 1e6), **fields)
        doubles = []
        for step, name in enumerate(vendors):
            credential = "" if name == "smtp" else key
            doubles.append(None if name == "smtp" else self.vendor(name, credential, token, rate_per_s))
            entry.vendors.add(vendor=name, credential=credential, step=step)
        self.put(f"route.{TENANT}.{key}", entry)
        self.wait_routed(domain)
        return domain, doubles

    def wait_routed(self, domain):
        """CONFIG reaches the dispatcher in a moment; a mail before that would go over SMTP."""
        count = int(domain.split(".")[0][1:])
        wait_until(lambda: self.pipeline.services["dispatcher"].metric("stentor_dispatcher_routes") >= count, 10, f"{domain} in the dispatcher")

    def suspend(self, vendor, status="DISABLED", tenant=TENANT, until_us=0):
        types = self.types
        self.put(f"channel_health.{tenant}.email_{vendor}", types.ChannelHealth(
            tenant=tenant, channel=types.CHANNEL_EMAIL, vendor=vendor, status=getattr(types, f"CHANNEL_STATUS_{status}"), until_us=until_us,
            changed_at_us=int(time.time() * 1e6), noted_by="operator", reason="a test"))

    def rows(self, notification):
        """(attempt, vendor, state, unknown_count) of the ledger."""
        return self.pipeline.postgres.query(
            "SELECT attempt, vendor, state, unknown_count FROM dispatcher.ledger WHERE notification_id = %s ORDER BY 1", notification)

    def wait_rows(self, notification, *expected, timeout=40):
        wait_until(lambda: self.rows(notification) == [*expected], timeout, f"the ledger having {expected}, not {self.rows(notification)}")

    def health(self, vendor):
        subject = f"cfg.channel_health.{TENANT}.email_{vendor}"
        found = self.nats.message("CONFIG", last_by_subj=subject)
        return self.types.ChannelHealth.FromString(found[1]) if found else None
