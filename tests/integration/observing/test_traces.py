# SPDX-License-Identifier: Apache-2.0
"""Traces: a notification is one trace from its request to what the vendor reports, also the caller's; and a collector that is slow, away or busy
costs the pipeline nothing."""
import base64
import json
import secrets
import uuid

import pytest

from tests.harness.collector import Collector, ulid_hex
from tests.harness.orders import Shop
from tests.harness.pipeline import TENANT
from tests.harness.processes import SERVICES, wait_until
from tests.harness.vendor_doubles import Fault
from tests.integration.sending.test_sms import World

PIPELINE = {"accept": "stentor-ingest", "gate": "stentor-ingest", "render": "stentor-renderer", "attempt 1": "stentor-dispatcher",
            "status delivered": "stentor-webhook-receiver"}


class Caller:
    """A span of a service that sends a notification."""

    def __init__(self, sampled=True):
        self.trace, self.span = secrets.token_hex(16), secrets.token_hex(8)
        self.header = f"00-{self.trace}-{self.span}-{'01' if sampled else '00'}"


@pytest.fixture(scope="module")
def collector():
    collector = Collector().start()
    yield collector
    collector.stop()


@pytest.fixture(scope="module")
def world(collector):
    # As operators write it: a name for all, and what the SDKs of other services read.
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + "/", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20secret",
                "OTEL_TRACES_SAMPLER": "parentbased_always_on", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test"}
    made = World(settings=settings, services=[*SERVICES, "order-saga"])
    try:
        words = made.pipeline.folder / "code.txt"
        words.write_text("{{name}}, your code is 4711.")
        made.cli("template", "put", "code", "--channel", "sms", "--text", words)
        made.twilio = made.vendor("twilio")
        yield made
    finally:
        made.close()


def send(world, caller=None, to=None, **fields):
    answer = {}

    def post():
        body = {"to": to or world.number(), "channel": "sms", "template": "code", "variables": {"name": "Alice"}, **fields}
        status, _, document = world.pipeline.post(body, headers={"traceparent": caller.header} if caller else {})
        answer.update(document)
        return status == 202
    wait_until(post, 20, f"the SMS being taken, not {answer}")
    return answer["id"]


def spans_of(collector, trace, *names):
    """By name, once all of these are there."""
    wait_until(lambda: {span.name for span in collector.spans(trace)} >= set(names), 30, f"spans {names} of {trace}, not {collector.spans(trace)}")
    return {span.name: span for span in collector.spans(trace)}


def delivered(world, notification):
    assert world.pipeline.status(notification, wait="sent")["status"] in ("sent", "delivered")
    world.reported(world.twilio, world.twilio.mails[-1], "delivered")


def check_tree(spans, root_parent):
    accept = spans["accept"]
    assert accept.parent == root_parent
    assert {name: spans[name].service for name in PIPELINE} == PIPELINE
    assert all(spans[name].parent == accept.id for name in PIPELINE if name != "accept"), spans
    assert all(span.end >= span.start >= accept.start for span in spans.values()), "in the order in which it happened"


def test_a_notification_is_one_trace_with_the_id_of_the_notification(world, collector):
    notification = send(world)
    delivered(world, notification)
    spans = spans_of(collector, ulid_hex(notification), *PIPELINE)
    check_tree(spans, root_parent="")
    attempt = spans["attempt 1"]
    assert attempt.attributes["server.address"] == "127.0.0.1" and attempt.attributes["stentor.vendor"] == "twilio"
    assert attempt.attributes["stentor.outcome"] == "sent" and attempt.attributes["stentor.attempt"] == 1
    assert spans["render"].attributes["stentor.template"] == "code" and spans["gate"].attributes["stentor.status"] == "queued"
    assert all(span.attributes["stentor.notification_id"] == notification for span in spans.values())
    assert not any("+49" in str(value) or "Alice" in str(value) for span in collector.spans() for value in span.attributes.values()), "nothing of a person"
    assert all(headers["x-key"] == "a secret" and headers["Content-Encoding"] == "gzip" for headers in collector.headers)


def test_a_callers_trace_goes_through_every_stage_and_the_vendor(world, collector):
    caller = Caller()
    notification = send(world, caller)
    delivered(world, notification)
    spans = spans_of(collector, caller.trace, *PIPELINE)
    check_tree(spans, root_parent=caller.span)
    (pointer,) = collector.spans(ulid_hex(notification))
    assert pointer.links == [(caller.trace, spans["accept"].id)], "from the notification's id to the caller's trace"
    query = json.dumps({"last_by_subj": f"ntf.status.{TENANT}.sms.delivered"}).encode()
    stored = json.loads(world.routing.nats.request("$JS.API.STREAM.MSG.GET.STATUS", query))["message"]
    header = f"traceparent: 00-{caller.trace}-{spans['accept'].id}-01"
    assert header in base64.b64decode(stored["hdrs"]).decode(), "a subscriber goes on with the same trace"


def test_a_batch_is_a_span_with_links_to_what_was_in_it(world, collector):
    callers = [Caller() for _ in range(5)]
    for caller in callers:
        send(world, caller)
    for caller in callers:
        spans_of(collector, caller.trace, "render")
    wanted = {caller.trace for caller in callers}
    linked = lambda: {trace for span in collector.spans() if span.name == "render batch" for trace, _ in span.links}  # noqa: E731
    wait_until(lambda: linked() >= wanted, 20, "links of the batches")
    batch = next(span for span in collector.spans() if span.name == "render batch")
    assert not batch.parent and batch.attributes["messaging.system"] == "nats" and batch.attributes["messaging.batch.message_count"] >= 1


def test_a_retry_is_in_the_trace_that_waited_with_it(world, collector):
    caller = Caller()
    world.twilio.behave(Fault.UNAVAILABLE, times=1)
    notification = send(world, caller)
    assert world.pipeline.status(notification, wait="sent", timeout=60)["status"] == "sent"
    spans = spans_of(collector, caller.trace, "accept", "attempt 1", "attempt 2")
    assert spans["attempt 1"].failed and spans["attempt 1"].attributes["stentor.code"].startswith("503")
    assert not spans["attempt 2"].failed and spans["attempt 2"].parent == spans["accept"].id
    assert spans["attempt 2"].attributes["stentor.waited_ms"] >= 0


def test_what_is_not_sampled_is_kept_when_it_fails(world, collector):
    quiet, failing = Caller(sampled=False), Caller(sampled=False)
    number = world.number()
    world.twilio.rejected.add(number)
    good = send(world, quiet)
    bad = send(world, failing, to=number)
    assert world.pipeline.status(good, wait="sent")["status"] == "sent"
    assert world.pipeline.status(bad, wait="failed")["status"] == "failed"
    spans = spans_of(collector, failing.trace, "accept", "attempt 1")
    assert set(spans) == {"accept", "attempt 1"} and spans["attempt 1"].parent == spans["accept"].id
    assert spans["attempt 1"].failed and "21211" in spans["attempt 1"].why and number not in spans["attempt 1"].why
    assert collector.spans(quiet.trace) == []


def test_every_service_speaks_openmetrics_and_a_bucket_names_a_trace(world, collector):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")  # python3-prometheus-client
    exemplars = {}
    for name, service in world.pipeline.services.items():
        text = service.get("/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3")[1]
        families = list(parser.text_string_to_metric_families(text))
        assert text.endswith("# EOF\n") and len(families) > 20, name
        exemplars.update({sample.name: sample.exemplar for family in families for sample in family.samples if sample.exemplar})
        assert "# EOF" not in service.get("/metrics")[1], "0.0.4 as before"
    seen = {span.trace for span in collector.spans()}
    for histogram in ("stentor_dispatcher_delivery_seconds_bucket", "stentor_dispatcher_send_seconds_bucket"):
        assert exemplars[histogram].labels["trace_id"] in seen


def test_an_order_is_a_trace_through_the_saga(world, collector):
    shop, caller = Shop(world.pipeline), Caller()
    try:
        order = shop.order()
        order.say("UserCheckedOut", {"orderId": order.id, "basketId": str(uuid.uuid4()), "email": order.email, "totalMoney": "59.90", "currency": "EUR"},
                  headers={"traceparent": caller.header})
        order.wait_state("Placed")
        span = spans_of(collector, caller.trace, "order UserCheckedOut")["order UserCheckedOut"]
        assert (span.service, span.parent) == ("stentor-order-saga", caller.span)
        assert span.attributes["stentor.order.to"] == "Placed"
        ((trace,),) = shop.query("SELECT DISTINCT traceparent FROM order_saga.outbox_message WHERE correlation_id = %s", order.id)
        assert trace == f"00-{caller.trace}-{span.id}-01", "what follows from the saga's messages is below its span"
        other = shop.order().check_out().wait_state("Placed")
        wait_until(lambda: any(span.attributes.get("stentor.order_id") == other.id for span in collector.spans()), 20, "an order without a caller's trace")
    finally:
        shop.close()


def test_opentelemetrys_own_code_reads_the_same(collector, world):
    spans = {}
    scopes = [scope for request in collector.read_by_opentelemetry() for of in request["resourceSpans"] for scope in of["scopeSpans"]]
    for span in (span for scope in scopes for span in scope["spans"]):
        spans.setdefault((span["traceId"], span["spanId"]), span)  # work that is done twice is one span
    ours = collector.spans()
    assert len(spans) == len(ours) > 10
    for span in ours:
        other = spans[span.trace, span.id]
        assert (other["name"], other.get("parentSpanId", "")) == (span.name, span.parent)
        assert (int(other["startTimeUnixNano"]), int(other["endTimeUnixNano"])) == (span.start, span.end)
        assert len(other.get("links", [])) == len(span.links) and (other.get("status", {}).get("code") == "STATUS_CODE_ERROR") == span.failed
        assert {pair["key"] for pair in other.get("attributes", [])} == set(span.attributes)


def test_a_collector_that_is_busy_or_silent_costs_the_pipeline_nothing(world, collector):
    dispatcher = world.pipeline.services["dispatcher"]
    failed = dispatcher.metric("stentor_trace_posts_failed_total")
    collector.answers = [503] * 30
    notification = send(world)
    assert world.pipeline.status(notification, wait="sent")["status"] == "sent"
    wait_until(lambda: dispatcher.metric("stentor_trace_posts_failed_total") > failed, 20, "a post that failed being counted")
    assert "the collector of traces does not take spans" in dispatcher.log.read_text()
    collector.answers = []
    spans_of(collector, ulid_hex(notification), "attempt 1")  # it was tried again
    collector.silent = True
    try:
        for _ in range(20):
            assert world.pipeline.status(send(world), wait="sent")["status"] == "sent"
        wait_until(lambda: dispatcher.metric("stentor_trace_spans_waiting") > 0, 20, "spans waiting for the collector")
        assert all(service.ready() for service in world.pipeline.services.values())
    finally:
        collector.silent = False
        collector.released.set()

