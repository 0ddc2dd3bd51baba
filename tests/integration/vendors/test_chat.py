# SPDX-License-Identifier: Apache-2.0
"""Chat services' incoming webhooks: a notification of channel webhook goes to the URL that its recipient gave away. The URL is a secret, so it
stands in no event, no log and no answer."""
import json

import pytest

from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import Double, Fault, chat, routing

CARDS = ('{"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "*{{name}}* is here"}}], '
         '"embeds": [{"title": "{{name}}"}], "card": {"type": "AdaptiveCard", "version": "1.4", "body": []}}')


class World:
    def __init__(self):
        self.pipeline = Pipeline()
        self.pipeline.extra = routing.options(self.pipeline, STENTOR_VENDOR_CALL_MS=2500, STENTOR_RETRY_LADDER="email=2,4;webhook=1,1",
                                              STENTOR_INGEST_CHANNELS="email")
        self.pipeline.start()
        self.routing = routing.Routing(self.pipeline)
        self.addresses = []

    def cli(self, *words):
        return self.pipeline.cli(*words)

    def vendor(self, name):
        double = Double(name).start()
        self.routing.doubles.append(double)
        self.cli("credential", "put", name, "main", "--set", f"base_url={double.base_url}")
        self.cli("credential", "promote", name, "main")
        return double

    def address(self, vendor, name="x"):
        self.addresses.append(chat.address(vendor, name))
        return self.addresses[-1]

    def post(self, to, template="alert", **fields):
        return self.pipeline.post({"to": to, "channel": "webhook", "template": template, "variables": {"name": "Alice"}, **fields})

    def accepted(self, to, **fields):
        """The id, once ingest and the dispatcher know the credential."""
        answers = []

        def taken():
            answers[:] = [self.post(to, **fields)]
            assert answers[0][0] in (202, 422), answers
            return answers[0][0] == 202
        wait_until(taken, 20, "the message being taken")
        return answers[0][2].get("notification_id") or answers[0][2]["id"]

    def sent(self, to, **fields):
        notification = self.accepted(to, **fields)
        assert self.pipeline.status(notification, wait="sent")["status"] == "sent"
        return notification

    def close(self):
        self.routing.close()
        self.pipeline.stop()


@pytest.fixture(scope="module")
def world():
    made = World()
    try:
        status, _, problem = made.post(made.address("slack"))
        assert (status, problem["field"]) == (422, "channel"), "an operator says which services are used"
        words = made.pipeline.folder / "alert.txt"
        words.write_text("{{name}}: <!channel> & \"tea\"")
        made.cli("template", "put", "alert", "--channel", "webhook", "--text", words)
        document = made.pipeline.folder / "card.json"
        document.write_text(json.dumps({"key": "card", "channel": "webhook", "locales": [{"locale": "en-US", "text": "{{name}}", "data": CARDS}]}))
        made.cli("template", "put", "card", "--from", document)
        made.slack, made.discord, made.teams = made.vendor("slack"), made.vendor("discord"), made.vendor("teams")
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("vendor", ["slack", "discord", "teams"])
def test_its_credential_has_no_secret_to_test(world, vendor):
    done = world.pipeline.run_cli("channel", "test", vendor, "main", "--json")
    shown = json.loads(done.stdout)
    assert done.returncode == 0 and (shown["vendor"], shown["state"]) == (vendor, "no secret"), done.stderr


def test_the_host_of_the_address_says_which_service_gets_it(world):
    for double, text in ((world.slack, 'Alice: &lt;!channel&gt; &amp; "tea"'), (world.discord, 'Alice: <!channel> & "tea"'), (world.teams, 'Alice: <!channel> & "tea"')):
        notification = world.sent(world.address(double.vendor))
        assert [mail.text for mail in double.mails] == [text]
        assert world.routing.rows(notification) == [(1, double.vendor, "sent", 0)]
    assert world.discord.mails[0].headers["allowed_mentions"] == {"parse": []}
    event = world.routing.types.NotificationStatus.FromString(
        world.routing.nats.message("STATUS", last_by_subj=f"ntf.status.{TENANT}.webhook.sent")[1])
    assert event.attempt.vendor == "teams"


def test_what_a_service_has_beside_text_comes_from_the_templates_data(world):
    for double, member in ((world.slack, "blocks"), (world.discord, "embeds"), (world.teams, "body")):
        world.sent(world.address(double.vendor), template="card")
        assert member in double.mails[-1].headers, double.mails[-1].headers
        assert not {"card", "blocks", "embeds"} - {member} & set(double.mails[-1].headers)
    assert world.slack.mails[-1].headers["blocks"][0]["text"]["text"] == "*Alice* is here"


def test_any_other_host_is_refused_with_those_that_are_possible(world):
    for url in ("https://hooks.example.com/services/T0/B0/x", "https://hooks.slack.com@evil.example/services/T0/B0/x", "https://169.254.169.254/services/x"):
        status, _, problem = world.post(url)
        assert (status, problem["field"]) == (422, "to")
        assert problem["detail"] == ("not an address of slack (hooks.slack.com/services), discord (discord.com/api/webhooks), teams "
                                     "(*.logic.azure.com, *.environment.api.powerplatform.com)"), problem
        assert url not in json.dumps(problem)


def test_an_endpoint_that_is_gone_is_suppressed_and_the_others_get_theirs(world):
    """A dead channel is its own, however often it is written to: the service is up for all others."""
    for double in (world.slack, world.discord, world.teams):
        dead = world.address(double.vendor, "dead")
        double.gone.add("/" + dead.split("/", 3)[3])
        notification = world.accepted(dead)
        shown = world.pipeline.status(notification, wait="failed")
        assert shown["attempts"][-1]["code"] == "404", shown
        before = len(double.requests)

        def is_suppressed():
            return world.post(dead)[2]["status"] == "suppressed"
        wait_until(is_suppressed, 20, f"the suppression of {double.vendor}'s dead URL")
        assert len(double.requests) <= before + 1
        world.sent(world.address(double.vendor))
    listed = world.cli("suppress", "list", "--channel", "webhook")
    assert listed.count("invalid_address") == 3, listed


def test_a_service_that_throttles_one_endpoint_holds_that_message_alone(world):
    world.discord.retry_after = 2
    world.discord.behave(Fault.THROTTLE, times=1)
    before = len(world.discord.requests)
    held = world.accepted(world.address("discord"))
    wait_until(lambda: len(world.discord.requests) == before + 1, 20, "the answer 429")
    world.sent(world.address("discord"))
    assert world.pipeline.status(held, wait="sent")["status"] == "sent"
    assert "429" in json.dumps(world.pipeline.status(held)["attempts"])


def test_a_flood_for_one_channel_is_paced_and_holds_up_no_other(world):
    flooded, other = world.address("discord", "flood"), world.address("discord", "calm")
    path = "/" + flooded.split("/", 3)[3]
    notifications = [world.accepted(flooded) for _ in range(7)]
    world.sent(other)
    first = [request for request in list(world.discord.requests) if request.path.startswith(path)]
    assert 1 <= len(first) <= 6, "five at once, then one in two seconds"
    for notification in notifications:
        assert world.pipeline.status(notification, wait="sent")["status"] == "sent"
    assert len([request for request in world.discord.requests if request.path.startswith(path)]) == 7, "each message once"
    assert any(len(world.routing.rows(notification)) > 1 for notification in notifications), "some waited for their time"


def test_five_failures_of_one_endpoint_close_the_service_for_no_other(world):
    world.teams.behave(Fault.UNAVAILABLE, times=6)
    failing = [world.accepted(world.address("teams", "down")) for _ in range(6)]
    wait_until(lambda: not world.teams.faults, 20, "six answers 503")
    world.sent(world.address("teams"))
    assert "teams" not in "".join(line for line in world.cli("channel", "list").splitlines() if " down " in line)
    for notification in failing:
        assert world.pipeline.status(notification, wait="sent")["status"] == "sent"


def test_an_alert_without_an_answer_is_sent_again_and_a_reminder_is_parked(world):
    world.slack.behave(Fault.CUT_AFTER_BODY, times=1)
    before = len(world.slack.requests)
    alert = world.accepted(world.address("slack"), category="operational")
    assert world.pipeline.status(alert, wait="sent")["status"] == "sent"
    assert len(world.slack.requests) == before + 2
    world.slack.behave(Fault.CUT_AFTER_BODY, times=1)
    reminder = world.accepted(world.address("slack"), category="reminder")
    world.routing.wait_rows(reminder, (1, "slack", "parked", 1))
    assert len(world.slack.requests) == before + 3


def test_a_recipients_own_url_is_sealed_and_masked(world):
    url = world.address("slack", "own")
    person = json.loads(world.cli("recipient", "put", "--webhook", url, "--json"))["id"]
    shown = world.cli("recipient", "get", person)
    assert url not in shown and "htt***" in shown
    status, _, document = world.pipeline.post({"recipient_id": person, "channel": "webhook", "template": "alert", "variables": {"name": "Bob"}})
    assert status == 202, document
    assert world.pipeline.status(document.get("notification_id") or document["id"], wait="sent")["status"] == "sent"
    assert world.slack.mails[-1].text.startswith("Bob:") and url.endswith(world.slack.mails[-1].to[0])


def test_no_url_stands_in_clear_anywhere(world):
    """The last of the file: all logs and streams, with every address that the tests before have used."""
    secrets = [address.rpartition("/")[2].rpartition("=")[2].encode() for address in world.addresses]
    paths = [*world.pipeline.folder.rglob("*.log"), *(path for path in (world.pipeline.folder / "nats").rglob("*") if path.is_file())]
    assert len(paths) > 20, "the streams and the logs of eight programs"
    for path in paths:
        content = path.read_bytes()
        assert not [secret for secret in secrets if secret in content], path
