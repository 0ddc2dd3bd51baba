# SPDX-License-Identifier: Apache-2.0
"""The .deb packages in fresh Debian 12 and 13 roots: built there, installed by apt, run by systemd, upgraded under load, removed, purged."""
import re
import shutil
import subprocess
import threading
import time

import pytest

from tests.harness import debian_root
from tests.harness.debian_root import Root
from tests.harness.pipeline import Pipeline
from tests.harness.processes import HOME, SERVICES, Nginx, Service, free_port, wait_until
from tests.integration.faults.test_kill import CHUNK, FAST, Load, check_nothing_lost_nothing_doubled

pytestmark = [pytest.mark.long, pytest.mark.skipif(debian_root.why_not() is not None, reason=str(debian_root.why_not()))]
SUITES = {"bookworm": "12", "trixie": "13"}
OLD, NEW = "0.0.8", "0.0.9"


class UntilEnough(Load):
    """Arrays of 100 until `enough` is set; `longest_s` is the longest wait for a 202, repetitions included."""

    def __init__(self, pipeline):
        super().__init__(pipeline, total=0)
        self.enough, self.longest_s = threading.Event(), 0.0

    def run(self):
        while not self.enough.wait(0.5):
            start = time.monotonic()
            bodies = [{"to": f"user{self.total + i}@example.com", "template": "welcome", "variables": {"name": "U"}} for i in range(CHUNK)]
            self.ids += self.post(bodies, f"chunk-{self.total}")
            self.total += CHUNK
            self.longest_s = max(self.longest_s, time.monotonic() - start)


def _packages_of(name):
    words = subprocess.run(["bash", "-c", f'. {HOME}/deploy/local/packages && echo ${name}'], capture_output=True, text=True, check=True).stdout
    return words.split()


def _build(suite, version, output):
    """On this machine when it is of that release, else in a root that has what a build needs."""
    words = [HOME / "deploy/deb/build", "--version", version, "--output", output, "--build", HOME / "build" / f"package-{suite}"]
    if f"VERSION_CODENAME={suite}" in open("/etc/os-release", encoding="utf-8").read():
        done = subprocess.run(words, capture_output=True, text=True, timeout=3000)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    else:
        base = debian_root.kept(suite, "build", lambda root: root.install(*_packages_of("BUILD_PACKAGES"), *_packages_of("WEB_PACKAGES"), "dpkg-dev", "file"))
        Root(suite, base, binds=[HOME, output]).run(*words, timeout=3000)


@pytest.fixture(name="suite", scope="module", params=SUITES)
def _suite(request):
    return request.param


@pytest.fixture(name="packages", scope="module")
def _packages(suite, tmp_path_factory):
    """{version: folder with both packages}"""
    made = {version: tmp_path_factory.mktemp(f"{suite}-{version}") for version in (OLD, NEW)}
    for version, folder in made.items():
        _build(suite, version, folder)
        assert sorted(path.name for path in folder.iterdir()) == [
            f"{name}_{version}-1~deb{SUITES[suite]}_amd64.deb" for name in ("stentor-cli", "stentor")]
    return made


def _apt_install(root, folder):
    """`apt install` of both packages, as an operator does it; what they depend on comes from Debian."""
    place = root.folder / "var/tmp" / folder.name
    shutil.copytree(folder, place)
    root.run("apt-get", "update", "-qq")
    said = root.run("sh", "-c", f"apt-get install -y --no-install-recommends /var/tmp/{folder.name}/*.deb")
    shutil.rmtree(place)
    return said


def _left(root):
    return sorted(path for path in root.files() if "stentor" in path)


def test_lintian_has_nothing_to_say(packages):
    if not shutil.which("lintian"):
        pytest.skip("lintian is not here: apt-get install lintian")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *packages[NEW].iterdir()], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_a_root_without_systemd_has_the_programs_and_nothing_of_them_after_a_purge(suite, packages, tmp_path):
    """As in a container: nothing is started, no user is made, nothing asks for systemd."""
    root = Root.fresh(suite, tmp_path / "root")
    users = (root.folder / "etc/passwd").read_text()
    _apt_install(root, packages[OLD])
    assert "stentor help COMMAND" in root.run("stentor", "--help")
    for name in SERVICES:
        assert root.run(f"stentor-{name}", "--version") == f"stentor-{name} {OLD}\n"
    assert (root.folder / "etc/passwd").read_text() == users and not (root.folder / "etc/stentor").exists()
    assert not list((root.folder / "etc/systemd/system").glob("**/stentor@*"))
    root.run("apt-get", "purge", "-y", "stentor", "stentor-cli")
    assert _left(root) == []


class Unit(Service):
    """A service as systemd runs it from its package; /etc/stentor has what `stentor init files` writes."""

    def __init__(self, root, folder, service, options):
        self.root, self.unit = root, f"stentor@{service}.service"
        super().__init__(folder, service, options)

    def write_settings(self):
        etc = self.root.folder / "etc/stentor"
        settings = {**self.options, "STENTOR_ADMIN_PORT": self.admin_port}
        secrets = {"password": settings.pop("STENTOR_NATS_PASSWORD"), "database-url": settings.pop("STENTOR_DATABASE_URL")}
        shutil.copy(settings.pop("STENTOR_MASTER_KEY_FILE"), etc / "master.key")
        for name, text in secrets.items():
            (etc / f"{self.service}.{name}").write_text(text)
        (etc / f"{self.service}.conf").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def start(self, wait=True):
        self.write_settings()
        self.root.run("systemctl", "enable", "-q", self.unit)
        self.root.run("systemctl", "start", "--no-block", self.unit)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, seconds=60):
        try:
            wait_until(self.ready, seconds, f"{self.unit} being ready")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from None

    def show(self, *names):
        return self.root.run("systemctl", "show", "--value", *(f"--property={name}" for name in names), self.unit).split()

    def alive(self):
        return self.root.init is not None and self.show("ActiveState") == ["active"]

    def stop(self, *_args):
        self.root.run("systemctl", "stop", self.unit)
        return int(self.show("ExecMainStatus")[0])

    def kill(self):
        self.root.run("systemctl", "kill", "--signal=KILL", self.unit, check=False)

    def tail(self, lines=25):
        return self.root.run("sh", "-c", f"systemctl status --no-pager -l '{self.unit}'; journalctl --no-pager -n {lines} -u '{self.unit}'", check=False)

    def version(self):
        found = re.search(r'stentor_[a-z_]*\{[^}]*version="([^"]*)"', self.get("/metrics")[1])
        return found and found[1]


class Installed(Pipeline):
    """The harness's servers, and the services from the packages in a root."""

    def __init__(self, root):
        super().__init__(FAST)
        self.root = root

    def service(self, name, instance="", **options):
        return Unit(self.root, self.folder / "services", name, super().service(name, instance, **options).options)

    def bring_up(self, services):
        etc = self.root.folder / "etc/stentor"
        etc.mkdir(mode=0o700)
        (etc / "admin.conf").write_text(f"STENTOR_NATS_URL={self.nats.url}\nSTENTOR_NATS_USER=stentor-admin\n")
        (etc / "admin.password").write_text("pw")
        (etc / "owner.database-url").write_text(self.postgres.url("stentor_owner"))
        return super().bring_up(services)


@pytest.fixture(name="root")
def _root(suite, tmp_path):
    def prepare(root):
        root.install("systemd", "systemd-sysv", "nginx", "ca-certificates")
        root.run("systemctl", "mask", "nginx.service")  # port 80 is this machine's

    root = Root.fresh(suite, tmp_path / "root", kind="systemd", prepare=prepare)
    why_not = root.boot()
    if why_not:
        pytest.skip(why_not)
    yield root
    root.halt()


def _check_address(root, pipeline):
    """stentor-nginx serves what the services answer."""
    port = free_port()
    upstreams = {f"STENTOR_NGINX_{name}": where for name, where in pipeline.upstreams().items()}
    settings = {"STENTOR_NGINX_LISTEN": f"127.0.0.1:{port}", "STENTOR_NGINX_SOURCE": Nginx.SOURCE, **upstreams}
    (root.folder / "etc/stentor/nginx.env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    root.run("systemctl", "start", "stentor-nginx")

    def answers():
        try:
            return pipeline.post({}, path="/v1/notifications", port=port)[0] == 422
        except OSError:
            return False
    wait_until(answers, 20, "an answer through stentor-nginx")


def test_an_installation_from_its_first_start_to_its_purge(root, packages):
    said = _apt_install(root, packages[OLD])
    assert not re.search(r"(?im)\berror\b", said), said
    assert root.run("systemctl", "list-units", "--no-legend", "stentor*").strip() == ""
    said = root.run("systemctl", "start", "stentor@ingest", check=False)
    assert "Assertion failed" in said  # no configuration: it says so and starts nothing

    pipeline = Installed(root)
    pipeline.start()
    try:
        units = [pipeline.services[name] for name in SERVICES]
        assert root.run("systemctl", "is-active", "stentor-migrate").strip() == "active"
        _check_address(root, pipeline)
        # Users that exist while their service runs, and no other's files.
        users = {unit.show("UID")[0] for unit in units}
        assert len(users) == len(units) and "0" not in users and "[not" not in users
        before = {unit.name: unit.show("MainPID")[0] for unit in units}

        load = UntilEnough(pipeline)
        load.start()
        wait_until(lambda: load.total >= 3 * CHUNK, 60, "a load that goes on")
        _apt_install(root, packages[NEW])
        for unit in units:
            unit.wait_ready()
            assert unit.version() == NEW and unit.show("MainPID")[0] != before[unit.name], unit.tail()
        behind = load.total
        wait_until(lambda: load.total >= behind + 3 * CHUNK, 60, "a load that goes on behind the upgrade")
        load.enough.set()
        load.join()
        doubled, unknown = check_nothing_lost_nothing_doubled(pipeline, load)
        print(f"upgraded under {load.total} notifications; the longest wait for a 202 was {load.longest_s:.1f} s")
        assert (doubled, unknown) == (0, 0)

        # Removing stops everything and keeps the settings; purging forgets all but the master key.
        root.run("apt-get", "remove", "-y", "stentor")
        assert root.run("sh", "-c", "cat /proc/[0-9]*/comm | grep ^stentor || true") == ""
        assert (root.folder / "etc/stentor/ingest.conf").exists()
        said = root.run("apt-get", "purge", "-y", "stentor", "stentor-cli")
        assert "/etc/stentor/master.key is kept" in said
        assert _left(root) == ["etc/stentor", "etc/stentor/master.key"]
    finally:
        pipeline.kill()
