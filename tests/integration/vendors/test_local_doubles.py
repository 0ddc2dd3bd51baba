# SPDX-License-Identifier: Apache-2.0
"""deploy/local shows what arrives on the other channels: the functions of lib.sh put its doubles into a pipeline, and their page shows an SMS, a push
and a signed webhook."""
import base64
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, HOME, SERVICES, wait_until

LOCAL = HOME / "deploy" / "local"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="giving folders to users needs root")


class Local:
    """A pipeline of the test's, and beside it the folder of an `up` in which only the doubles run."""

    def __init__(self):
        self.pipeline = Pipeline()
        self.data = self.pipeline.folder / "local"
        self.pipeline.extra = {
            "STENTOR_CREDENTIAL_DIRS": str(self.data / "etc/credentials"), "STENTOR_VENDOR_ADDRESSES": "loopback",
            "STENTOR_WEBHOOK_ADDRESSES": "loopback", "STENTOR_VENDOR_CA_FILE": str(self.data / "etc/vendor-authorities.pem"),
            "STENTOR_RENDERER_PUBLIC_URL": f"http://127.0.0.1:{self.pipeline.api_port}"}

    def bash(self, words):
        environment = {**self.pipeline.cli_environment(), "PATH": f"{BIN}:{os.environ['PATH']}", "STENTOR_DATA": str(self.data),
                       "STENTOR_CREDENTIAL_DIRS": str(self.data / "etc/credentials"), "STENTOR_VENDOR_ADDRESSES": "loopback"}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f'. "{LOCAL}/lib.sh"; user_of() {{ echo daemon; }}; {words}'], cwd=HOME, env=environment,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self):
        self.bash(f'mkdir -p "$DATA/etc"; make_folders; touch "$DATA/etc/ports"; prepare_doubles "{LOCAL}/doubles"; start_doubles')
        self.pipeline.start([*SERVICES, "webhook"])
        self.bash(f'doubles_port={self.port()}; put_doubles stentor')
        return self

    def port(self, name="doubles"):
        return dict(line.split("=") for line in (self.data / "etc/ports").read_text().split())[name]

    def send(self, *words):
        """The id, once ingest knows the credential."""
        sent = []

        def accepted():
            sent.extend(re.findall(r"ntf_\w+", self.pipeline.run_cli("send", *words).stdout))
            return sent != []
        wait_until(accepted, 20, "ingest knowing the credential")
        return sent[0]

    def page(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port()}/", timeout=20) as answer:
            return answer.read().decode()

    def arrived(self, kind):
        return [json.loads(path.read_text()) for path in sorted((self.data / "doubles" / kind).glob("*.json"))]

    def stop(self):
        try:
            self.bash("stop doubles doubles")
        finally:
            self.pipeline.stop()


@pytest.fixture(name="local", scope="module")
def _local():
    local = Local()
    try:
        yield local.start()
    finally:
        local.stop()


def test_an_sms_arrives_is_reported_as_delivered_and_stands_on_the_page(local):
    assert "nothing yet" in local.page()
    words = local.pipeline.folder / "code.txt"
    words.write_text("Your code is {{code}}")
    local.pipeline.cli("template", "put", "code", "--channel", "sms", "--text", words)
    sent = local.send("--channel", "sms", "--to", "+4915112345678", "--template", "code", "--var", "code=<b>4711</b>")
    assert local.pipeline.status(sent, wait="delivered")["status"] == "delivered"
    (sms,) = local.arrived("sms")
    assert (sms["to"], sms["what"]) == ("+4915112345678", "Your code is <b>4711</b>")
    assert "Your code is &lt;b&gt;4711&lt;/b&gt;" in local.page()


def test_a_push_arrives_decrypted_and_each_status_as_a_signed_webhook(local):
    words = local.pipeline.folder / "shipped.txt"
    words.write_text("Your order {{order}} is on its way.")
    local.pipeline.cli("template", "put", "shipped", "--channel", "push", "--title", "On its way", "--text", words)
    subscription = (local.data / "etc/browser-subscription.json").read_text().strip()
    sent = local.send("--channel", "push", "--to", subscription, "--template", "shipped", "--var", "order=A-17")
    assert local.pipeline.status(sent, wait="sent")["status"] == "sent"
    (push,) = local.arrived("push")
    assert push["what"] == "On its way: Your order A-17 is on its way." and push["content"]["nid"] == sent
    assert push["proof"] == "VAPID token of mailto:operator@stentor.test, decrypted"

    def webhooks():
        return [each["event"]["type"] for each in local.arrived("webhook") if each["event"]["data"].get("id") == sent]
    wait_until(lambda: "notification.sent" in webhooks(), 30, "the webhook of the status")
    assert "On its way" in local.page() and "notification.sent" in local.page()


def test_a_webhook_with_another_signature_is_not_shown(local):
    before = len(local.arrived("webhook"))
    request = urllib.request.Request(f"http://127.0.0.1:{local.port()}/webhook", b"{}", {
        "webhook-id": "evt", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=20)
    assert len(local.arrived("webhook")) >= before and all("signature of evt fits" != each["proof"] for each in local.arrived("webhook"))


def test_another_token_gets_401(local):
    request = urllib.request.Request(f"http://127.0.0.1:{local.port()}/2010-04-01/Accounts/AC00000000000000000000000000demo01/Messages.json", b"To=%2B49151",
                                     {"Authorization": "Basic " + base64.b64encode(b"AC00000000000000000000000000demo01:wrong").decode()})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=20)
