# SPDX-License-Identifier: Apache-2.0
"""systemd's units as `cmake --install` puts them: systemd can read every line, and what a service may reach stays as small as it is."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.processes import BIN, HOME, NEIGHBOURS, SERVICES

SYSTEMD = Path("/usr/lib/systemd/system")  # its own units, which ours name
pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze") or not SYSTEMD.is_dir(), reason="needs systemd-analyze and systemd's own units")
INSTANCES = [f"stentor@{name}.service" for name in [*SERVICES, *NEIGHBOURS]]
UNITS = [*INSTANCES, "stentor-migrate.service", "stentor-erase.service", "stentor-nginx.service"]


@pytest.fixture(name="root", scope="module")
def _root(tmp_path_factory):
    """What an installation has below /usr, and systemd's units."""
    root = tmp_path_factory.mktemp("root")
    done = subprocess.run(["cmake", "--install", BIN.parent, "--prefix", "/usr", "--component", "stentor"], env={**os.environ, "DESTDIR": str(root)},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shutil.copytree(SYSTEMD, root / "usr/lib/systemd/system", dirs_exist_ok=True, symlinks=True)
    for program in ("bin/stentor", "sbin/nginx", "bin/sh", "bin/kill"):
        link = root / "usr" / program
        link.parent.mkdir(exist_ok=True)
        shutil.copy("/bin/true", link)
    for name in ("bin", "sbin", "lib"):
        (root / name).symlink_to(f"usr/{name}")
    return root


def _verify(root, unit):
    return subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={root}", unit],
                          capture_output=True, text=True, timeout=60)


def _exposure(path, root):
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--root={root}", path.name],
                          capture_output=True, text=True, timeout=60)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


@pytest.mark.parametrize("unit", [*UNITS, "stentor.target", "stentor-erase.timer"])
def test_systemd_reads_every_line_of_a_unit(root, unit):
    done = _verify(root, unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_misspelt_setting_and_a_program_that_is_not_there_are_found(root, tmp_path):
    wrong = tmp_path / "root"
    shutil.copytree(root, wrong, symlinks=True)
    unit = wrong / "usr/lib/systemd/system/stentor@.service"
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHom="))
    assert "Unknown key 'ProtectHom'" in _verify(wrong, "stentor@ingest.service").stderr.replace("key name", "key")
    assert "stentor-nothing is not executable" in _verify(root, "stentor@nothing.service").stderr


@pytest.mark.parametrize("unit", UNITS)
def test_what_a_unit_may_reach_is_little(root, unit):
    """gateway.md's figures of others: nats-server 9.0, pgbouncer 9.2."""
    assert _exposure(Path(unit), root) <= 1.5


def test_a_unit_without_its_limits_is_found(root, tmp_path):
    wrong = tmp_path / "root"
    shutil.copytree(root, wrong, symlinks=True)
    unit = wrong / "usr/lib/systemd/system/stentor@.service"
    unit.write_text(re.sub(r"^(SystemCallFilter|ProtectSystem|CapabilityBoundingSet)=.*\n", "", unit.read_text(), flags=re.M))
    assert _exposure(Path("stentor@ingest.service"), wrong) > 1.5


def _settings(root, unit):
    """[(key, value)] of a unit and its drop-ins; an empty value forgets those before it, as systemd does."""
    folder = root / "usr/lib/systemd/system"
    files = [folder / re.sub("@.*service$", "@.service", unit), *sorted((folder / f"{unit}.d").glob("*.conf"))]
    settings = []
    for line in "\n".join(path.read_text() for path in files).splitlines():
        if not re.match(r"\w+=", line):
            continue
        key, value = line.split("=", 1)
        settings = settings + [(key, value)] if value else [row for row in settings if row[0] != key]
    return settings


@pytest.mark.parametrize("name", [*SERVICES, *NEIGHBOURS])
def test_a_service_is_given_the_files_that_its_options_ask_for_and_no_others(root, name):
    settings = _settings(root, f"stentor@{name}.service")
    given = {value.split(":")[0] for key, value in settings if key == "LoadCredential"}
    named = dict(value.split("=%d/") for key, value in settings if key == "Environment")
    table = subprocess.run([BIN / f"stentor-{name}", "--options-markdown"], capture_output=True, text=True, timeout=20).stdout
    known = {row.split("`")[1] for row in table.splitlines() if row.startswith("| `")}
    wanted = {"STENTOR_NATS_PASSWORD": "password", "STENTOR_DATABASE_URL": "database-url", "STENTOR_MASTER_KEY_FILE": "master.key"}
    if name == "outbox-relay":  # an application's: its file has its passwords
        wanted = {"STENTOR_OUTBOX_MAPPING": "outbox.json"}
    assert given == {"config"} | {file for option, file in wanted.items() if option in known}
    for option, file in named.items():
        assert file in given or not {option, option.removesuffix("_FILE")} & known, option


@pytest.mark.parametrize("name", [*SERVICES, *NEIGHBOURS])
def test_a_drain_ends_before_systemd_does_not_wait_any_more(root, name):
    table = subprocess.run([BIN / f"stentor-{name}", "--options-markdown"], capture_output=True, text=True, timeout=20).stdout
    drain_ms = int(re.search(r"`STENTOR_DRAIN_MS` \| `(\d+)`", table)[1])
    assert int(dict(_settings(root, f"stentor@{name}.service"))["TimeoutStopSec"]) * 1000 > drain_ms


EPOCHS, DUMPS, FILES = "/var/lib/stentor-epochs", "/var/lib/stentor-epochs-dumps", "/var/lib/stentor-files"


@pytest.mark.parametrize("name", [*SERVICES, *NEIGHBOURS])
def test_epoch_keys_are_read_by_who_has_the_option_and_written_by_ingest_alone(root, name):
    settings = _settings(root, f"stentor@{name}.service")
    table = subprocess.run([BIN / f"stentor-{name}", "--options-markdown"], capture_output=True, text=True, timeout=20).stdout
    assert (("SupplementaryGroups", "stentor-keys") in settings) == ("STENTOR_EPOCH_KEYS_DIR" in table)
    written = {path.lstrip("-") for key, value in settings if key == "ReadWritePaths" for path in value.split()} - {FILES}
    assert written == ({EPOCHS, DUMPS} if "STENTOR_KEYS_DUMP_DIR" in table else set())


def test_the_folder_of_attachments_is_written_by_the_gateway_and_read_by_the_dispatcher(root):
    gateway, dispatcher = (_settings(root, f"stentor@{name}.service") for name in ("gateway", "dispatcher"))
    assert ("ReadWritePaths", f"-{FILES}") in gateway and ("SupplementaryGroups", "stentor-files") in dispatcher
    assert not any(FILES in value for _, value in dispatcher)
    assert f"d {FILES} 2750 stentor-gateway stentor-files -" in next(root.rglob("tmpfiles.d/stentor.conf")).read_text().splitlines()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: it gives folders away")
def test_the_folders_of_epoch_keys_are_those_that_init_names_and_belong_to_ingest(root, tmp_path):
    for folder in ("etc", "var/lib"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for words in (["systemd-sysusers"], ["systemd-tmpfiles", "--create"]):
        done = subprocess.run([*words, f"--root={root}", "stentor.conf"], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "") or "Creating" in done.stderr, done.stderr
    user = {row.split(":")[0]: int(row.split(":")[2]) for row in (root / "etc/passwd").read_text().splitlines()}["stentor-ingest"]
    groups = {row.split(":")[0]: int(row.split(":")[2]) for row in (root / "etc/group").read_text().splitlines()}

    def rights(path):
        found = (root / path[1:]).stat()
        return found.st_uid, found.st_gid, found.st_mode & 0o7777
    assert rights(EPOCHS) == (user, groups["stentor-keys"], 0o2750) and rights(DUMPS) == (user, groups["stentor-ingest"], 0o700)
    made = subprocess.run([BIN / "stentor", "init", "files", "--folder", tmp_path / "etc", "--seen-as", "/etc/stentor"], capture_output=True, timeout=60)
    assert made.returncode == 0 and f'STENTOR_EPOCH_KEYS_DIR="{EPOCHS}"' in (conf := (tmp_path / "etc/ingest.conf").read_text())
    assert f'STENTOR_KEYS_DUMP_DIR="{DUMPS}"' in conf


def test_open_erasures_are_run_every_hour_with_the_files_of_the_command_line(root, tmp_path):
    timer = dict(_settings(root, "stentor-erase.timer"))
    assert timer["OnCalendar"] == "hourly" and timer["Persistent"] == "true" and timer["WantedBy"] == "stentor.target"
    settings = _settings(root, "stentor-erase.service")
    assert ("SupplementaryGroups", "stentor-keys") in settings
    given = {value.split(":")[0]: Path(value.split(":")[1]).name for key, value in settings if key == "LoadCredential"}
    assert set(given.values()) == {"cli.conf", "cli.password", "cli.database-url", "master.key"}
    # As systemd runs it: the copies can be read, and nothing else of the folder.
    etc, copies = tmp_path / "etc", tmp_path / "copies"
    assert subprocess.run([BIN / "stentor", "init", "files", "--folder", etc, "--database", "host=127.0.0.1 port=1 dbname=stentor",
                           "--nats", "nats://127.0.0.1:1"], capture_output=True, timeout=60).returncode == 0
    copies.mkdir()
    for copy, name in given.items():
        (etc / name).rename(copies / copy)
    environment = dict(value.replace("%d", str(copies)).split("=", 1) for key, value in settings if key == "Environment")
    words = dict(settings)["ExecStart"].replace("%d", str(copies)).split()[1:]
    done = subprocess.run([BIN / "stentor", *words], env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "nats://127.0.0.1:1" in done.stderr, done.stderr


def test_the_template_names_every_service_in_its_head():
    head = (HOME / "deploy/systemd/stentor@.service.in").read_text().split("[Unit]")[0]
    assert {name for name in re.findall(r"[a-z]+(?:-[a-z]+)*", head.split("(")[1].split(")")[0])} == set(SERVICES + NEIGHBOURS)
