# SPDX-License-Identifier: Apache-2.0
"""What a hostile review found in the API: borrowed texts after their owner, keys and tenants that may too much, answers that say too much."""
import http.client
import json

import pytest

from tests.harness.pipeline import Pipeline


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline().start()
    yield running
    running.stop()


def ask(pipeline, method, path, body=None, key=None):
    """(status, parsed body) of one request with the pipeline's key or another."""
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        raw = None if body is None else json.dumps(body).encode()
        connection.request(method, path, raw, {"Authorization": f"Bearer {key or pipeline.key}"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def test_finding_09_a_refused_preview_says_what_was_asked_for(pipeline):
    """The body was freed before the answer quoted it: heap addresses went out. A build with the address sanitizer ends here."""
    for key, version in (("nope", "1.0.0"), ("n" * 64, "v" * 64), ("welcome", "9.9.9")):
        status, problem = ask(pipeline, "POST", "/v1/templates/preview", {"template": key, "version": version})
        assert status == 404 and problem["detail"] == f"no template '{key}' version {version}", problem
    assert ask(pipeline, "POST", "/v1/templates/preview", {"template": "welcome", "data": {"name": "A"}})[0] == 200
