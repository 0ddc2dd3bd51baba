# SPDX-License-Identifier: Apache-2.0
"""A container engine of our own, images made from a Debian that is here or can be fetched, and deploy/docker/compose.yaml run with them.

Everything is in one folder outside the repository (TEST_CONTAINERS, default ~/.cache/stentor-containers), which a later run uses again: the
images' layers, the base system, compose. What cannot be had skips the test with the reason."""
import json
import os
import random
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.harness.processes import HOME, free_port, wait_until

# Not STENTOR_*: the programs refuse what they do not know.
FOLDER = Path(os.environ.get("TEST_CONTAINERS", Path.home() / ".cache" / "stentor-containers"))
FILE = HOME / "deploy" / "docker" / "compose.yaml"
PUBLIC_BASE = "debian:trixie-slim"
LOCAL_BASE = "stentor-base:trixie"


def run(*words, timeout=120, check=True, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout, **more)
    assert not check or done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def docker_command():
    """The client of the daemon's own package, when it is there: another one may be too new for it."""
    return "/usr/bin/docker" if os.access("/usr/bin/docker", os.X_OK) else shutil.which("docker")


def find_compose():
    """Compose v2: a plugin or a program; Debian 12 has neither, so the package of Debian 13 is taken apart into the folder."""
    made = FOLDER / "compose" / "usr/libexec/docker/cli-plugins/docker-compose"
    for words in ([docker_command(), "compose"], ["docker-compose"], [made]):
        if words[0] and run("/bin/sh", "-c", '"$@" version --short', "sh", *words, check=False).stdout.startswith("2."):
            return words
    fetch_compose()
    return [made]


def fetch_compose():
    folder = FOLDER / "apt"
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n")
    (folder / "apt.conf").write_text(f'Dir::State "{folder}/state";\nDir::Cache "{folder}/cache";\nDir::Etc::SourceList "{folder}/sources.list";\n'
                                     'Dir::Etc::SourceParts "-";\n')
    environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
    for words in (["update", "-qq"], ["download", "docker-compose/trixie"]):
        done = run("apt-get", *words, check=False, env=environment, cwd=folder, timeout=300)
        if done.returncode != 0:
            pytest.skip(f"no compose v2 here, and Debian 13's cannot be fetched: {done.stderr[-300:]}")
    run("dpkg", "-x", next(folder.glob("docker-compose_*.deb")), FOLDER / "compose")


class Engine:
    """dockerd as a child of the test. An engine that answers already (DOCKER_HOST, or the system's) is used instead, and left running."""

    def __init__(self):
        self.child = None
        if docker_command() is None:
            pytest.skip("no container engine here: apt-get install docker.io iptables debootstrap")
        self.environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
        if self.docker("version", check=False).returncode != 0:
            self.start()
        self.compose = find_compose()
        self.base = self.find_base()

    def start(self):
        if os.getuid() != 0 or shutil.which("dockerd") is None:
            pytest.skip("no container engine answers, and only root can start one (dockerd of docker.io)")
        FOLDER.mkdir(parents=True, exist_ok=True)
        socket, pid = f"/run/stentor-containers-{os.getpid()}.sock", f"/run/stentor-containers-{os.getpid()}.pid"
        self.environment["DOCKER_HOST"] = f"unix://{socket}"
        with open(FOLDER / "dockerd.log", "wb") as log:
            # It ends, and its containers with it, also when this process is killed.
            self.child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "dockerd", "--data-root", FOLDER / "data",
                 "--exec-root", f"/run/stentor-containers-{os.getpid()}", "--pidfile", pid, "-H", f"unix://{socket}"],
                stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until(lambda: self.child.poll() is not None or self.docker("version", check=False).returncode == 0, 40, "dockerd")
        except AssertionError:
            self.stop()
        if self.child is None or self.child.poll() is not None:
            pytest.skip(f"dockerd does not run here: {(FOLDER / 'dockerd.log').read_text()[-300:]}")

    def stop(self):
        if self.child is not None:
            self.child.terminate()
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
            self.child = None

    def docker(self, *words, **more):
        return run(docker_command(), *words, env=self.environment, **more)

    def has_image(self, name):
        return self.docker("image", "inspect", name, check=False).returncode == 0

    def find_base(self):
        """Debian 13 as an image: from the registry, or made of its packages."""
        for name in (PUBLIC_BASE, LOCAL_BASE):
            if self.has_image(name):
                return name
        if self.docker("pull", "-q", PUBLIC_BASE, check=False, timeout=300).returncode == 0:
            return PUBLIC_BASE
        root = FOLDER / "trixie"
        if not (root / "usr/bin/apt-get").exists() or (root / "debootstrap").exists():
            if shutil.which("debootstrap") is None:
                pytest.skip(f"{PUBLIC_BASE} cannot be pulled: apt-get install debootstrap")
            shutil.rmtree(root, ignore_errors=True)
            done = run("debootstrap", "--variant=minbase", "trixie", root, check=False, timeout=1200)
            if done.returncode != 0:
                pytest.skip(f"{PUBLIC_BASE} can neither be pulled nor made of packages: {done.stdout[-300:]}")
        run("/bin/sh", "-c", 'tar -C "$1" --exclude="./var/cache/apt/archives/*.deb" -c . | "$2" import - "$3"', "sh", root, docker_command(), LOCAL_BASE,
            env=self.environment, timeout=300)
        return LOCAL_BASE


class Product:
    """compose.yaml as a project of its own: its ports, its network, its volumes."""

    def __init__(self, engine, name, **variables):
        self.engine = engine
        self.name = name
        self.port, self.mailbox_port = free_port(), free_port()
        self.environment = {
            **engine.environment, "BASE": engine.base, "STENTOR_PORT": str(self.port), "STENTOR_MAILBOX_PORT": str(self.mailbox_port),
            "STENTOR_SUBNET": f"10.213.{random.SystemRandom().randrange(256)}.0/24", "STENTOR_TAG": "test", "STENTOR_BYTES_PERCENT": "2", **variables}

    def compose(self, *words, timeout=180, **more):
        return run(*self.engine.compose, "-p", self.name, "-f", FILE, *words, env=self.environment, timeout=timeout, **more)

    def build(self, *services):
        return self.compose("build", *services, timeout=3600)

    def up(self, replicas=1, services=()):
        scale = [word for name in services for word in ("--scale", f"{name}={replicas}")]
        start = time.monotonic()
        done = self.compose("up", "-d", "--wait", "--wait-timeout", "240", *scale, check=False, timeout=300)
        assert done.returncode == 0, f"{done.stderr[-1000:]}\n{self.compose('ps', '-a', check=False).stdout}\n{self.last_words()}"
        return time.monotonic() - start

    def last_words(self):
        """What the one-shots said, and a little of all others."""
        once = self.compose("logs", "--no-log-prefix", "--tail", "6", "files", "init", "demo", check=False).stdout
        return f"{once[-3000:]}\n{self.compose('logs', '--tail', '4', check=False).stdout[-6000:]}"

    def down(self):
        self.compose("--profile", "*", "down", "-v", "-t", "30", check=False)

    def scale(self, service, count):
        self.compose("up", "-d", "--no-deps", "--no-recreate", "--scale", f"{service}={count}", service)

    def containers(self, service):
        return self.compose("ps", "-q", service).stdout.split()

    def inspect(self, container):
        return json.loads(self.engine.docker("inspect", container).stdout)[0]

    def address(self, container, network="back"):
        """Reached from this machine, as every container of a bridge is."""
        return self.inspect(container)["NetworkSettings"]["Networks"][f"{self.name}_{network}"]["IPAddress"]

    def stentor(self, *words, **more):
        """The documented way: a container of the image with the operator's settings."""
        return self.compose("run", "--rm", "-T", "stentor", *words, **more)

    def volume_file(self, volume, path, user="10000:10000"):
        """(exit status, text) of `cat` as that user, with the volume mounted as the services have it."""
        done = self.engine.docker("run", "--rm", "--network", "none", "-u", user, "-v", f"{self.name}_{volume}:/volume:ro", f"stentor-debug:{self.environment['STENTOR_TAG']}",
                                  "cat", f"/volume/{path}", check=False)
        return done.returncode, done.stdout

    def mails(self, limit=100000):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.mailbox_port}/mails.json?limit={limit}", timeout=20) as answer:
            return json.load(answer)["data"]

    def trust(self):
        return ssl.create_default_context(cadata=self.volume_file("tls", "fullchain.pem")[1])


def readiness(address, timeout=2):
    """(status, text) of a service's admin port; 0: no answer."""
    try:
        with urllib.request.urlopen(f"http://{address}:9400/readyz", timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)
