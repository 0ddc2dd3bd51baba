# SPDX-License-Identifier: Apache-2.0
"""What the user of a story has: `stentor`, the API at the one address, a NATS user of an application, a mailbox. No table, no stream."""
import contextlib
import http.client
import json
import re
import subprocess
import uuid
from datetime import datetime, timedelta, timezone

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, HOME, wait_until

MAIL = ("ingest", "gateway", "renderer", "dispatcher", "archiver")
EXAMPLES = HOME / "deploy" / "examples"
PROBE = "story.probe"
LATER = "451 4.3.0 later please"


def stamp(when):
    """As an application writes a time into an event."""
    return when.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now(**delta):
    return datetime.now(timezone.utc) + timedelta(**delta)


def new_address(name):
    return f"{name}-{uuid.uuid4().hex[:8]}@example.com"


def envelope(name, message):
    """MassTransit's, as the bookshop publishes it."""
    return {"messageId": str(uuid.uuid4()), "conversationId": str(uuid.uuid4()), "sourceAddress": "rabbitmq://localhost/finance",
            "messageType": [f"urn:message:BookWorm.Contracts:{name}"], "message": message, "sentTime": stamp(now()), "headers": {}}


def notification_of(mail):
    return re.search("ntf_[0-9A-Z]{26}", str(mail["Message-ID"]))[0]


def text_of(mail):
    """The plain text with single blanks."""
    return " ".join(mail.get_body(("plain",)).get_content().split())


class User:
    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.application = NatsClient(pipeline.nats.port, f"{TENANT}-app")

    # ---- doing ----

    def run(self, *words, **settings):
        """What `stentor ... --json` prints: an object, or a list where it prints several lines."""
        done = self.pipeline.run_cli(*words, "--json", **settings)
        assert done.returncode == 0, f"stentor {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[0] if len(lines) == 1 else lines

    def refused(self, *words):
        """Exit status and words of a command that fails."""
        done = self.pipeline.run_cli(*words)
        assert done.returncode != 0, done.stdout
        return done.returncode, done.stdout + done.stderr

    def api(self, method, path, body=None, headers=None):
        """(status, parsed body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.pipeline.api_port, timeout=30)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, raw, {"Authorization": f"Bearer {self.pipeline.key}", **(headers or {})})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def send(self, expected="queued", **fields):
        status, answer = self.api("POST", "/v1/notifications", fields, {"Idempotency-Key": uuid.uuid4().hex})
        assert (status, answer.get("status")) == (202, expected), answer
        return answer["id"]

    def publish(self, event, data, event_id=None, headers=None):
        """As the tenant's application; returns the answer, which comes once the event is stored."""
        return self.application.publish(f"evt.{TENANT}.{event}", json.dumps(data).encode(), event_id, headers)

    def template(self, key, locales, *words, tenant=TENANT, **document):
        """Publishes {locale: (subject, text)} with `template put --from`."""
        path = self.pipeline.folder / f"{key}.json"
        written = [{"locale": locale, "subject": subject, "text": text, "html": f"<html><body><p>{text}</p></body></html>"}
                   for locale, (subject, text) in locales.items()]
        path.write_text(json.dumps({"key": key, "locales": written, **document}))
        self.pipeline.cli("template", "put", key, "--from", path, *words, tenant=tenant)

    def example(self, script, **environment):
        """Runs a script of deploy/examples as an operator does."""
        done = subprocess.run([EXAMPLES / script], env={**self.pipeline.cli_environment(), "STENTOR": str(BIN / "stentor"), **environment},
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr

    def settle(self, shows=lambda mail: True):
        """Waits until all that was configured before is in force: a last trigger, whose event becomes a mail that `shows` it."""
        self.pipeline.cli("trigger", "put", "story-probe", "--event", PROBE, "--template", "welcome", "--resolver", "address:email")

        def probed():
            address = new_address("probe")
            self.publish(PROBE, {"email": address, "name": "Probe"})
            with contextlib.suppress(AssertionError):
                return shows(wait_until(lambda: self.mails(address), 2, "the probe's mail")[0])
            return False
        wait_until(probed, 40, "the settings being in force")

    # ---- seeing ----

    def mails(self, address):
        return [mail for mail in self.pipeline.mailbox.mails(address) if address in str(mail["To"])]

    def mail(self, address, seconds=30):
        """The only one to the address."""
        mail, = wait_until(lambda: self.mails(address), seconds, f"a mail to {address}")
        return mail

    def status(self, notification, wait=None):
        return self.pipeline.status(notification, wait=wait)

    def letters(self, text=""):
        """The dead letters of the tenant with the text somewhere."""
        found = self.run("dlq", "list")
        return [letter for letter in (found if isinstance(found, list) else [found]) if text in json.dumps(letter)]

    def letter(self, text):
        letter, = wait_until(lambda: self.letters(text), 30, f"a dead letter with '{text}'")
        return letter

    def waiting(self, *words):
        return self.run("scheduled", "list", *words)

    def idle(self):
        """By the doctor's word no message waits."""
        return json.loads(self.pipeline.run_cli("doctor", "--json").stdout)["oldest_waits_for"] == ""


@contextlib.contextmanager
def story(*more, **options):
    """An installation of the story's own: what a mail needs to be sent and looked up, and `more` services (options: their environment)."""
    pipeline = Pipeline(options).start([*MAIL, *more])
    try:
        user = User(pipeline)
        yield user
        user.application.close()
    except BaseException:
        pipeline.kill()
        raise
    pipeline.stop()
