# SPDX-License-Identifier: Apache-2.0
"""What a tenant does with its webhooks, with the process that posts them: made over the API, delivered and checked by a package that is not
ours, listed, posted again; a new secret; an endpoint that failed, and what it missed."""
import http.client
import json
import re

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until
from tests.harness.webhooks import Endpoint, Verifier

OPTIONS = {"STENTOR_WEBHOOK_LADDER": "1", "STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_WEBHOOK_CALL_MS": "2500"}


@pytest.fixture(scope="module")
def pipeline():
    running = Pipeline(OPTIONS).start(["ingest", "gateway", "renderer", "dispatcher", "digest-flusher", "webhook"])
    yield running
    running.stop()


@pytest.fixture(scope="module")
def verifier():
    package = Verifier()
    yield package
    package.close()


class Hook:
    """A subscription that a caller has made over the API, and its endpoint."""

    def __init__(self, pipeline, verifier, **fields):
        self.pipeline = pipeline
        self.endpoint = Endpoint(verifier)
        made = self.ask("POST", "", {"name": "shop", "target_url": self.endpoint.url, **fields})
        self.id, self.endpoint.secret = made["id"], made["secret"]

    def ask(self, method, path, body=None):
        """The answer; the delivering process has the change then."""
        connection = http.client.HTTPConnection("127.0.0.1", self.pipeline.api_port, timeout=30)
        connection.request(method, "/v1/subscriptions" + path, json.dumps(body) if body is not None else None, {"Authorization": f"Bearer {self.pipeline.key}"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status < 300, text
        if answer.headers["ETag"] and method != "GET":
            self.pipeline.wait_config(int(answer.headers["ETag"].strip('"')), "webhook")
        return json.loads(text) if text else None

    def cli(self, command, *words):
        return json.loads(self.pipeline.cli("webhook", command, *words, "--json"))

    def posts_of(self, notification, count):
        wait_until(lambda: len(self.endpoint.of(notification)) >= count, 30, f"{count} posts about {notification}")
        return self.endpoint.of(notification)

    def delivery(self, state, *words):
        """The only one that is listed so, once it is."""
        listed = wait_until(lambda: self.cli("deliveries", self.id, "--state", state, *words), 30, f"a delivery that is {state}")
        assert len(listed) == 1, listed
        return listed[0]

    def end(self):
        self.ask("DELETE", "/" + self.id)
        self.endpoint.close()


@pytest.fixture
def make(pipeline, verifier):
    made = []

    def new(**fields):
        made.append(Hook(pipeline, verifier, **fields))
        return made[-1]
    yield new
    for hook in made:
        hook.end()


def test_made_sent_delivered_listed_and_posted_again(pipeline, make):
    hook = make(events=["notification.sent"])
    notification = pipeline.send()
    post, = hook.posts_of(notification, 1)
    assert post.event["type"] == "notification.sent" and hook.endpoint.refused == []

    delivery = hook.delivery("delivered", "--event", "notification.sent", "--notification", notification)
    assert (delivery["webhook_id"], delivery["attempts"], delivery["last_attempt"]["status_code"]) == (post.id, 1, 200)
    whole = hook.cli("delivery", delivery["id"])
    assert whole["payload"] == post.event and whole["last_attempt"]["response"] == "ok"
    assert pipeline.cli("webhook", "deliveries", hook.id).split()[:7] == ["ID", "STATE", "EVENT", "CREATED", "ATTEMPTS", "STATUS", "ERROR"]
    assert re.search(rf"^{delivery['id']} +delivered +notification\.sent", pipeline.cli("webhook", "deliveries", hook.id), re.M)

    assert hook.cli("replay", delivery["id"]) == {"id": delivery["id"], "state": "queued"}
    first, again = hook.posts_of(notification, 2)
    assert (again.id, again.body) == (first.id, first.body) and hook.endpoint.refused == []
    assert hook.delivery("delivered", "--notification", notification)["attempts"] == 1, "of this turn"


def test_a_test_event_arrives_whatever_the_subscription_asks_for(make):
    hook = make(events=["notification.bounced"], channels=["sms"])
    queued = hook.cli("test", hook.id)
    post, = hook.posts_of(hook.id, 1)
    assert post.event["type"] == "webhook.test" and hook.endpoint.refused == []
    delivery = hook.delivery("delivered", "--event", "webhook.test")
    assert (delivery["id"], delivery["webhook_id"]) == (queued["id"], post.id) and "notification_id" not in delivery


def test_receivers_change_to_a_new_secret_while_both_sign(pipeline, make):
    hook = make(events=["notification.sent"])
    rotated = hook.ask("POST", f"/{hook.id}/rotate-secret", {"overlap_s": 3600})
    for secret in (hook.endpoint.secret, rotated["secret"]):
        hook.endpoint.secret = secret
        hook.posts_of(pipeline.send(), 1)
    assert hook.endpoint.refused == []
    at_once = hook.ask("POST", f"/{hook.id}/rotate-secret", {"overlap_s": 0})
    hook.cli("test", hook.id)
    wait_until(lambda: hook.endpoint.refused, 20, "a post that the old secret does not verify")
    hook.endpoint.secret = at_once["secret"]
    hook.posts_of(pipeline.send(), 1)


def test_what_an_endpoint_missed_while_it_failed_is_posted_when_it_is_back(pipeline, make):
    hook = make(events=["notification.sent"], disable_after=2)
    hook.endpoint.lasting = (500, {})
    missed = pipeline.send()
    failing = wait_until(lambda: (shown := hook.ask("GET", f"/{hook.id}"))["state"] == "failing" and shown, 30, "the endpoint being turned off")
    assert failing["state_reason"] and failing["state_changed_at"]
    failed = hook.delivery("failed")
    assert failed["last_attempt"]["error"] == "status 500" and failed["notification_id"] == missed
    refused = pipeline.run_cli("webhook", "replay", failed["id"])
    assert refused.returncode == 1 and "failing" in refused.stderr and "enable" in refused.stderr
    # The receiver is mended, and its operator says so.
    hook.endpoint.lasting = (200, {})
    before = len(hook.endpoint.of(missed))
    assert hook.ask("POST", f"/{hook.id}/enable")["state"] == "active"
    assert hook.cli("recover", hook.id, "--since", "1h") == {"replayed": 1}
    assert len(hook.posts_of(missed, before + 1)) == before + 1 and hook.delivery("delivered")["id"] == failed["id"]
    assert hook.cli("recover", hook.id, "--since", "1h") == {"replayed": 0}


def test_one_that_waits_for_its_next_try_goes_at_once(pipeline, make):
    """Its turn on DEFERRED comes later, and is an old one: nothing is posted twice."""
    hook = make(events=["notification.sent"], disable_after=100)
    hook.endpoint.answers = [(503, {"Retry-After": "4"})]
    notification = pipeline.send()
    waiting = hook.delivery("waiting")
    assert waiting["notification_id"] == notification and waiting["next_attempt_at"]
    hook.cli("replay", waiting["id"])
    hook.posts_of(notification, 2)
    delivered = hook.delivery("delivered")
    assert delivered["attempts"] == 2, "it goes on counting"
    due = "SELECT count(*) FROM digest_flusher.due_work"
    wait_until(lambda: pipeline.postgres.query(due) == [(0,)], 30, "its turn of before coming by")
    hook.cli("test", hook.id)  # behind it on HOOK
    hook.posts_of(hook.id, 1)
    assert len(hook.endpoint.of(notification)) == 2


def test_nothing_is_posted_to_one_that_is_disabled(pipeline, make):
    hook, other = make(events=["notification.sent"]), make(events=["notification.sent"])
    hook.ask("POST", f"/{hook.id}/disable", {"reason": "moving"})
    notification = pipeline.send()
    other.posts_of(notification, 1)
    assert hook.endpoint.of(notification) == [] and hook.cli("deliveries", hook.id) == []
    hook.ask("POST", f"/{hook.id}/enable")
    hook.posts_of(pipeline.send(), 1)
