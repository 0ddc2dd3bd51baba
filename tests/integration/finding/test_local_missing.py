# SPDX-License-Identifier: Apache-2.0
"""deploy/local/up makes three mails that do not arrive: each ends as it says, over the mailbox of `up`, and `stentor why` names the reason."""
import datetime
import http.client
import json
import os
import subprocess

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, HOME, wait_until

LOCAL = HOME / "deploy" / "local"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="giving folders to users needs root")


class Local:
    """A pipeline of the test's whose mails go to the mailbox of an `up`."""

    def __init__(self):
        self.pipeline = Pipeline()
        self.data = self.pipeline.folder / "local"
        self.ids = self.data / "etc/demo-missing"

    def lib(self, words):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f'. "{LOCAL}/lib.sh"; user_of() {{ echo daemon; }}; {words}'], cwd=HOME,
                              env={"PATH": os.environ["PATH"], "STENTOR_DATA": str(self.data)}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self):
        port = self.lib(f'make_folders; touch "$DATA/etc/ports"; prepare_mailbox "{LOCAL}/stentor_mailbox.py"; start_mailbox; echo "$smtp_port"').split()[-1]
        self.pipeline.extra = {"STENTOR_SMTP_URL": f"smtp://127.0.0.1:{port}", "STENTOR_RENDERER_PUBLIC_URL": f"http://127.0.0.1:{self.pipeline.api_port}"}
        self.pipeline.start()
        return self

    def stop(self):
        try:
            self.lib("stop mailbox aiosmtpd")
        finally:
            self.pipeline.stop()

    def make(self):
        """{what: id} of what the script makes, or has made."""
        done = subprocess.run([LOCAL / "demo/missing", self.ids, BIN / "stentor"], env={**self.pipeline.cli_environment(), "PATH": os.environ["PATH"]},
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return dict(line.split("=") for line in self.ids.read_text().split())

    def http(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.pipeline.api_port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            return answer.status, dict(answer.getheaders())
        finally:
            connection.close()

    def mails(self):
        return [path.read_text() for path in (self.data / "mail/new").iterdir()]


@pytest.fixture(name="local", scope="module")
def _local():
    local = Local()
    try:
        yield local.start()
    finally:
        local.stop()


@pytest.fixture(name="made", scope="module")
def _made(local):
    # Alice is there before, as `up` made her for the inbox.
    assert local.pipeline.post({"identity_type": "user", "identity_id": "alice", "addresses": [{"channel": "inapp", "address": "alice"}]}, "/v1/recipients")[0] == 201
    return local.make()


REASONS = {
    "suppressed": ("suppressed", "It was not sent, because earlier mail to this address came back. Check the address"),
    "deferred": ("scheduled", "It has not been sent yet, because it is night for the recipient; it goes out at "),
    "failed": ("failed", "It did not arrive, because the mail server says that the address does not exist. Check the address"),
}


@pytest.mark.parametrize("what", REASONS)
def test_each_of_the_three_ends_as_up_says_and_why_names_the_reason(local, made, what):
    status, summary = REASONS[what]
    assert set(made) == set(REASONS)
    assert local.pipeline.status(made[what])["status"] == status
    said = json.loads(local.pipeline.cli("why", made[what], "--json"))
    assert said["status"] == status and said["summary"].startswith(summary), said["summary"]
    assert summary in local.pipeline.cli("why", made[what])
    assert what != "failed" or "The last answer was: 550 " in said["summary"] and "there is no such mailbox here" in said["summary"]
    assert not any(made[what] in mail for mail in local.mails())


def test_the_newsletter_waits_for_hours_whatever_the_time_of_day(local, made):
    text = (LOCAL / "demo/missing").read_text()
    function = text[text.index("place_at_night()"):text.index("# A recipient that was put")]
    for hour in range(24):
        done = subprocess.run(["bash", "-euc", f'{function} date() {{ command date -d "2026-11-27 {hour}:59 UTC" "$@"; }}; zone=$(place_at_night); TZ=$zone date +%H'],
                              capture_output=True, text=True, timeout=20, check=True)
        assert done.stdout.split() in (["22"], ["23"], ["00"]), hour
    row, = [row for row in json.loads(local.pipeline.cli("scheduled", "list", "--reason", "quiet", "--json")) if row["id"] == made["deferred"]]
    left = datetime.datetime.fromisoformat(row["due_at"].replace("Z", "+00:00")) - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(hours=5) < left < datetime.timedelta(hours=9), row


def test_the_same_recipients_get_other_mails(local, made):
    """Bob's and Carol's addresses alone are bad; what Alice gets by day and night is not marketing."""
    sent = local.pipeline.send("alice@example.com")
    assert local.pipeline.status(sent, wait="sent")["status"] == "sent"
    wait_until(lambda: any(sent in mail for mail in local.mails()), 10, "the mail in the mailbox of up")


def test_up_ends_with_the_three_and_a_link_to_the_console_where_there_is_one(local, made, tmp_path):
    """The function of `up`, and what it prints."""
    text = (LOCAL / "up").read_text()
    function = text[text.index("console_link() {"):text.index("# ---- an old month")].strip()
    settings = local.pipeline.cli_environment()
    (tmp_path / "cli.conf").write_text("".join(f"{name}={settings[name]}\n" for name in ("STENTOR_API_URL", "STENTOR_API_KEY")))
    link = function
    words = f'stentor="{BIN}/stentor"; cli_conf="{tmp_path}/cli.conf"; api_port={local.pipeline.api_port}; {link}; console_link'
    said = subprocess.run(["bash", "-euo", "pipefail", "-c", words], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    there = local.http("/console/")[0] == 200
    assert bool(said) == there
    if there:
        status, headers = local.http(said.partition("#")[0].removeprefix(f"http://127.0.0.1:{local.pipeline.api_port}"))
        assert status == 200 and headers["Content-Type"].startswith("text/html"), "the page that asks"
    end = text.split('progress "done"', 1)[1]
    assert all(f"stentor why $(missing {what})" in end and f'"{what}":"%s"' in end for what in made)
    assert 'echo "The console:     $console"' in end and "stentor console login" in end and '"console":"%s"' in end


def test_running_it_again_makes_nothing_new(local, made):
    before = local.pipeline.history_count()
    assert local.make() == made
    assert local.pipeline.history_count() == before


def test_a_newsletter_that_no_longer_waits_gets_a_successor(local, made):
    """Run on another day: the one before has gone out, so that nothing of it is left to find."""
    local.pipeline.cli("cancel", made["deferred"])
    wait_until(lambda: local.pipeline.status(made["deferred"])["status"] == "suppressed", 20, "the newsletter that was cancelled")
    again = local.make()
    assert again["deferred"] != made["deferred"] and local.pipeline.status(again["deferred"])["status"] == "scheduled"
    assert {**again, "deferred": ""} == {**made, "deferred": ""}
