# SPDX-License-Identifier: Apache-2.0
"""The whole of Stentor on free ports in a temporary folder: NATS, Postgres, a mailbox, every service, one tenant."""
import http.client
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness.nats_client import NatsClient
from tests.harness.processes import BIN, HOME, SERVICES, Nats, Nginx, Postgres, Service, free_port, wait_until
from tests.harness.smtp import Mailbox

TENANT = "acme"
CONSENT = {"source": "form on the website", "given_at": "2025-05-01T12:00:00Z"}  # marketing to an address without a recipient needs one
WELCOME_HTML = "<h1>Welcome, {{name}}!</h1>{{#if plan}}<p>Plan: {{plan}}</p>{{/if}}"
WELCOME_TEXT = "Welcome, {{name}}!"


class Pipeline:
    def __init__(self, options=None, ack_wait_ms=30000, durable=False, bytes_percent=1):
        """options: environment for every service, e.g. {"STENTOR_RETRY_LADDER": "1,1"}.

        bytes_percent: of the streams' production sizes, which nats-server reserves on the disk that is there."""
        self.folder = Path(tempfile.mkdtemp(prefix="stentor-test-"))
        os.chmod(self.folder, 0o755)
        self.extra = options or {}
        self.ack_wait_ms = ack_wait_ms
        self.bytes_percent = bytes_percent
        self.postgres = Postgres(self.folder / "pg", durable)
        self.nats = Nats(self.folder / "nats")
        self.mailbox = Mailbox(free_port())
        # The users' address is nginx's; the others are the services' own ports.
        self.api_port, self.ingest_port, self.gateway_port, self.webhook_port = free_port(), free_port(), free_port(), free_port()
        self.nginx = None
        self.services = {}
        self.key = None           # of the demo tenant
        self.operator_key = None  # speaks for every tenant

    # ---- life -----------------------------------------------------------------------------------------------------------

    def start(self, services=SERVICES):
        try:
            return self.bring_up(services)
        except BaseException:
            self.kill()
            raise

    def bring_up(self, services):
        self.mailbox.start()
        self.nginx = Nginx(self.folder / "nginx", self.api_port, **self.upstreams()).start(wait=False)
        self.postgres.start_installed()
        self.nats.start()
        master = self.folder / "master.key"
        master.write_text(self.cli("master-key"))
        self.cli("migrate", "--bytes-scale-percent", str(self.bytes_percent), "--ack-wait-ms", str(self.ack_wait_ms), admin=True)
        if not any(name.startswith("gateway") for name in services):
            services = [*services, "gateway"]  # demo() goes through it
        for name in services:
            self.services[name] = self.service(name).start(wait=False)
        for service in [*self.services.values(), self.nginx]:
            service.wait_ready()
        self.operator_key = json.loads(self.cli("apikey", "bootstrap", "--name", "operator", "--json", admin=True))["key"]
        wait_until(lambda: self.run_cli("tenant", "show").returncode == 3, 20, "the operator's key reaching the API")
        self.demo()
        return self

    def upstreams(self):
        return {"INGEST": f"127.0.0.1:{self.ingest_port}", "GATEWAY": f"127.0.0.1:{self.gateway_port}",
                "WEBHOOK": f"127.0.0.1:{self.webhook_port}"}

    def service(self, name, instance="", **options):
        settings = {
            "STENTOR_NATS_URL": self.nats.url, "STENTOR_NATS_USER": f"stentor-{name}", "STENTOR_NATS_PASSWORD": "pw",
            "STENTOR_DATABASE_URL": self.postgres.url("stentor_" + name.replace("-", "_")),
            "STENTOR_MASTER_KEY_FILE": self.folder / "master.key", "STENTOR_INGEST_PORT": self.ingest_port,
            "STENTOR_GATEWAY_PORT": self.gateway_port, "STENTOR_INGEST_TRUSTED_PROXIES": Nginx.SOURCE,
            "STENTOR_GATEWAY_TRUSTED_PROXIES": Nginx.SOURCE, "STENTOR_WEBHOOK_TRUSTED_PROXIES": Nginx.SOURCE,
            "STENTOR_WEBHOOK_PORT": self.webhook_port, "STENTOR_SMTP_URL": f"smtp://127.0.0.1:{self.mailbox.port}",
            "STENTOR_SMTP_TLS": "off", "STENTOR_OUTBOX_NATS_DOMAIN": "stentor", **self.extra, **options}
        return Service(self.folder / "services", name, settings, instance)

    def demo(self):
        """A tenant, an API key and the template 'welcome'."""
        html, text = self.folder / "welcome.html", self.folder / "welcome.txt"
        html.write_text(WELCOME_HTML)
        text.write_text(WELCOME_TEXT)
        self.cli("tenant", "put", TENANT, "--name", "Acme", "--sender", "hello@acme.test", "--sender-name", "Acme")
        self.cli("template", "put", "welcome", "--subject", "Welcome, {{name}}!", "--html", html, "--text", text,
                 "--require", "name:string")
        self.key = json.loads(self.cli("apikey", "create", "--name", "test", "--json"))["key"]
        wait_until(lambda: self.post({}, path="/v1/notifications")[0] == 422, 20, "the API key reaching ingest")
        wait_until(lambda: self.post({}, path="/v1/suppressions")[0] == 422, 20, "the API key reaching gateway")

    def master_keys(self):
        """{"master": [hex, ...], "hash": [hex, ...]} of the master key file, the current one first."""
        keys = {"master": [], "hash": []}
        for line in (self.folder / "master.key").read_text().splitlines():
            if line and line[0] != "#":
                keys[line.split()[0]].append(line.split()[2])
        return keys

    def kill(self):
        """Ends everything at once, whatever state it is in; the logs stay."""
        for process in [*self.services.values(), self.nginx, self.nats, self.postgres]:
            if process and process.alive():
                process.kill()
        self.mailbox.stop()

    def stop(self):
        """Drains every service, all at once; fails when one did not end with 0 (leaks found by the sanitizer included)."""
        def end(service):
            try:
                return service.stop()
            except AssertionError:
                return f"killed: it did not drain; Postgres was doing {self.postgres_activity()}"
        with ThreadPoolExecutor(max(1, len(self.services))) as pool:
            statuses = dict(zip(self.services, pool.map(end, self.services.values())))
        self.kill()
        bad = {name: status for name, status in statuses.items() if status not in (0, None)}
        logs = "\n".join(f"--- {name}\n{self.services[name].tail()}" for name in bad)
        if not bad and not os.environ.get("STENTOR_TEST_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)
        assert not bad, f"services that ended badly: {bad}\n{logs}"

    def postgres_activity(self):
        """Who waits for what: the question after a drain that did not end."""
        try:
            return self.postgres.query("SELECT application_name, state, wait_event, now() - query_start, left(query, 80)"
                                       " FROM pg_stat_activity WHERE application_name LIKE 'stentor%' AND state <> 'idle'")
        except Exception as error:  # noqa: BLE001 (it may be gone, which is an answer too)
            return str(error)

    # ---- using it -------------------------------------------------------------------------------------------------------

    def cli_environment(self, admin=False, tenant=TENANT, key=None, **settings):
        return {
            "PATH": os.environ["PATH"], "STENTOR_HOME": str(HOME), "STENTOR_NATS_URL": self.nats.url,
            "STENTOR_NATS_USER": "stentor-admin" if admin else "stentor-cli", "STENTOR_NATS_PASSWORD": "pw",
            "STENTOR_DATABASE_URL": self.postgres.url("stentor_owner" if admin else "stentor_cli"),
            "STENTOR_API_URL": f"http://127.0.0.1:{self.api_port}", "STENTOR_API_KEY": (self.operator_key or "") if key is None else key,
            "STENTOR_TENANT": tenant, "STENTOR_MASTER_KEY_FILE": str(self.folder / "master.key"), **settings}

    def run_cli(self, *words, admin=False, tenant=TENANT, merged=False, timeout=90, key=None, **settings):
        """merged: what it says on standard error goes into stdout, as in a log file. key: another API key than the operator's.
        settings: further variables."""
        environment = self.cli_environment(admin=admin, tenant=tenant, key=key, **settings)
        return subprocess.run(
            [BIN / "stentor", *map(str, words)], env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE, text=True, timeout=timeout)

    def cli(self, *words, admin=False, tenant=TENANT):
        """What it prints; it has to end with 0. Without the search for leaks, a quarter of a command's CPU time: run_cli() has it."""
        done = self.run_cli(*words, admin=admin, tenant=tenant, ASAN_OPTIONS="detect_leaks=0")
        assert done.returncode == 0, f"stentor {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def post(self, body, path="/v1/notifications", headers=None, port=None, method="POST"):
        """(status, headers, parsed body). `body` is JSON-able, or bytes as they are. port: a service's own in place of the address."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.api_port, timeout=30)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}", **(headers or {})}
        try:
            connection.request(method, path, raw, sent)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, dict(answer.getheaders()), json.loads(text) if text else None
        finally:
            connection.close()

    def send(self, to="alice@example.com", template="welcome", variables=None, **fields):
        status, _, body = self.post({"to": to, "template": template, "variables": variables or {"name": "Alice"}, **fields})
        assert status == 202, body
        return body["id"]

    def status(self, notification_id, wait=None, timeout=30):
        words = ["status", notification_id, "--json"] + (["--wait", wait, "--timeout", str(timeout)] if wait else [])
        return json.loads(self.cli(*words))

    def wait_config(self, sequence, *services):
        """Until each replica of the services that runs has been sent CONFIG up to there; what NATS sends it later comes after that."""
        client = NatsClient(self.nats.port)

        def current(service):
            readers = json.loads(client.request("$JS.API.CONSUMER.LIST.CONFIG"))["consumers"] or []
            # One that asks for nothing is of a process that has ended.
            seen = [reader["delivered"]["stream_seq"] for reader in readers if reader["name"].startswith(f"stentor-{service}-") and reader["num_waiting"]]
            return seen and min(seen) >= sequence

        try:
            wait_until(lambda: all(map(current, services)), 20, f"CONFIG {sequence} reaching {services}")
        finally:
            client.close()

    def put_endless(self):
        """Puts a template that nothing but the renderer finds at fault (more rounds than it may take); what to send with it."""
        page = self.folder / "endless.html"
        page.write_text("{{#each list}}{{#each ../list}}.{{/each}}{{/each}}")
        self.cli("template", "put", "endless", "--subject", "Endless", "--html", page)
        return {"template": "endless", "variables": {"list": list(range(300))}}

    def history_count(self, where="true"):
        return self.postgres.query(f"SELECT count(*) FROM archiver.notifications WHERE {where}")[0][0]
