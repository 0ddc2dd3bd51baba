# SPDX-License-Identifier: Apache-2.0
"""Story 8, looking back: a replay through the dispatcher sends nothing twice, a shadow shows what a new text would change, an audit counts."""
import uuid

from tests.harness.processes import wait_until
from tests.harness.stories import now, stamp, story

COUNT = 51


def test_looking_back():
    with story() as user:
        begin = stamp(now())
        bodies = [{"to": f"reader{number}@example.com", "template": "welcome", "variables": {"name": f"Reader {number}"}} for number in range(COUNT)]
        status, answer = user.api("POST", "/v1/notifications", bodies, {"Idempotency-Key": uuid.uuid4().hex})
        assert status == 202 and len(answer["notifications"]) == COUNT
        wait_until(lambda: len(user.mails("reader")) == COUNT, 60, "the mails")
        ids = [item["id"] for item in answer["notifications"]]
        before = [user.status(notification, wait="sent")["timeline"] for notification in (ids[0], ids[-1])]

        done = user.run("replay", "--stream", "RENDERED_NORMAL", "--from-time", "1h", "--to-service", "dispatcher")
        assert done["complete"] and done["published"] == COUNT
        wait_until(user.idle, 30, "the copies being worked off")
        assert len(user.mails("reader")) == COUNT
        assert [user.status(notification)["timeline"] for notification in (ids[0], ids[-1])] == before

        page = user.pipeline.folder / "welcome.hbs"
        page.write_text("<h1>Good day, {{name}}!</h1>")
        shadow = user.run("replay", "--shadow", "--template", page, "--from-time", "1h")
        assert (shadow["requests"], shadow["different"], shadow["same"]) == (COUNT, COUNT, 0)
        group, = shadow["groups"]
        assert "+<h1>Good day, Reader" in group["diff"] and "-<h1>Welcome, Reader" in group["diff"]
        assert len(user.mails("reader")) == COUNT, "a shadow sends nothing"

        report = user.run("audit", "--since", begin, "--grace", 0)
        assert [report[name] for name in ("accepted", "sent", "in_flight", "lost", "doubled", "unknown")] == [COUNT, COUNT, 0, 0, 0, 0], report["findings"]
