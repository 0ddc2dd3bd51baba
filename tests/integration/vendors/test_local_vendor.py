# SPDX-License-Identifier: Apache-2.0
"""deploy/local shows what happens when a vendor fails: the functions of lib.sh put a double of a vendor into a pipeline, and the commands of
deploy/local/README.md, as they stand there, switch it off and on and show where the mails go."""
import json
import os
import re
import subprocess

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, HOME, wait_until

LOCAL = HOME / "deploy" / "local"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="giving folders to users needs root")


class Local:
    """A pipeline of the test's, and beside it the folder of an `up` in which only the vendor double runs."""

    def __init__(self):
        self.pipeline = Pipeline()
        self.data = self.pipeline.folder / "local"
        self.pipeline.extra = {"STENTOR_CREDENTIAL_DIRS": str(self.data / "etc/credentials"), "STENTOR_VENDOR_ADDRESSES": "loopback"}

    def lib(self, words):
        return self.bash(f'. "{LOCAL}/lib.sh"; user_of() {{ echo daemon; }}; {words}')

    def bash(self, words):
        """As in a shell of the operator's, in the root of the source."""
        environment = {**self.pipeline.cli_environment(), "PATH": f"{BIN}:{os.environ['PATH']}", "STENTOR_DATA": str(self.data),
                       "STENTOR_CREDENTIAL_DIRS": str(self.data / "etc/credentials"), "STENTOR_VENDOR_ADDRESSES": "loopback"}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", words], cwd=HOME, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self):
        self.pipeline.start()
        self.lib(f'make_folders; touch "$DATA/etc/ports"; prepare_vendor "{LOCAL}/vendor-double"; start_vendor; put_vendor stentor')
        wait_until(lambda: self.pipeline.services["dispatcher"].metric("stentor_dispatcher_routes") >= 1, 10, "the route in the dispatcher")
        return self

    def stop(self):
        try:
            self.lib("stop vendor vendor-double")
        finally:
            self.pipeline.stop()

    def sent(self, words):
        """The notifications that a command of the document sends, once they are sent: id and its attempts as (vendor, outcome)."""
        found = re.findall(r"ntf_\w+", self.bash(words))
        attempts = {each: self.pipeline.status(each, wait="sent")["attempts"] for each in found}
        return {each: [(attempt["vendor"], attempt["outcome"]) for attempt in all_] for each, all_ in attempts.items()}

    def mails(self):
        return {path.stem: json.loads(path.read_text()) for path in (self.data / "vendor/mails").glob("*.json")}


@pytest.fixture(name="local", scope="module")
def _local():
    local = Local()
    try:
        yield local.start()
    finally:
        local.stop()


def commands():
    text = (LOCAL / "README.md").read_text().split("## When a vendor fails", 1)[1].split("\n## ", 1)[0]
    found = [line.removeprefix("$ ") for line in re.findall(r"^\$ .*$", text, re.M)]
    assert len(found) == 7, found
    return found


def row(listed):
    """Status and reason of postmark in what `stentor channel list` prints."""
    return re.search(r"^email +postmark +tenant +(\w+) +demo *(?:\S+Z (.*))?$", listed, re.M).groups()


def test_the_commands_of_the_document_show_a_fallback_and_the_way_back(local):
    send, switch_off, send_five, status, channels, switch_on, send_until_active = commands()
    (first, attempts), = local.sent(send).items()
    assert attempts == [("postmark", "accepted")] and row(local.bash(channels))[0] == "active"
    mail = local.mails()[f"{first}-1"]
    assert mail["To"] == "bob@vendor.test" and mail["Metadata"]["nid"] == first and "Welcome" in mail["TextBody"] + mail["HtmlBody"]

    assert local.bash(switch_off) == "off: it answers 503\n"
    five = local.sent(send_five)
    assert len(five) == 5 and all(attempts[-1] == ("smtp", "accepted") for attempts in five.values())
    first_of_five = next(iter(five))
    assert five[first_of_five] == [("postmark", "rejected_retryable"), ("smtp", "accepted")]
    assert all(len(local.pipeline.mailbox.for_notification(each)) == 1 for each in five) and len(local.mails()) == 1
    shown = local.bash(status.replace("ntf_...", first_of_five))
    first_attempt = "attempt 1 via postmark: rejected_retryable, 503 100 The Postmark API is offline for maintenance."
    assert re.search(rf"\n  {re.escape(first_attempt)}\n  attempt 2 via smtp: accepted, 250", shown), shown
    assert first_attempt in (LOCAL / "README.md").read_text()
    wait_until(lambda: row(local.bash(channels))[0] == "down", 15, "a vendor that is down")
    assert row(local.bash(channels))[1].startswith("503 100 The Postmark API is offline")
    doctor = json.loads(local.pipeline.run_cli("doctor", "--json").stdout)["checks"]
    said, = [check["text"] for check in doctor if check["check"] == "channel email"]
    assert "postmark with the credential demo of 'acme' fails since" in said and said.endswith("(HINT: stentor channel test postmark demo)"), said

    assert local.bash(switch_on) == f"on: it takes mails, and keeps them in {local.data}/vendor/mails\n"
    local.bash(send_until_active)
    assert row(local.bash(channels)) == ("active", None)
    assert local.sent(send).popitem()[1] == [("postmark", "accepted")]


def test_up_prints_the_same_commands():
    said = (LOCAL / "up").read_text().split("cat <<TXT", 1)[1]
    _, *shown, _, _ = commands()
    assert len(shown) == 4 and all(command in said for command in shown)


def test_the_credential_is_accepted_and_another_token_is_not(local):
    assert json.loads(local.bash("stentor channel test postmark demo --json"))["state"] == "accepted"
    secret = local.data / "etc/credentials/postmark-demo"
    before = secret.read_text()
    try:
        secret.write_text("another\n")
        done = local.pipeline.run_cli("channel", "test", "postmark", "demo", STENTOR_CREDENTIAL_DIRS=local.data / "etc/credentials",
                                      STENTOR_VENDOR_ADDRESSES="loopback", merged=True)
        assert done.returncode == 1 and "refused" in done.stdout and "401" in done.stdout
    finally:
        secret.write_text(before)


def test_what_an_operator_changed_stays_but_for_the_port(local):
    local.lib("vendor_port=$(cat $DATA/etc/demo-vendor); stentor route delete vendor-test; put_vendor stentor")
    assert local.pipeline.run_cli("route", "show", "vendor-test").returncode == 3
    local.lib("vendor_port=1; put_vendor stentor")
    shown = json.loads(local.pipeline.cli("credential", "show", "postmark", "demo", "--json"))
    assert shown["settings"]["base_url"] == "http://127.0.0.1:1" and shown["state"] == "active"
    assert local.pipeline.run_cli("route", "show", "vendor-test").returncode == 3, "put again"


@pytest.mark.parametrize("words, status, says", [("of", 2, "unknown word 'of' (on, off, --help)"), ("off", 1, "it does not run: deploy/local/up starts it")])
def test_a_wrong_word_and_a_vendor_that_does_not_run_are_said(tmp_path, words, status, says):
    done = subprocess.run([LOCAL / "vendor", words], capture_output=True, text=True, timeout=20, env={"PATH": os.environ["PATH"], "STENTOR_DATA": str(tmp_path)})
    assert done.returncode == status and says in done.stderr and not (tmp_path / "vendor").exists()
