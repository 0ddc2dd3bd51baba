# SPDX-License-Identifier: Apache-2.0
"""channels.md 5.3: `stentor doctor --domain` says which demand of the mailbox providers a domain breaks, asked of a real DNS server (dnsmasq)."""
import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import BIN, free_port, wait_until
from tests.harness.protobuf import messages

DNSMASQ = shutil.which("dnsmasq", path=os.environ["PATH"] + ":/usr/sbin")


class Dns:
    """dnsmasq with records of the test alone: it asks no other server."""
    def __init__(self, folder, records):
        self.port = free_port()
        settings = folder / "dnsmasq.conf"
        settings.write_text("".join(f"{kind}={value}\n" for kind, value in records))
        self.child = subprocess.Popen(
            [DNSMASQ, "--keep-in-foreground", f"--conf-file={settings}", "--no-resolv", "--no-hosts", f"--port={self.port}", "--user=root",
             "--listen-address=127.0.0.1", "--bind-interfaces", f"--pid-file={folder / 'dnsmasq.pid'}", "--local=/test/", "--local=/arpa/",
             "--log-facility=-"], stderr=subprocess.PIPE, text=True)
        wait_until(self.answers, 20, "dnsmasq answering")

    def answers(self):
        assert self.child.poll() is None, self.child.stderr.read()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.settimeout(0.5)
            asked.sendto(b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01x\x04test\x00\x00\x01\x00\x01", ("127.0.0.1", self.port))
            try:
                return asked.recv(512)
            except (TimeoutError, ConnectionError):
                return None

    def stop(self):
        self.child.terminate()
        self.child.wait(20)


def txt(name, text):
    """A TXT record; strings of at most 255 bytes."""
    return "txt-record", f"{name}," + ",".join(f'"{text[i:i + 200]}"' for i in range(0, len(text), 200))


def public(pem):
    der = subprocess.run(["openssl", "pkey", "-in", pem, "-pubout", "-outform", "DER"], capture_output=True, check=True).stdout
    return base64.b64encode(der).decode()


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dkim")
    for name in ("ours", "other"):
        subprocess.run(["openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", folder / f"{name}.pem"],
                       check=True)
    subprocess.run(["openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:512", "-out", folder / "short.pem"], check=True)
    return folder


@pytest.fixture(scope="module")
def dns(tmp_path_factory, keys):
    circle = [txt(f"c{n}.test", f"v=spf1 include:c{n + 1}.test -all") for n in range(12)]
    server = Dns(tmp_path_factory.mktemp("dns"), [
        txt("good.test", "v=spf1 ip4:192.0.2.0/24 include:spf.good.test -all"), txt("spf.good.test", "v=spf1 a:mail.good.test ip6:2001:db8::/32 ~all"),
        txt("s1._domainkey.good.test", "v=DKIM1; k=rsa; p=" + public(keys / "ours.pem")),
        txt("short._domainkey.good.test", "v=DKIM1; k=rsa; p=" + public(keys / "short.pem")),
        txt("gone._domainkey.good.test", "v=DKIM1; p="),
        txt("_dmarc.good.test", "v=DMARC1; p=reject; rua=mailto:dmarc@good.test"),
        ("mx-host", "good.test,mail.good.test,10"), ("host-record", "mail.good.test,198.51.100.7"),
        ("ptr-record", "7.100.51.198.in-addr.arpa,mail.good.test"), ("ptr-record", "8.100.51.198.in-addr.arpa,liar.good.test"),
        txt("bounce.good.test", "v=spf1 ip4:192.0.2.0/24 -all"), ("mx-host", "bounce.good.test,mail.good.test,10"),
        txt("open.test", "v=spf1 +all"), txt("_dmarc.open.test", "v=DMARC1; p=soon"), ("mx-host", "open.test,mail.good.test,10"),
        txt("two.test", "v=spf1 -all"), txt("two.test", "v=spf1 ~all"), txt("_dmarc.two.test", "v=DMARC1; p=none"),
        txt("typo.test", "v=spf1 lp4:192.0.2.1 -all"), txt("away.test", "v=spf1 redirect=good.test"), *circle])
    yield server
    server.stop()


def doctor(dns, *words, environment=None):
    """(exit status, {check: (result, text)})"""
    done = subprocess.run([BIN / "stentor", "doctor", *map(str, words), "--server", f"127.0.0.1:{dns.port}", "--json"],
                          capture_output=True, text=True, timeout=90, env={"PATH": os.environ["PATH"], "STENTOR_CONFIG": "/dev/null", "STENTOR_NATS_URL": "", **(environment or {})})
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    return done.returncode, {check["check"]: (check["result"], check["text"]) for check in report["checks"]}


def test_a_domain_that_is_in_order(dns):
    status, checks = doctor(dns, "--domain", "good.test", "--selector", "s1", "--ip", "198.51.100.7")
    assert status == 0, checks
    assert checks["spf good.test"][0] == "ok" and "198.51.100.7 may send, 2 of 10 look-ups" in checks["spf good.test"][1]
    assert checks["dkim s1"][0] == "ok" and "RSA of 2048 bits" in checks["dkim s1"][1]
    assert checks["dmarc"] == ("ok", "p=reject at good.test")
    assert checks["mx good.test"] == ("ok", "mail.good.test")
    assert checks["ptr 198.51.100.7"] == ("ok", "mail.good.test")
    assert checks["one-click"][0] == "warn"


@pytest.mark.parametrize("address, may", [
    ("192.0.2.200", True), ("2001:db8::7", True), ("198.51.100.7", True), ("203.0.113.1", False), ("2001:db9::1", False)])
def test_whether_an_address_may_send(dns, address, may):
    for domain in ("good.test", "away.test"):
        _, checks = doctor(dns, "--domain", domain, "--ip", address)
        result, text = checks[f"spf {domain}"]
        assert (result == "ok") == may, text
        assert may or "HINT: add ip" in text


@pytest.mark.parametrize("domain, check, says", [
    ("none.test", "spf none.test", "has no SPF record"), ("none.test", "dmarc", "no record: Gmail and Yahoo"), ("none.test", "mx none.test", "no MX record"),
    ("open.test", "spf open.test", "+all"), ("open.test", "dmarc", "p= is none of"), ("two.test", "spf two.test", "2 SPF records"),
    ("typo.test", "spf typo.test", "no receiver knows"), ("c0.test", "spf c0.test", "ten look-ups")])
def test_each_broken_rule_is_named(dns, domain, check, says):
    status, checks = doctor(dns, "--domain", domain)
    assert status == 1 and checks[check][0] == "fail" and says in checks[check][1], checks[check]


@pytest.mark.parametrize("selector, says", [("none", "no TXT record"), ("short", "512 bits"), ("gone", "revoked")])
def test_each_broken_dkim_key_is_named(dns, selector, says):
    _, checks = doctor(dns, "--domain", "good.test", "--selector", selector)
    assert checks[f"dkim {selector}"][0] == "fail" and says in checks[f"dkim {selector}"][1]


def test_a_name_that_does_not_lead_back_and_an_address_without_one(dns):
    _, checks = doctor(dns, "--domain", "good.test", "--ip", "198.51.100.8", "--ip", "198.51.100.9")
    assert "does not lead back" in checks["ptr 198.51.100.8"][1] and checks["ptr 198.51.100.8"][0] == "fail"
    assert "no PTR record" in checks["ptr 198.51.100.9"][1]


def test_a_subdomain_has_the_policy_of_the_one_above(dns):
    _, checks = doctor(dns, "--domain", "news.good.test")
    assert checks["dmarc"] == ("ok", "p=reject at good.test")


def test_reports_that_go_nowhere_are_a_warning(dns):
    _, checks = doctor(dns, "--domain", "two.test")
    assert checks["dmarc"][0] == "warn" and "rua=" in checks["dmarc"][1]


def test_no_dns_server_is_said(tmp_path):
    class Away:
        port = free_port()
    status, checks = doctor(Away, "--domain", "good.test")
    assert status == 1 and "no DNS server answered" in checks["spf good.test"][1]


@pytest.mark.parametrize("words, says", [
    (("--domain", "good"), "--domain"), (("--domain", "a@good.test"), "--domain"), (("--domain", "good.test", "--ip", "x"), "--ip"),
    (("--domain", "good.test", "--server", "localhost"), "--server")])
def test_a_wrong_argument_is_named(words, says):
    done = subprocess.run([BIN / "stentor", "doctor", *words], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "STENTOR_CONFIG": "/dev/null"})
    assert done.returncode == 2 and says in done.stderr, done.stderr


class Answers(BaseHTTPRequestHandler):
    status = 404

    def do_GET(self):
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *words):
        pass


def test_one_click_must_be_reached_over_https(dns, tmp_path):
    _, checks = doctor(dns, "--domain", "good.test", "--public-url", "http://notify.test")
    assert checks["one-click"][0] == "fail" and "RFC 8058" in checks["one-click"][1]
    _, checks = doctor(dns, "--domain", "good.test", "--public-url", f"https://127.0.0.1:{free_port()}")
    assert "cannot be reached" in checks["one-click"][1]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"], capture_output=True, check=True)
    server = HTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://127.0.0.1:{server.server_port}"
    try:
        trusted = {"STENTOR_API_CA_FILE": str(tmp_path / "cert.pem")}
        assert doctor(dns, "--domain", "good.test", "--public-url", url, environment=trusted)[1]["one-click"][0] == "ok"
        assert "cannot be reached" in doctor(dns, "--domain", "good.test", "--public-url", url)[1]["one-click"][1], "its certificate is not trusted"
        Answers.status = 200
        assert "404 was expected" in doctor(dns, "--domain", "good.test", "--public-url", url, environment=trusted)[1]["one-click"][1]
    finally:
        server.shutdown()


def test_the_key_in_dns_is_compared_with_ours_and_the_return_path_is_looked_at(dns, keys):
    pipeline = Pipeline().start(services=["ingest", "gateway"])
    try:
        client = NatsClient(pipeline.nats.port)
        proto = messages(pipeline)

        def put(pem):
            entry = proto.MailDomain(tenant=TENANT, domain="good.test", bounce_domain="bounce.good.test", dkim=[
                proto.DkimKey(selector="s1", algorithm="rsa-sha256", reference=f"file:{pem}")])
            client.publish(f"cfg.mail_domain.{TENANT}.good.test", entry.SerializeToString())

        def examine():
            return doctor(dns, "--domain", "good.test", environment={**pipeline.cli_environment(), "STENTOR_CREDENTIAL_DIRS": str(keys)})
        put(keys / "ours.pem")
        status, checks = examine()
        assert status == 0 and checks["dkim s1"] == ("ok", "RSA of 2048 bits, ours"), checks
        assert checks["spf bounce.good.test"][0] == "ok" and checks["mx bounce.good.test"][0] == "ok"
        put(keys / "other.pem")
        status, checks = examine()
        assert status == 1 and checks["dkim s1"][0] == "fail" and "p=" + public(keys / "other.pem") in checks["dkim s1"][1]
        client.close()
    finally:
        pipeline.stop()
