# SPDX-License-Identifier: Apache-2.0
"""A real SMTP server (aiosmtpd) that keeps every mail in memory and gives the answers that a test sets."""
import asyncio
import collections
import email
import email.policy
import threading

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP


class _Handler:
    def __init__(self, mailbox):
        self.mailbox = mailbox

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 (the library's name)
        reply = self.mailbox.deliver(envelope)
        await asyncio.sleep(self.mailbox.patience(envelope))
        if self.mailbox.take_silence():
            await asyncio.Event().wait()  # ended with the connection
        return reply


class Mailbox:
    """start(), stop(); mails; answer("451 try later", times=3) for the next ones; silence() keeps them and never answers;
    slow("example.org", seconds): the answer to each mail to that domain takes so long."""

    def __init__(self, port):
        self.port = port
        self.lock = threading.Lock()
        self.raw = []
        self.refused = []  # what was answered with something else than 2xx
        self.answers = collections.deque()
        self.silent = 0
        self.slow_domains = {}
        self.controller = None

    def start(self):
        self.controller = Controller(
            _Handler(self), hostname="127.0.0.1", port=self.port)
        # A name of its own, or each connection asks the DNS for this machine's, and everything waits for the answer.
        self.controller.factory = lambda: SMTP(_Handler(self), hostname="mailbox.test", enable_SMTPUTF8=True, data_size_limit=10_000_000)
        self.controller.start()
        return self

    def stop(self):
        controller, self.controller = self.controller, None  # twice: a test that failed while it was away must show that, and no other error
        if controller is not None:
            controller.stop(no_assert=True)

    def answer(self, reply, times=1):
        with self.lock:
            self.answers.extend([reply] * times)

    def silence(self, times=1):
        """The next mails are kept, and their final dot has no answer."""
        with self.lock:
            self.silent = times

    def slow(self, domain, seconds):
        self.slow_domains[domain] = seconds

    def patience(self, envelope):
        return max(self.slow_domains.get(to.rpartition("@")[2], 0) for to in envelope.rcpt_tos)

    def take_silence(self):
        with self.lock:
            silent = self.silent > 0
            self.silent -= 1 if silent else 0
        return silent

    def deliver(self, envelope):
        with self.lock:
            if self.answers:
                reply = self.answers.popleft()
                if not reply.startswith("2"):
                    self.refused.append(envelope.content)
                    return reply
            self.raw.append((envelope.mail_from, list(envelope.rcpt_tos), envelope.content))
        return "250 2.0.0 kept"

    def mails(self, text=""):
        """Those with the text somewhere, as it is sent: only they are parsed, which is work when there are hundreds."""
        with self.lock:
            raw = list(self.raw)
        return [email.message_from_bytes(content, policy=email.policy.default) for _, _, content in raw if text.encode() in content]

    def refusals(self, text):
        with self.lock:
            refused = list(self.refused)
        return [email.message_from_bytes(content, policy=email.policy.default) for content in refused if text.encode() in content]

    def for_notification(self, notification_id):
        return [mail for mail in self.mails(notification_id) if notification_id in mail["Message-ID"]]

    def count_by_message_id(self):
        """Message-ID -> how often it was taken. Reads the header only: 10,000 mails are quick."""
        counts = collections.Counter()
        with self.lock:
            raw = list(self.raw)
        for _, _, content in raw:
            head = content.split(b"\r\n\r\n", 1)[0]
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"message-id:"):
                    counts[line.split(b":", 1)[1].strip().decode()] += 1
        return counts
