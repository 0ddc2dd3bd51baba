# SPDX-License-Identifier: Apache-2.0
"""The pipeline that is broken: replicas of everything, each reaching NATS, Postgres and SMTP through a route that can be broken alone."""
import json
import os
import shutil
import signal
import subprocess
import threading
import time

from tests.chaos import channels, vendors
from tests.chaos.schedule import REPLICAS, SMTP_USERS
from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import free_port, wait_until
from tests.harness.proxy import Proxy
from tests.harness.tally import Tally
from tests.harness.vendor_doubles.tally import Vendors

ACK_WAIT_MS, LEASE_MS = 3000, 4000
OPTIONS = {
    "STENTOR_DISPATCHER_LEASE_MS": LEASE_MS, "STENTOR_RETRY_LADDER": "1,2,4,8,8,8,8,8,8,8",
    "STENTOR_INGEST_SWEEP_AGE_MS": 2000, "STENTOR_INGEST_SWEEP_MS": 1000,
    "STENTOR_FLUSHER_LEASE_MS": 15000, "STENTOR_SMTP_CONNECT_MS": 2000, "STENTOR_SMTP_COMMAND_MS": 3000, "STENTOR_SMTP_DATA_MS": 3000,
    **vendors.OPTIONS, **channels.OPTIONS,
}
BYTES_PERCENT = 20  # of the production sizes of the streams: room for ten minutes


class World(Pipeline):
    def __init__(self, seed, disk_mib, say=print):
        super().__init__(OPTIONS, ack_wait_ms=ACK_WAIT_MS, durable=True, bytes_percent=BYTES_PERCENT)
        self.say = say
        self.disk_mib = disk_mib
        self.mounted = False
        self.keep_store = False  # copy NATS's store from its disk before that goes
        self.postgres.port, self.nats.port = free_port(), free_port()
        self.mailbox = Tally(free_port(), seed)
        self.vendors = Vendors({name: free_port() for name in (*vendors.VENDORS, *channels.DOUBLES)}, seed, channels.SECURE, self.folder / "certificates")
        self.rotation = vendors.Rotation(self)
        self.credentials = self.folder / "credentials"
        self.credentials.mkdir()
        self.extra = {**self.extra, "STENTOR_CREDENTIAL_DIRS": str(self.credentials), "STENTOR_VENDOR_CA_FILE": str(self.folder / "certificates" / "ca.pem")}
        self.ingest_ports = [free_port() for _ in range(REPLICAS["ingest"])]
        self.webhook_port = free_port()
        self.routes = {f"{member}>{to}": (free_port(), port) for member in self.members() for to, port in self.targets(member)}
        self.routes |= {f"vendors>{name}": (free_port(), port) for name, port in self.vendors.ports.items()}
        self.proxy = Proxy(self.routes)
        self.addresses = channels.Addresses(f"https://127.0.0.1:{self.route('vendors', 'webpush')}")
        self.trials = {}     # id -> address: what was sent before the load
        self.wanted = set()  # processes that ought to run: the watch starts them again
        self.ended = []      # (name, status, last words) of what ended by itself
        self.locks = {name: threading.RLock() for name in [*self.members(), "nats", "postgres"]}
        self.over = threading.Event()

    @staticmethod
    def members():
        return [f"{name}-{number + 1}" for name, count in REPLICAS.items() for number in range(count)]

    def targets(self, member):
        found = [("nats", self.nats.port), ("postgres", self.postgres.port)]
        return found + ([("smtp", self.mailbox.port)] if member in SMTP_USERS else [])

    def upstreams(self):
        return {**super().upstreams(), "INGEST": ",".join(f"127.0.0.1:{port}" for port in self.ingest_ports)}

    def route(self, member, to):
        return self.routes[f"{member}>{to}"][0]

    # ---- life -----------------------------------------------------------------------------------------------------------

    def bring_up(self, services):
        self.mount()
        self.proxy.start()
        self.vendors.start()
        super().bring_up(self.members())
        self.rotation.set_up()
        self.trials = channels.set_up(self)
        self.wanted = {*self.members(), "nats", "postgres"}
        threading.Thread(target=self.watch, daemon=True).start()
        return self

    def start(self, services=None):
        return super().start(services)

    def service(self, member, instance="", **options):
        name, number = member.rsplit("-", 1)
        options = {"STENTOR_NATS_URL": f"nats://127.0.0.1:{self.route(member, 'nats')}", **options}
        options["STENTOR_DATABASE_URL"] = (f"host=127.0.0.1 port={self.route(member, 'postgres')} dbname=stentor"
                                           f" user=stentor_{name.replace('-', '_')}")
        if name == "ingest":
            options["STENTOR_INGEST_PORT"] = self.ingest_ports[int(number) - 1]
        if member in SMTP_USERS:
            options["STENTOR_SMTP_URL"] = f"smtp://127.0.0.1:{self.route(member, 'smtp')}"
        made = super().service(name, f"-{number}", **options)
        made.admin_port = free_port()
        return made

    def mount(self):
        """A small disk of its own for NATS, when we may mount one."""
        store = self.nats.folder / "store"
        store.mkdir()
        if os.getuid() == 0:
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.disk_mib}m,mode=700", "stentor-chaos", store],
                                  capture_output=True, text=True)
            self.mounted = done.returncode == 0
        if not self.mounted:
            self.say("no disk of its own for NATS (mount is not permitted here): `disk` faults are left out")

    def process(self, name):
        return self.services.get(name) or getattr(self, name)

    def kill(self):
        self.over.set()
        self.wanted = set()
        for name in [*self.services, "nats", "postgres"]:
            with self.locks[name]:
                if self.process(name).alive():
                    self.end(name, signal.SIGKILL)
        if self.nginx and self.nginx.alive():
            self.nginx.kill()
        self.mailbox.stop()
        self.vendors.stop()
        self.proxy.stop()
        if self.mounted:
            if self.keep_store:
                shutil.copytree(self.nats.folder / "store", self.nats.folder / "store-kept", dirs_exist_ok=True)
            subprocess.run(["umount", "-l", self.nats.folder / "store"])
            self.mounted = False

    # ---- the supervisor that every installation has ---------------------------------------------------------------------

    def watch(self):
        while not self.over.wait(0.2):
            for name in sorted(self.wanted):
                if self.locks[name].acquire(blocking=False):
                    try:
                        self.look_after(name)
                    finally:
                        self.locks[name].release()

    def look_after(self, name):
        process = self.process(name)
        if name not in self.wanted or process.alive():
            return
        status = process.child.returncode
        self.ended.append((name, status, process.tail(12)))
        self.say(f"         {name} ended by itself with {status}")
        time.sleep(0.5)
        process.start(wait=False)

    # ---- what faults do ---------------------------------------------------------------------------------------------------

    def send_signal(self, name, number):
        """To the process; for Postgres to every process of the cluster."""
        pids = [self.process(name).child.pid]
        if name == "postgres":
            pids += self.backends()
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def backends(self):
        done = subprocess.run(["pgrep", "-P", str(self.postgres.child.pid)], capture_output=True, text=True)
        return [int(pid) for pid in done.stdout.split()]

    def crash(self, name, number=signal.SIGKILL):
        """Ends it at once; it stays down until revive()."""
        self.wanted.discard(name)
        if self.process(name).alive():
            self.end(name, number)

    def end(self, name, number):
        self.send_signal(name, number)
        self.process(name).child.wait()
        if name == "postgres":
            wait_until(self.postgres.end_orphans, 30, "every process of Postgres being gone")

    def revive(self, name):
        """Starts it until it runs."""
        process = self.process(name)
        for _ in range(20):
            process.start(wait=False)
            if name not in ("nats", "postgres"):
                break
            try:
                process.wait_ready(60)
                break
            except AssertionError:
                if process.alive():
                    raise
                time.sleep(0.5)
        self.wanted.add(name)

    def jetstream_works(self):
        """None when every stream answers, else the reason. A stream that hangs does so on its own: each is asked."""
        try:
            client = NatsClient(self.nats.port)
        except (OSError, AssertionError) as error:
            return f"no connection: {error}"
        stream = None
        try:
            client.socket.settimeout(2)
            for stream in json.loads(client.request("$JS.API.STREAM.NAMES"))["streams"]:
                client.stream_info(stream)["state"]
            return None
        except (OSError, AssertionError, KeyError, TypeError, ValueError, IndexError) as error:
            return f"stream {stream}: {error!r}"[:200]
        finally:
            client.close()

    def mend_jetstream(self, seconds, when):
        """When a stream has no answer for `seconds`, kill -9 and a start: it hangs for good, and an operator must do the same."""
        for _ in range(3):
            reason = self.wait_jetstream(seconds)
            if reason is None:
                return
            self.say(f"         JetStream {when}: {reason}; nats-server is killed and restarted")
            self.crash("nats")
            self.revive("nats")
            seconds = max(seconds, 20)
        reason = self.wait_jetstream(seconds)
        if reason is not None:
            self.say(f"         JetStream does not come back: {reason}")

    def wait_jetstream(self, seconds):
        """None as soon as every stream answers, else the last reason why not."""
        end = time.monotonic() + seconds
        while (reason := self.jetstream_works()) is not None and time.monotonic() < end:
            time.sleep(0.05)
        return reason
