# SPDX-License-Identifier: Apache-2.0
"""Real servers and the real binaries, as small objects that can also break things: kill(), stop(), pause()."""
import contextlib
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
import weakref
from pathlib import Path

from tests.harness import clusters

HOME = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("STENTOR_BIN", HOME / "build" / "dev" / "bin")).resolve()  # processes run in folders of their own
SERVICES = ["ingest", "gateway", "renderer", "dispatcher", "archiver", "digest-flusher", "webhook-receiver"]
NEIGHBOURS = ["outbox-relay", "order-saga", "webhook"]  # around the pipeline: a test starts those that it needs


# Of each worker its own: what one has chosen and not opened yet is no other's.
WORKERS_MAX = 8
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS_MAX
PORTS = range(10000 + WORKER * 2750, 10000 + (WORKER + 1) * 2750)


def free_port(taken=set()):  # noqa: B006 (the default is the memory)
    """A port that nothing has, below those that the system gives to clients: it is still free when its server comes
    back after a kill."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        if port in taken:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            taken.add(port)
            return port


# A bound says that a thing happens, not how fast. A machine that others load too may take three times as long.
PATIENCE = 3


def wait_until(condition, seconds=30, what="the condition"):
    """Polls until condition() is true and returns its value; fails with `what` otherwise. seconds: on a machine of its own.

    Often at first, then every tenth of a second: asking is work for a machine that is to do what is waited for."""
    end = time.monotonic() + seconds * PATIENCE
    pause = 0.01
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {seconds * PATIENCE} s")
        time.sleep(pause)
        pause = min(1.3 * pause, 0.1)


def wait_count(count, target, seconds=30, what="the count"):
    """Waits until count() is at least target. Asks seldom while much is missing: counting is work for a server that is being measured."""
    start = time.monotonic()
    first = count()
    pause = 0.05
    value = first
    while value < target:
        taken = time.monotonic() - start
        if taken > seconds * PATIENCE:
            raise AssertionError(f"{what}: {value} of {target} after {taken:.0f} s")
        time.sleep(pause)
        value = count()
        rate = (value - first) / (time.monotonic() - start)
        pause = min(max((target - value) / rate / 2, 0.05), 2) if rate > 0 else min(2 * pause, 0.5)
    return value


FAULTS = {99, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS}  # 99: of a sanitizer (Service.environment)


class Process:
    """One program with its log file. Sub-classes give argv(), ready() and perhaps the user."""

    name = "process"
    started = weakref.WeakSet()  # of this worker: a failing test shows what they logged

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / f"{self.name}.log"
        self.child = None

    def argv(self):
        raise NotImplementedError

    def environment(self):
        return None

    def user(self):
        return None

    def ready(self):
        return True

    def start(self, wait=True):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.argv(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment(), user=self.user(),
                cwd="/", start_new_session=True)
        Process.started.add(self)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, seconds=40):
        def check():
            if self.child.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.child.returncode}:\n{self.tail()}")
            return self.ready()
        wait_until(check, seconds, f"{self.name} being ready\n{self.tail()}")

    def kill(self):
        """kill -9, as a crash."""
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def stop(self, number=signal.SIGTERM, seconds=30):
        """Asks it to end and returns its exit status. A program that a sanitizer or a signal of its own ended before fails the test."""
        if self.child is None or self.child.poll() is not None:
            status = None if self.child is None else self.child.returncode
            if status in FAULTS:
                raise AssertionError(f"{self.name} had ended with {status}:\n{self.tail(60)}")
            return status
        self.child.send_signal(number)
        try:
            return self.child.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"{self.name} did not end within {seconds * PATIENCE} s of signal {number}:\n{self.tail()}") from None

    def exit_status(self, seconds=20):
        """Of a program that ends by itself."""
        return self.child.wait(seconds * PATIENCE)

    def pause(self, paused=True):
        self.child.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def alive(self):
        return self.child is not None and self.child.poll() is None

    def tail(self, lines=25):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def state(self):
        return "runs" if self.alive() else f"ended with {self.child.returncode}"


class Postgres(Process):
    """A throw-away cluster; every role logs in without a password from loopback."""

    name = "postgres"

    def __init__(self, folder, durable=False):
        super().__init__(folder)
        self.port = free_port()
        self.durable = durable
        self.bin = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))[-1]
        self.data = self.folder / "data"
        self.kept, self.keeping = None, threading.Lock()  # the connection of query(), and who uses it

    def user(self):
        return "postgres" if os.getuid() == 0 else None

    def start(self, wait=True):
        if not self.data.exists():
            self.provide("empty", self.initdb)
        super().start(wait)
        return self

    def start_installed(self):
        """With the database 'stentor', in which every migration was applied. For a cluster that is not there yet."""
        self.provide("installed", self.install)
        return self.start()

    def provide(self, kind, make):
        if self.user():
            shutil.chown(self.folder, self.user())
        clusters.provide(kind, make, self.data)

    def initdb(self):
        subprocess.run(
            [self.bin / "initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8",
             "--locale=C.UTF-8", "--no-sync"],
            check=True, user=self.user(), stdout=subprocess.DEVNULL, cwd="/")

    def install(self):
        self.start()
        self.create_database()
        environment = {"PATH": os.environ["PATH"], "STENTOR_HOME": str(HOME), "STENTOR_DATABASE_URL": self.url("stentor_owner")}
        done = subprocess.run([BIN / "stentor", "migrate", "--skip-nats"], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert self.stop() == 0, self.tail()

    def argv(self):
        # Shared memory by files in the data folder: what a killed server leaves behind goes with the folder.
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "100", "dynamic_shared_memory_type": "mmap",
                   "fsync": "on" if self.durable else "off", "log_min_messages": "warning"}
        return [self.bin / "postgres", "-D", self.data, "-p", str(self.port)] + [
            word for name, value in options.items() for word in ("-c", f"{name}={value}")]

    def ready(self):
        return subprocess.run([self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0

    def stop(self, number=signal.SIGINT, seconds=30):
        return super().stop(number, seconds)

    def kill(self):
        """kill -9 of the whole cluster, as when its container dies."""
        super().kill()
        wait_until(self.end_orphans, 30, "every process of the cluster being gone")

    def end_orphans(self):
        """Processes that outlive their postmaster let no other one start. Most end when they notice; one that waits for a lock
        whose holder was killed never does. Each stands in the data folder. True: there are none, and their shared memory is gone too:
        a machine has 4,096 segments."""
        orphans, data = 0, os.path.realpath(self.data)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(process / "cwd") == data:
                    os.kill(int(process.name), signal.SIGKILL)
                    orphans += 1
        if orphans == 0:
            self.remove_segment()
        return orphans == 0

    def remove_segment(self):
        with contextlib.suppress(OSError, IndexError):  # it ended in order, or never started
            segment = (self.data / "postmaster.pid").read_text().splitlines()[6].split()[1]
            subprocess.run(["ipcrm", "-m", segment], stderr=subprocess.DEVNULL)

    def url(self, role="postgres", database="stentor"):
        return f"host=127.0.0.1 port={self.port} dbname={database} user={role}"

    def create_database(self, name="stentor"):
        """An empty database that `stentor migrate` can fill as stentor_owner: what `stentor migrate --bootstrap` does first."""
        self.query(f"CREATE DATABASE {name}", database="postgres")
        self.query("BEGIN;" + "".join((HOME / "migrations" / file).read_text() for file in ("bootstrap.sql", "hand_over.sql")) + "COMMIT",
                   database=name)

    def query(self, sql, *params, role="postgres", database="stentor", tenant=None):
        """Rows. What it sets in its session ends with it: role, settings, locks."""
        if (role, database, tenant) != ("postgres", "stentor", None) or not self.keeping.acquire(blocking=False):
            self.let_go()
            return self.query_once(sql, params, role, database, tenant)
        try:
            return self.query_kept(sql, params)
        finally:
            self.keeping.release()

    def query_once(self, sql, params, role, database, tenant):
        connection = self.connect(role, database)
        try:
            with connection.cursor() as cursor:
                if tenant is not None:
                    cursor.execute("SELECT set_config('app.tenant_id', %s, false)", (tenant,))
                return self.rows(cursor, sql, params)
        finally:
            connection.close()

    def query_kept(self, sql, params):
        """By the connection of the last one, unless that has ended: a new one reads the catalogue of 600 partitions first, 5 to 24 ms of CPU time."""
        if self.kept is None or self.kept.closed or select.select([self.kept], [], [], 0)[0]:
            self.close_kept()
            self.kept = self.connect("postgres", "stentor")
        try:
            cursor = self.kept.cursor()
            found = self.rows(cursor, sql, params)
        except BaseException:
            self.close_kept()
            raise
        try:
            cursor.execute("DISCARD ALL")
        except self.kept.Error:  # the server died just now
            self.close_kept()
        return found

    def let_go(self):
        """A database with a connection can be no template, nor be renamed."""
        if self.keeping.acquire(blocking=False):
            self.close_kept()
            self.keeping.release()

    def close_kept(self):
        if self.kept is not None:
            self.kept.close()
            self.kept = None

    def connect(self, role, database):
        import psycopg2
        connection = psycopg2.connect(self.url(role, database))
        connection.autocommit = True
        return connection

    @staticmethod
    def rows(cursor, sql, params):
        cursor.execute(sql, params or None)
        return cursor.fetchall() if cursor.description else []


class Nats(Process):
    """nats-server with JetStream and the users of the topology; every password is 'pw'."""

    name = "nats"

    def __init__(self, folder):
        super().__init__(folder)
        self.port = free_port()
        self.config = self.folder / "nats.conf"

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self, wait=True):
        passwords = self.folder / "passwords"
        users = ["stentor-admin", "stentor-cli", "stentor-subscriber"] + [f"stentor-{s}" for s in SERVICES + NEIGHBOURS]
        passwords.write_text("relay stentor-outbox-relay tenants=*\nrelay memo-app tenants=memo\nmemo-app=pw\n"
                             "application acme-app tenants=acme\napplication beta-app tenants=beta\nacme-app=pw\nbeta-app=pw\n"
                             "application tenant-service tenants=platform\ntenant-service=pw\n"
                             "subscriber stentor-subscriber tenant=acme\n" +
                             "".join(f"{user}=pw\n" for user in users))
        block = subprocess.run([BIN / "stentor", "nats-config", "--passwords", passwords], check=True, capture_output=True,
                               text=True).stdout
        self.config.write_text(
            f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.folder}/store", max_file_store: 1TB }}\n{block}')
        super().start(wait)
        return self

    def argv(self):
        return ["nats-server", "-c", self.config]

    def ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False


class Service(Process):
    """One of Stentor's services; options as keyword arguments of the environment."""

    def __init__(self, folder, service, options, instance=""):
        self.service = service
        self.name = service + instance
        self.options = dict(options)
        self.admin_port = free_port()
        super().__init__(folder)

    def argv(self):
        return [BIN / f"stentor-{self.service}"]

    def environment(self):
        fixed = {"PATH": os.environ["PATH"], "STENTOR_ADMIN_PORT": str(self.admin_port), "STENTOR_LOG_FORMAT": "json",
                 "STENTOR_DRAIN_MS": 20000 * PATIENCE,
                 "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:handle_abort=1", "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
                 "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "halt_on_error=1:exitcode=99")}
        return {name: str(value) for name, value in {**fixed, **self.options}.items()}

    def get(self, path, **headers):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", headers=headers)
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self):
        return self.get("/readyz")[0] == 200

    def metric(self, name):
        """Sum of a metric over its labels; or one series: 'stentor_dispatcher_sent_total{lane="high"}'."""
        lines = [line for line in self.get("/metrics")[1].splitlines() if name in (line.split("{")[0].split(" ")[0], line.rsplit(" ", 1)[0])]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


class Nginx(Process):
    """The one address, with the file that is shipped (deploy/nginx). Its services believe what it says of a client because it comes
    from 127.0.0.2; whoever calls a service's own port comes from 127.0.0.1 and is a client like any other."""

    name = "nginx"
    SOURCE = "127.0.0.2"

    def __init__(self, folder, port, **values):
        super().__init__(folder)
        self.port = port
        self.values = {"LISTEN": f"127.0.0.1:{port}", "FOLDER": self.folder, "SOURCE": self.SOURCE, "WORKERS": "1", **values}
        self.config = self.folder / "nginx.conf"

    def user(self):
        return "www-data" if os.getuid() == 0 else None

    def start(self, wait=True):
        if self.user():
            shutil.chown(self.folder, self.user())
        words = [f"{name}={value}" for name, value in self.values.items()]
        done = subprocess.run([HOME / "deploy" / "nginx" / "configure", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.config.write_text(self.configured(done.stdout))
        if self.user():
            self.log.touch()
            shutil.chown(self.log, self.user())  # which opens it by name for LOG=/dev/stderr
        return super().start(wait)

    def configured(self, text):
        """For a test that wants other times."""
        return text

    def argv(self):
        return ["/usr/sbin/nginx", "-e", "stderr", "-c", self.config]

    def ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def kill(self):
        """With its workers, which would go on alone."""
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
