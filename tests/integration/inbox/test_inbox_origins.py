# SPDX-License-Identifier: Apache-2.0
"""A browser on another origin may call /v1/inbox where the operator has named that origin, and nothing else of the API."""
import http.client
import json

import pytest

from tests.harness.processes import free_port
from tests.integration.inbox.test_inapp import Client, new_user

APP = "https://app.example"
HOSTILE = ["https://evil.test", "null", "https://app.example.evil.test", "http://app.example", "https://app.example:444", "https://app.example/"]


class Gateway:
    def __init__(self, pipeline, **options):
        self.port = free_port()
        self.service = pipeline.service("gateway", "browsers", STENTOR_GATEWAY_PORT=self.port, **options).start()

    def call(self, method, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, None, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, dict(answer.getheaders()), json.loads(text) if text else None
        finally:
            connection.close()

    def ask(self, path, origin, method="POST"):
        return self.call("OPTIONS", path, Origin=origin, Access_Control_Request_Method=method,
                         Access_Control_Request_Headers="authorization,content-type")


@pytest.fixture(scope="module")
def gateway(pipeline):
    made = Gateway(pipeline, STENTOR_GATEWAY_INBOX_ORIGINS=f"{APP}, http://localhost:3000")
    yield made
    assert made.service.stop() == 0


def test_a_page_of_a_named_origin_may_call_the_inbox(pipeline, gateway):
    status, headers, _ = gateway.ask("/v1/inbox/read-all", APP)
    assert status == 204 and headers["Access-Control-Allow-Origin"] == APP and headers["Vary"] == "Origin", headers
    assert headers["Access-Control-Allow-Headers"] == "Authorization, Content-Type, Last-Event-ID" and "POST" in headers["Access-Control-Allow-Methods"]
    assert "Access-Control-Allow-Credentials" not in headers
    token = Client(pipeline, to=new_user()).token
    status, headers, counts = gateway.call("GET", "/v1/inbox/counts", Origin=APP, Authorization=f"Bearer {token}")
    assert (status, counts["unread"], headers["Access-Control-Allow-Origin"]) == (200, 0, APP)
    status, headers, _ = gateway.call("GET", "/v1/inbox/counts", Origin=APP, Authorization="Bearer inb_wrong")
    assert (status, headers["Access-Control-Allow-Origin"]) == (401, APP), "the page can read why"


@pytest.mark.parametrize("origin", HOSTILE)
def test_a_page_of_another_origin_may_not(pipeline, gateway, origin):
    status, headers, problem = gateway.ask("/v1/inbox/read-all", origin)
    assert (status, problem["type"], problem["field"]) == (403, "urn:stentor:problem:origin-not-allowed", "Origin")
    assert not [name for name in headers if name.startswith("Access-Control")] and headers["Vary"] == "Origin"
    token = Client(pipeline, to=new_user()).token
    status, headers, _ = gateway.call("GET", "/v1/inbox/counts", Origin=origin, Authorization=f"Bearer {token}")
    assert status == 200 and not [name for name in headers if name.startswith("Access-Control")], "the browser keeps it from the page"


@pytest.mark.parametrize("path", ["/v1/inbox/tokens", "/v1/notifications/ntf_01K00000000000000000000000", "/v1/recipients", "/v1/inboxes"])
def test_the_rest_of_the_api_is_no_page_s(gateway, path):
    status, headers, _ = gateway.ask(path, APP, method="GET")
    assert status != 204 and not [name for name in headers if name.startswith("Access-Control")], headers


def test_without_the_option_no_other_origin_may(pipeline):
    status, headers, _ = pipeline.post(b"", path="/v1/inbox", method="OPTIONS", headers={"Origin": APP, "Access-Control-Request-Method": "GET"})
    assert status == 403 and "Access-Control-Allow-Origin" not in headers


def test_a_list_with_a_mistake_ends_the_gateway_with_the_reason(pipeline):
    service = pipeline.service("gateway", "mistaken", STENTOR_GATEWAY_PORT=free_port(), STENTOR_GATEWAY_INBOX_ORIGINS="https://app.example/")
    service.start(wait=False)
    assert service.child.wait(60) != 0
    assert "STENTOR_GATEWAY_INBOX_ORIGINS" in service.tail() and "without a path" in service.tail()
