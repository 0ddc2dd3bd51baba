# SPDX-License-Identifier: Apache-2.0
"""Story 9, projections made again from the log while mails are sent: history and people, without a difference and without a refused request."""
import threading

from tests.harness.processes import wait_until
from tests.harness.stories import new_address, story


class Load(threading.Thread):
    """About 20 mails a second."""

    def __init__(self, user):
        super().__init__(daemon=True)
        self.user, self.ids, self.ending = user, [], threading.Event()

    def run(self):
        while not self.ending.wait(0.25):
            bodies = [{"to": f"reader{number}@example.com", "template": "welcome", "variables": {"name": "R"}} for number in range(5)]
            status, answer = self.user.api("POST", "/v1/notifications", bodies)
            assert status == 202, answer  # none is refused meanwhile
            self.ids += [item["id"] for item in answer["notifications"]]

    def stop(self):
        self.ending.set()
        self.join()
        return self.ids


def rebuild(user, *words):
    return user.run("rebuild", *words, admin=True)


def test_projections_made_again():
    with story("digest-flusher") as user:
        guests = [user.run("recipient", "put", "--identity", f"guest:g{number}", "--email", new_address("guest"))["id"] for number in range(3)]
        user.run("recipient", "prefs", guests[0], "--set", "marketing=off")
        user.run("recipient", "consent", guests[1], "--grant", "marketing")
        load = Load(user)
        load.start()
        wait_until(lambda: len(load.ids) >= 50, 30, "some load")
        swapped = rebuild(user, "history")
        assert swapped["swapped"] and swapped["events"] > 0 and swapped["unreadable"] == 0
        compared = rebuild(user, "history", "--dry-run")
        assert (compared["differences"], compared["shown"], compared["swapped"]) == (0, [], False)
        for projection in ("people", "clock"):
            done = rebuild(user, projection)
            assert (done["differences"], done["unreadable"]) == (0, 0) and done["events"] == 5, done
        ids = load.stop()
        assert user.status(ids[0], wait="sent")["status"] == "sent"
        assert user.status(ids[-1], wait="sent")["status"] == "sent"
        wait_until(lambda: len(user.mails("reader")) == len(ids), 60, "each mail, once")
        assert user.run("recipient", "get", "--identity", "guest:g2")[0]["id"] == guests[2]
        refused = user.refused("rebuild", "nothing")
        assert "history" in refused[1] and "people" in refused[1]
