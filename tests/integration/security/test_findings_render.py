# SPDX-License-Identifier: Apache-2.0
"""What a hostile review found in rendering: texts that cost a core for hours, numbers of a gigabyte, URLs that run scripts."""
import http.client
import json
import threading
import time

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until

PATIENCE_S = 1.0  # of another tenant while one is hostile


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline().start()
    yield running
    running.stop()


def ask(pipeline, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body).encode(),
                           {"Authorization": f"Bearer {pipeline.key}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def publish(pipeline, key, **parts):
    status, answer = ask(pipeline, "POST", "/v1/templates",
                         {"key": key, "version": "1.0.0", "locales": [{"locale": "en", "subject": "s", **parts}]})
    assert status == 201, answer
    wait_until(lambda: ask(pipeline, "GET", f"/v1/templates/{key}?version=1.0.0")[0] == 200, 10, "the version reaching ingest")


class Neighbour(threading.Thread):
    """Others' requests, one behind the other; `slowest` is the longest that one waited."""

    def __init__(self, pipeline):
        super().__init__(daemon=True)
        self.pipeline, self.slowest, self.count, self.over = pipeline, 0.0, 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            since = time.monotonic()
            assert ask(self.pipeline, "GET", "/v1/templates")[0] == 200
            self.slowest = max(self.slowest, time.monotonic() - since)
            self.count += 1
            time.sleep(0.01)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join(timeout=60)


def preview(pipeline, html, data):
    source = {"key": "x", "version": "1.0.0", "locales": [{"locale": "en", "subject": "s", "html": html}]}
    return ask(pipeline, "POST", "/v1/templates/preview", {"source": source, "data": data})


LENGTHS = "{{#each a}}" + "{{#if ../t.length}}{{/if}}" * 20 + "{{/each}}"


def test_finding_03_a_preview_of_a_number_of_a_gigabyte_is_refused_at_once(pipeline):
    with Neighbour(pipeline) as neighbour:
        for number in ("1e30000000", "1e99999999", "1e999999999"):
            for html in ("{{number n}}", "{{currency n 'EUR'}}", "{{plural n 'a' 'b'}}"):
                status, answer = preview(pipeline, html, {"n": number})
                assert status == 422 and "expected a number with an exponent from -30 to 30" in answer["detail"], answer
    assert neighbour.count > 0 and neighbour.slowest < PATIENCE_S


def test_finding_04_a_preview_of_long_texts_blocks_no_other_call(pipeline):
    with Neighbour(pipeline) as neighbour:
        status, answer = preview(pipeline, LENGTHS, {"a": list(range(250)), "t": "x" * 3_000_000})
        assert status == 422 and "at most 65536 are allowed" in answer["detail"], answer
        status, answer = preview(pipeline, LENGTHS, {"a": list(range(5000)), "t": "x" * 30_000})
        assert status == 422, answer
        assert "1000000 steps" in answer["detail"] or "100 ms of CPU time" in answer["detail"]
    assert neighbour.count > 0 and neighbour.slowest < PATIENCE_S


def test_finding_03_04_the_renderer_fails_such_mails_and_goes_on(pipeline):
    """Seconds to hours of a core each, and redelivered for ever."""
    publish(pipeline, "price", html="<p>{{currency total 'EUR'}}</p>")
    publish(pipeline, "lengths", html=LENGTHS)
    publish(pipeline, "calendar", html="{{#each a}}" + "{{#if (date 99999999999999 locale='en-u-ca-chinese')}}{{/if}}" * 5 + "{{/each}}")
    bad = [(pipeline.send(template="price", variables={"total": "1e99999999"}), "render_failed"),
           (pipeline.send(template="lengths", variables={"a": list(range(5000)), "t": "x" * 30_000}), "render_limit"),
           (pipeline.send(template="calendar", variables={"a": list(range(9000))}), "render_limit")]
    bad += [(pipeline.send(template="lengths", variables={"a": list(range(5000)), "t": "x" * 30_000}), "render_limit") for _ in range(10)]
    good = pipeline.send()
    assert pipeline.status(good, wait="sent", timeout=15)["status"] == "sent"
    for notification, code in bad:
        status = pipeline.status(notification, wait="failed")
        assert (status["status"], status["reason_code"]) == ("failed", code), status
        assert "1e99999999" not in status["reason"]


@pytest.mark.parametrize("path, body, field", [
    ("/v1/notifications", {"template": "welcome", "to": {"address": "a\u202eb@example.com"}}, "to"),
    ("/v1/notifications", {"template": "welcome", "to": {"address": "a@example.com", "name": "A\u2066b"}}, "to.name"),
    ("/v1/recipients", {"identity_type": "guest", "identity_id": "x", "name": "A\u200fb"}, "name"),
])
def test_finding_16_names_and_addresses_turn_no_direction(pipeline, path, body, field):
    status, answer = ask(pipeline, "POST", path, body)
    assert status == 422 and answer["field"] == field and "U+202E" in answer["detail"], answer


def test_finding_16_a_url_that_runs_is_replaced_and_counted(pipeline):
    publish(pipeline, "linked", html='<a href="{{url_of}}">x</a><img src="{{pic}}">', text="{{url_of}}")
    notification = pipeline.send(template="linked", variables={"url_of": "java\tscript:alert(1)", "pic": "https://a.test/b:c.png"})
    assert pipeline.status(notification, wait="sent")["status"] == "sent"
    html = pipeline.mailbox.for_notification(notification)[0].get_body(("html",)).get_content()
    assert '<a href="#stentor-unsafe-url">x</a><img src="https://a.test/b:c.png">' in html
    assert pipeline.services["renderer"].metric("stentor_renderer_unsafe_urls_total") == 1
    status, answer = preview(pipeline, '<a href="{{u}}">', {"u": "data:text/html,x"})
    assert status == 200 and answer["parts"]["html"] == '<a href="#stentor-unsafe-url">'
    assert any("#stentor-unsafe-url" in warning for warning in answer["warnings"])


@pytest.mark.parametrize("before, value, after", [
    ("<p style=\"background:url('", "javascript:x", "')\">"),
    ("<p style='color:", "red;behavior:url(/a)", "'>"),
    ("<style>p{a:", "expression(x)", " }</style>"),
    ("<meta http-equiv=refresh content='0;url=", "data:text/html,x", "'>"),
    ("<p onclick=\"go('", "');x('", "')\">"),
])
def test_finding_16_css_a_refresh_and_code_run_nothing_of_a_value(pipeline, before, value, after):
    status, answer = preview(pipeline, before + "{{u}}" + after, {"u": value})
    assert status == 200 and answer["parts"]["html"] == before + "#stentor-unsafe-url" + after, answer
    assert any("#stentor-unsafe-url" in warning for warning in answer["warnings"])
