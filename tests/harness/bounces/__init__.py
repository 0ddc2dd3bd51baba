# SPDX-License-Identifier: Apache-2.0
"""Bounces and complaints as the mail servers of the world write them, delivered by LMTP as the operator's own mail server does."""
import re
import smtplib
import subprocess
from pathlib import Path

from tests.harness.processes import HOME, Process, wait_until

SAMPLES = HOME / "tests" / "unit" / "services" / "webhook-receiver" / "mail" / "samples"
BOUNCE_DOMAIN = "bounces.acme.test"


def samples():
    return sorted(path.stem for path in SAMPLES.glob("*.eml"))


def fill(name, **values):
    """The sample as bytes; values: return_path, recipient, notification, opt_out."""
    text = (SAMPLES / f"{name}.eml").read_bytes()
    for place, value in values.items():
        text = text.replace(f"@{place.upper()}@".encode(), value.encode())
    return text


class Sent:
    """A mail that was sent to a mailbox: what a server that cannot deliver it knows of it."""

    def __init__(self, pipeline, notification, address):
        self.pipeline, self.notification, self.address = pipeline, notification, address
        with pipeline.mailbox.lock:
            self.return_path, self.content = [(sender, content) for sender, to, content in pipeline.mailbox.raw if address in to][-1]
        found = re.search(rb"oot_[A-Za-z0-9_-]+", re.sub(rb"\r\n[ \t]", b"", self.content))
        self.opt_out = found[0].decode() if found else ""

    def report(self, name, **values):
        """The sample about this mail."""
        about = {"return_path": self.return_path, "recipient": self.address, "notification": self.notification, "opt_out": self.opt_out}
        return fill(name, **{**about, **values})


def deliver(port, recipients, content, sender="<>"):
    """The reply to each recipient of one mail: [(code, text), ...]."""
    with smtplib.LMTP("127.0.0.1", port, timeout=60) as client:
        client.ehlo()
        code, text = client.docmd("MAIL", f"FROM:{sender}")
        assert code == 250, text
        replies = [client.rcpt(recipient) for recipient in recipients]
        taken = [at for at, reply in enumerate(replies) if reply[0] == 250]
        if taken:
            code, text = client.docmd("DATA")
            assert code == 354, text
            client.send(re.sub(rb"(?m)^\.", b"..", content) + (b"" if content.endswith(b"\r\n") else b"\r\n") + b".\r\n")
            for at in taken:
                replies[at] = client.getreply()
        return replies


class Postfix(Process):
    """A real Postfix with a folder of its own as the operator's mail server: Stentor's smarthost, and in front of its LMTP.

    routes: {recipient domain: next hop}, as a transport table has it. Needs root."""

    name = "postfix"

    def __init__(self, folder, port, routes):
        super().__init__(folder)
        self.port, self.routes = port, routes

    def argv(self):
        return ["/usr/sbin/postfix", "-c", str(self.folder / "conf"), "start-fg"]

    def prepare(self):
        conf, queue, data = (self.folder / name for name in ("conf", "queue", "data"))
        for path in (conf, queue, data):
            path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["chown", "postfix:", str(data)], check=True)
        (conf / "transport").write_text("".join(f"{domain} {hop}\n" for domain, hop in self.routes.items()))
        main = {
            "compatibility_level": "3.6", "queue_directory": queue, "data_directory": data, "mail_owner": "postfix", "setgid_group": "postdrop",
            "maillog_file": "/dev/stdout", "myhostname": "mx.acme.test", "mydestination": "", "inet_interfaces": "127.0.0.1",
            "inet_protocols": "ipv4", "mynetworks": "127.0.0.0/8", "smtpd_relay_restrictions": "permit_mynetworks, reject",
            "transport_maps": f"texthash:{conf / 'transport'}", "disable_dns_lookups": "yes", "smtp_host_lookup": "native",
            "lmtp_host_lookup": "native", "alias_maps": "", "alias_database": "", "queue_run_delay": "2s", "minimal_backoff_time": "2s",
            "maximal_backoff_time": "4s", "notify_classes": "", "smtputf8_enable": "yes"}
        (conf / "main.cf").write_text("".join(f"{name} = {value}\n" for name, value in main.items()))
        unix = ["pickup unix n - n 60 1 pickup", "cleanup unix n - n - 0 cleanup", "qmgr unix n - n 300 1 qmgr", "tlsmgr unix - - n 1000? 1 tlsmgr",
                "rewrite unix - - n - - trivial-rewrite", "bounce unix - - n - 0 bounce", "defer unix - - n - 0 bounce", "trace unix - - n - 0 bounce",
                "smtp unix - - n - - smtp", "relay unix - - n - - smtp", "error unix - - n - - error", "retry unix - - n - - error",
                "lmtp unix - - n - - lmtp", "anvil unix - - n - 1 anvil", "scache unix - - n - 1 scache", "postlog unix-dgram n - n - 1 postlogd",
                "showq unix n - n - - showq", "proxymap unix - - n - - proxymap"]
        (conf / "master.cf").write_text("\n".join([f"127.0.0.1:{self.port} inet n - n - - smtpd", *unix]) + "\n")

    def start(self, wait=True):
        self.prepare()
        return super().start(wait)

    def ready(self):
        try:
            with smtplib.SMTP("127.0.0.1", self.port, timeout=5) as client:
                return client.noop()[0] == 250
        except OSError:
            return False


def find_reader(service):
    """The pid of the process of the service that reads a mail, or None."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == service.child.pid and b"parse-mail" in words:
            return int(path.name)
    return None


def wait_reader(service):
    return wait_until(lambda: find_reader(service), 20, "a process that reads mail")
