# SPDX-License-Identifier: Apache-2.0
"""deploy/local runs each process as a system user of its own, and a service's user reads its own passwords and no other's. The functions of
lib.sh are run for real, in a folder of the test's; users that were not there before are removed again."""
import grp
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.harness.processes import BIN, HOME, wait_until

LOCAL = HOME / "deploy" / "local"
SERVICES = re.search(r'^SERVICES="([^"]*)"', (LOCAL / "lib.sh").read_text(), re.M)[1].split()
PROCESSES = ["postgres", "nats", "mailbox", "vendor", "s3", *SERVICES]
KEYLESS = ["archiver", "outbox-relay"]

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="making users needs root")


class Local:
    def __init__(self, data):
        self.data = data

    def run(self, script):
        return subprocess.run(["bash", "-euo", "pipefail", "-c", f'. "{LOCAL}/lib.sh"\n{script}'], capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "STENTOR_DATA": str(self.data), "QUIET": "1"})

    def do(self, script):
        done = self.run(script)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def reads(self, process, path):
        return self.run(f'as_user_of {process} cat "{self.data}/{path}"').returncode == 0


def _users():
    return {user.pw_name for user in pwd.getpwall()} | {group.gr_name for group in grp.getgrall()}


@pytest.fixture(name="local", scope="module")
def _local():
    data, before = Path(tempfile.mkdtemp(prefix="stentor-local-")), _users()
    local = Local(data)
    local.do("for name in $SERVERS $SERVICES; do make_user $name; done; make_folders")
    for name in SERVICES:
        local.do(f'echo STENTOR_NATS_PASSWORD=geheim | put_private {name}.conf "$(user_of {name})"')
        if name not in KEYLESS:
            local.do(f"let_read_keys {name}")
    local.do('echo geheim | put_private nats.conf "$(user_of nats)"; echo geheim | put_private master.key $KEYS_GROUP')
    yield local
    shutil.rmtree(data)
    made = _users() - before
    for name in sorted(made & {user.pw_name for user in pwd.getpwall()}):
        subprocess.run(["userdel", name], check=True, capture_output=True)
    for name in sorted(made & {group.gr_name for group in grp.getgrall()}):
        subprocess.run(["groupdel", name], check=True, capture_output=True)


def test_finding_16_the_script_gives_the_key_to_those_that_ask_for_it():
    """Asked of the programs by `up` itself, so that who needs the key is written down in one place."""
    asks = {name for name in SERVICES if "STENTOR_MASTER_KEY_FILE" in subprocess.run(
        [BIN / f"stentor-{name}", "--options-markdown"], capture_output=True, text=True, timeout=20).stdout}
    assert set(SERVICES) - asks == set(KEYLESS)
    assert re.search(r"--options-markdown \| grep -q STENTOR_MASTER_KEY_FILE \|\| let_read_keys", (LOCAL / "up").read_text())


def test_finding_16_every_file_with_a_password_is_put_privately():
    text = (LOCAL / "up").read_text()
    assert not re.search(r'>"\$DATA/etc/(\$name|nats)\.conf"', text) and "chown \"$USER_NAME\"" not in text
    assert text.index("umask 077") < text.index('"$DATA/etc/passwords" "$DATA/etc/ports"')


@needs_root
@pytest.mark.parametrize("name", SERVICES)
def test_finding_16_a_service_reads_its_own_settings_and_no_other_process_does(local, name):
    assert [process for process in PROCESSES if local.reads(process, f"etc/{name}.conf")] == [name]
    assert not local.run(f'as_user_of {name} sh -c "echo x >>{local.data}/etc/{name}.conf"').returncode == 0


@needs_root
def test_finding_16_the_master_key_is_read_by_those_that_need_it_alone(local):
    assert [process for process in PROCESSES if local.reads(process, "etc/master.key")] == [name for name in SERVICES if name not in KEYLESS]
    assert [process for process in PROCESSES if local.reads(process, "etc/nats.conf")] == ["nats"]


@needs_root
def test_a_vendors_secret_is_read_by_the_dispatcher_alone(local):
    local.do(f'touch "$DATA/etc/ports"; prepare_vendor "{LOCAL}/vendor-double"')
    assert [process for process in PROCESSES if local.reads(process, "etc/credentials/postmark-demo")] == ["dispatcher"]
    assert [process for process in PROCESSES if local.reads(process, "etc/vendor.token")] == ["vendor"]


@needs_root
def test_finding_16_a_process_runs_as_its_user_and_writes_where_it_may(local):
    try:
        local.do("start archiver sleep 60")
        pid = int((local.data / "run/archiver.pid").read_text())
        uid = pwd.getpwnam("stentor-archiver").pw_uid
        wait_until(lambda: os.stat(f"/proc/{pid}").st_uid == uid, 10, "the process running as stentor-archiver")
        log = (local.data / "log/archiver.log").stat()
        assert (log.st_uid, log.st_mode & 0o777) == (uid, 0o600)
        for folder in ("etc", "run", "log", "bin", "postgres", "nats", "mail", "s3", "."):
            assert local.run(f'as_user_of archiver sh -c "echo x >{local.data}/{folder}/x"').returncode != 0, folder
        for folder in ("etc", "run", "log", "postgres", "nats", "mail", "s3"):
            assert local.run(f'as_user_of archiver ls "{local.data}/{folder}"').returncode != 0, folder
    finally:
        local.do("stop archiver sleep")


@needs_root
def test_a_process_holds_nothing_that_its_caller_had_open(local):
    """`flock FILE up` would else hold its lock, and a pipe its reader, for as long as the services run."""
    try:
        local.do(f'exec 9>"{local.data}/lock"; flock 9; start archiver sleep 60')
        pid = int((local.data / "run/archiver.pid").read_text())
        wait_until(lambda: os.readlink(f"/proc/{pid}/exe").endswith("sleep"), 10, "the program in place of the shell")
        assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]
        local.do(f'flock -n "{local.data}/lock" true')
    finally:
        local.do("stop archiver sleep")


@needs_root
def test_finding_16_what_one_user_had_is_given_to_those_whom_it_belongs_to(local):
    """As an installation from before it was so: all in the name of one user."""
    (local.data / "etc/users").unlink()
    (local.data / "postgres/base").write_text("x")
    (local.data / "mail/new/mail").write_text("x")
    subprocess.run(["chown", "-R", "nobody:", local.data], check=True)
    local.do("make_folders")
    assert not local.reads("ingest", "etc/ingest.conf")  # until `up` puts it again
    local.do('echo x | put_private ingest.conf "$(user_of ingest)"')
    assert local.reads("ingest", "etc/ingest.conf") and not local.reads("renderer", "etc/ingest.conf")
    for process, path in (("postgres", "postgres/base"), ("mailbox", "mail/new/mail")):
        assert (local.data / path).owner() == f"stentor-{process}"
    assert (local.data / "etc").owner() == local.data.owner() == "root"
