# SPDX-License-Identifier: Apache-2.0
"""GET /v1/inbox/stream: the badge of one recipient, in every tab that is open, by a token."""
import time
import uuid

import pytest

from tests.harness.processes import wait_until
from tests.harness.clients.sse import EventStream
from tests.integration.inbox.test_inapp import Client, counts, new_user, signed_token
from tests.integration.sending.test_templates import locale, publish

PATH = "/v1/inbox/stream"
TEMPLATE = "live-hello"


@pytest.fixture(scope="module", autouse=True)
def template(pipeline):
    publish(pipeline, TEMPLATE, channel="inapp", category="transactional",
            locales=[locale("en", title="Hello {{name}}", text="You have {{count}} orders", data='{"url": "https://shop.example/orders"}')])


def send(pipeline, to):
    status, _, answer = pipeline.post({"channel": "inapp", "template": TEMPLATE, "to": to, "variables": {"name": "Alice", "count": 3}})
    assert status == 202, answer
    return answer["id"]


def tab(pipeline, client, **options):
    stream = EventStream(pipeline.api_port, PATH, client.token, **options)
    stream.first = stream.next("open").json
    return stream


def test_a_new_item_and_what_is_read_show_in_every_tab(pipeline):
    user = new_user()
    client = Client(pipeline, to=user)
    one, two = tab(pipeline, client), tab(pipeline, client)
    stranger = tab(pipeline, Client(pipeline, to=new_user()))
    assert counts(0, 0, 0, one.first) and one.first["missed"] is False and one.first["version"] == 0
    item = send(pipeline, to=user)
    for stream in (one, two):
        event = stream.next("counts")
        said = event.json
        assert counts(1, 1, 1, said) and said["items"] == [item] and said["since"] == 0, said
        assert event.id == str(said["version"]) and said["by_category"]["transactional"]["unread"] == 1, said
        assert [shown["id"] for shown in client.items()] == [item]  # what an event names is there
    after = client.do(f"/{item}/read")  # in the first tab
    for stream in (one, two):
        wait_until(lambda: stream.events[-1].json["version"] >= after["version"], 10, "the change in each tab")
        assert counts(0, 0, 1, stream.events[-1].json) and stream.events[-1].json["items"] == [], stream.events
        versions = [event.json["version"] for event in stream.events]  # a chain without a gap
        assert [event.json["since"] for event in stream.events] == [0, *versions[:-1]] and versions == sorted(set(versions)), stream.events
    assert stranger.named("counts") == []
    for stream in (one, two, stranger):
        stream.close()


def test_who_comes_back_is_told_what_was_missed(pipeline):
    user = new_user()
    client = Client(pipeline, to=user)
    stream = tab(pipeline, client)
    send(pipeline, to=user)
    version = stream.next("counts").json["version"]
    stream.reopen()
    again = stream.next("open").json
    assert again["missed"] is False and again["version"] == version == again["since"], again
    stream.close()
    send(pipeline, to=user)
    client.wait_items(2)
    stream.reopen()
    again = stream.next("open").json
    assert again["missed"] is True and again["since"] == version < again["version"] and counts(2, 2, 2, again), again
    stream.close()


def test_the_end_of_the_token_ends_the_stream_and_says_so(pipeline):
    ends = int(time.time()) + 4
    stream = EventStream(pipeline.api_port, PATH, signed_token(pipeline, new_user(), ends))
    assert stream.next("end", timeout=60).json == {"reason": "token-expired"}
    assert time.time() >= ends
    stream.wait_end()
    stream.close()


def test_only_a_token_opens_it_and_only_its_own_inbox(pipeline):
    def refused(token, headers=None):
        status, _, answer = pipeline.post(b"", path=PATH, method="GET", headers={"Authorization": f"Bearer {token}", **(headers or {})})
        return status, answer
    client = Client(pipeline, to=new_user())
    assert refused(pipeline.key)[0] == 401 and refused("inb_x")[0] == 401
    status, answer = refused(client.token, {"Last-Event-ID": "abc"})
    assert (status, answer["field"]) == (400, "Last-Event-ID")
    assert pipeline.post({}, path=PATH, headers={"Authorization": f"Bearer {client.token}"})[0] == 405
    # The token opens nothing else that is live.
    assert pipeline.post(b"", path="/v1/live/status", method="GET", headers={"Authorization": f"Bearer {client.token}"})[0] == 401


def test_one_inbox_has_so_many_streams(pipeline):
    client = Client(pipeline, to=f"u-{uuid.uuid4().hex[:12]}")
    streams = [tab(pipeline, client) for _ in range(20)]
    status, _, answer = pipeline.post(b"", path=PATH, method="GET", headers={"Authorization": f"Bearer {client.token}"})
    assert status == 429 and answer["type"].endswith("too-many-streams"), answer
    streams.pop().close()
    def opens():
        try:
            streams.append(tab(pipeline, client))
            return True
        except AssertionError:
            return False
    wait_until(opens, 10, "the place of the one that went")
    for stream in streams:
        stream.close()
