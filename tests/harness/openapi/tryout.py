# SPDX-License-Identifier: Apache-2.0
"""All operations of the document against a running pipeline, in the order that their x-try asks for: what each was answered."""
import json
import time

from tests.harness import openapi
from tests.harness.openapi import OPERATOR, Example, member
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import PATIENCE, SERVICES, wait_until

OPTIONS = {"STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_WEBHOOK_LADDER": "1"}
UNTIL_S = 20
ALL_SCOPES = "owner,ops:read"  # that a tenant's key can have
TOMORROW = "$tomorrow"  # in x-try: a time, because an example's own will have passed one day
INAPP = {"key": "parcel", "channel": "inapp", "locales": [{"locale": "en", "title": "Your order", "text": "It is on its way", "data": {"url": "/o/17"}}]}


def started():
    return Pipeline(OPTIONS).start([*SERVICES, "webhook"])


class Tryout:
    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.answers = {}  # operation id: Answer
        self.examples = {}  # operation id: Example
        self.sent = {}  # operation id: the last request
        made = pipeline.cli("apikey", "create", "--name", "all", "--scopes", ALL_SCOPES, "--json")
        self.key = json.loads(made)["key"]
        wait_until(lambda: self.plain("GET", "/v1/api-keys").status == 200 and self.plain("GET", "/v1/batches").status == 200, 20, "the key reaching both")
        self.prepare()

    # ---- what the examples find ----

    def plain(self, method, path, body=None, **headers):
        found = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **headers}
        return openapi.call(self.pipeline.api_port, method, path, json.dumps(body).encode() if body is not None else None, found)

    def prepare(self):
        """An item in the inbox of user-17, who has a record, and a notification that waits for its time."""
        assert self.plain("POST", "/v1/templates", INAPP).status == 201
        item = {"to": "user-17", "channel": "inapp", "template": "parcel"}
        wait_until(lambda: self.plain("POST", "/v1/notifications", item).status == 202, 20, "the template reaching ingest")
        person = {"identity_type": "user", "identity_id": "user-17", "addresses": [{"channel": "inapp", "address": "user-17"}]}
        assert self.plain("POST", "/v1/recipients", person).status == 201
        later = {"to": "eve@example.com", "template": "welcome", "variables": {"name": "Eve"}, "scheduled_for": in_a_day()}
        assert self.plain("POST", "/v1/notifications", later).status == 202

    # ---- one after the other ----

    def values(self, operation):
        found = {name: in_a_day() if value == TOMORROW else value for name, value in (operation.try_ or {}).get("with", {}).items()}
        for name, way in (operation.try_ or {}).get("from", {}).items():
            source, _, rest = way.partition(".")
            found[name] = member(self.answers[source].body, rest)
            assert found[name] is not None, f"{source} was answered {self.answers[source].raw[:300]}, which has no {rest}"
        return found

    def headers(self, operation):
        if operation.scope == "none":
            return {"Accept": "application/json"}
        if operation.scope == "inbox":
            return {"Authorization": f"Bearer {self.answers['createInboxToken'].body['token']}"}
        if operation.scope == OPERATOR:
            return {"Authorization": f"Bearer {self.pipeline.operator_key}", "Stentor-Tenant": TENANT}
        return {"Authorization": f"Bearer {self.key}"}

    def send(self, operation):
        example = self.examples[operation.id] = Example(operation, self.values(operation))
        headers = {**example.headers(), **self.headers(operation)}
        self.sent[operation.id] = (operation.method, example.path(), example.body(), headers)
        return openapi.call(self.pipeline.api_port, *self.sent[operation.id])

    def repeat(self, operation):
        """The same request once more, with the same Idempotency-Key."""
        return openapi.call(self.pipeline.api_port, *self.sent[operation.id])

    def run(self, operation):
        wanted = (operation.try_ or {}).get("until", {})
        end = time.monotonic() + UNTIL_S * PATIENCE
        answer = self.send(operation)
        while not all(is_there(answer.body, way, value) for way, value in wanted.items()) and time.monotonic() < end:
            time.sleep(0.1)
            answer = self.send(operation)
        self.answers[operation.id] = answer
        missing = [way for way, value in wanted.items() if not is_there(answer.body, way, value)]
        assert not missing, f"{operation.id}: {missing} in {answer.raw[:500]}"
        return answer


def in_a_day():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))


def is_there(body, way, value):
    found = member(body, way)
    return found is not None if value is True else found == value


def fault_of(operation, answer):
    """Why the answer is not one that the document describes; empty: it is."""
    wanted = (operation.try_ or {}).get("status", operation.good_status())
    if answer.status != wanted:
        return f"{answer.status} in the place of {wanted}: {answer.raw[:500]}"
    content = operation.response(answer.status).get("content", {})
    if not content:
        return "" if answer.raw == b"" else f"a body: {answer.raw[:200]}"
    if answer.type not in content:
        return f"{answer.type} is none of {list(content)}"
    value = answer.body if openapi.is_json(answer.type) else answer.raw.decode()
    return "\n".join(openapi.faults(content[answer.type]["schema"], value))
