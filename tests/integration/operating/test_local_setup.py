# SPDX-License-Identifier: Apache-2.0
"""What the scripts of a fresh machine say and leave: deploy/local, tests/run, tests/bench."""
import os
import shutil
import subprocess

import pytest
import yaml

from tests.harness.objectstore import ceph
from tests.harness.objectstore.client import Bucket
from tests.harness.objectstore.sigv4 import Credentials
from tests.harness.processes import BIN, HOME

LOCAL = HOME / "deploy" / "local"


def _run(*command, **environment):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"], **environment})


def test_a_daemon_holds_no_file_of_its_starter(tmp_path):
    """`flock LOCK deploy/local/up` held the lock as long as the daemons ran."""
    done = _run("bash", "-euc", f'. "{LOCAL}/lib.sh"; exec 7>"{tmp_path}/lock" 9>&7; (close_inherited; exec ls /proc/self/fd)')
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"0", "1", "2", "3"}, "3 is the folder that ls reads"
    text = (LOCAL / "lib.sh").read_text()
    assert text.count("&& close_inherited && exec setsid") == text.count("exec setsid") == 2


@pytest.mark.skipif(os.getuid() != 0, reason="down needs root")
def test_down_says_what_a_wipe_leaves(tmp_path):
    data = tmp_path / "stentor"
    (data / "etc").mkdir(parents=True)
    (data / "etc/ports").write_text("api=1\n")
    done = _run(LOCAL / "down", "--wipe", STENTOR_DATA=str(data))
    assert done.returncode == 0 and not data.exists(), done.stderr
    for left in ("Debian packages", "system users stentor-*", "create_main_cluster", "deploy/UNINSTALL.md"):
        assert left in done.stdout, left


@pytest.mark.skipif(os.getuid() != 0, reason="giving folders to users needs root")
def test_a_folder_from_a_backup_becomes_its_processes(tmp_path):
    (tmp_path / "postgres/base").mkdir(parents=True)
    done = _run("bash", "-euc", f'. "{LOCAL}/lib.sh"; user_of() {{ echo nobody; }}; give postgres postgres; give postgres postgres;'
                f' stat -c %U "{tmp_path}/postgres" "{tmp_path}/postgres/base"', STENTOR_DATA=str(tmp_path))
    assert (done.returncode, done.stdout.split()) == (0, ["nobody", "nobody"]), done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="giving folders to users needs root")
def test_the_dispatcher_reads_what_the_gateway_stores(tmp_path):
    """up's folder for attachments: written by the gateway's user under a umask of 077, read by another user of its group, and by no third one."""
    for folder in (tmp_path, *tmp_path.parents[:3]):  # pytest's own, with a folder for each worker
        if folder.owner() == "root" and "pytest" in str(folder):
            os.chmod(folder, 0o755)
    made = _run("bash", "-euc", f'. "{LOCAL}/lib.sh"; user_of() {{ echo daemon; }}; usermod() {{ :; }}; FILES_GROUP=games; share_assets dispatcher',
                STENTOR_DATA=str(tmp_path))
    assert made.returncode == 0, made.stderr
    probe = tmp_path / "probe"
    shutil.copy(BIN.parent / "tests/storage_probe", probe)
    probe.chmod(0o755)
    (tmp_path / "file").write_text("an invoice")
    (tmp_path / "file").chmod(0o644)

    def storage(user, group, line):
        done = subprocess.run(["setpriv", "--reuid", user, "--regid", user if user == "daemon" else "nogroup", *group, "sh", "-c", 'umask 077; exec "$0"', probe],
                              input=line + "\n", capture_output=True, text=True, timeout=60, env={"STENTOR_STORAGE_URL": f"file://{tmp_path}/assets"})
        return done.stdout + done.stderr
    put = storage("daemon", ["--clear-groups"], f"put\tattachments/2026-11-27/demo/1\t{tmp_path}/file\talways\t-\t-\t-")
    assert '"done"' in put, put
    get = "get\tattachments/2026-11-27/demo/1\t0\t0"
    assert '"done"' in storage("nobody", ["--groups", "games"], get)
    assert '"done"' not in storage("nobody", ["--clear-groups"], get)


@pytest.mark.long
@pytest.mark.skipif(os.getuid() != 0, reason="giving folders to users needs root")
@pytest.mark.skipif(ceph.missing() != "", reason="the S3 server is not installed")
def test_the_s3_server_of_up_keeps_its_objects(tmp_path):
    """Started by lib.sh as a user without rights, with a bucket; stopped and started again it has them."""
    data = tmp_path / "stentor"
    for folder in (tmp_path, *tmp_path.parents[:2]):
        os.chmod(folder, 0o755)

    def bash(words):
        return subprocess.run(["bash", "-euc", f'. "{LOCAL}/lib.sh"; user_of() {{ echo daemon; }}; {words}'], capture_output=True, text=True,
                              timeout=120, env={**os.environ, "STENTOR_DATA": str(data)})
    try:
        for number in (1, 2):
            done = bash(f'make_folders; touch "$DATA/etc/ports"; prepare_s3 "{LOCAL}/s3"; start_s3; echo "$storage_url $(s3_word KEY_ID) $(s3_word SECRET)"')
            assert done.returncode == 0, (done.stdout, done.stderr)
            url, key_id, secret = done.stdout.split()
            bucket = Bucket(url.partition("endpoint=")[2], "stentor", Credentials(key_id, secret))
            bucket.put(f"object-{number}", b"x")
            assert bucket.keys() == ["object-1", "object-2"][:number]
            assert bash('stop s3 "$DATA/bin/s3"').returncode == 0 and not (data / "s3/ready").exists()
    finally:
        bash('stop s3 "$DATA/bin/s3"')


def test_up_keeps_the_subscribers_that_were_created_since(tmp_path):
    """Its table of NATS accounts is made at each run: the demo's own lines are renewed, an operator's stay."""
    etc = tmp_path / "etc"
    etc.mkdir()
    (etc / "accounts").write_text("relay stentor-outbox-relay tenants=demo\nstentor-outbox-relay=old\nsubscriber stentor-subscriber tenant=demo\n"
                                  "stentor-subscriber=old\n\nsubscriber search tenant=acme\nsearch=kept\n")
    text = (HOME / "deploy/local/up").read_text()
    block = text[text.index("added_accounts="):text.index("settings=(")]
    for _ in range(2):
        subprocess.run(["bash", "-euo", "pipefail", "-c", "password_of() { echo new; }\n" + block], check=True, env={"PATH": os.environ["PATH"], "DATA": tmp_path})
        lines = (etc / "nats-accounts").read_text().split()
        assert lines.count("search=kept") == 1 and "stentor-subscriber=new" in lines and "stentor-subscriber=old" not in lines
        assert lines.count("stentor-subscriber") == lines.count("stentor-outbox-relay") == 1
        (etc / "nats-accounts").rename(etc / "accounts")  # as `init files --accounts`
    (etc / "accounts").unlink()  # a new installation
    subprocess.run(["bash", "-euo", "pipefail", "-c", "password_of() { echo new; }\n" + block], check=True, env={"PATH": os.environ["PATH"], "DATA": tmp_path})
    assert (etc / "nats-accounts").read_text().count("stentor-subscriber=new") == 1


def test_gateway_and_dispatcher_of_up_and_of_compose_have_one_storage():
    """A mail with an attachment is stored by the one and read by the other."""
    up = (LOCAL / "up").read_text()
    assert 'gateway:STENTOR_STORAGE_URL="$assets_url" dispatcher:STENTOR_STORAGE_URL="$assets_url"' in up
    assert "for name in archiver admin cli gateway dispatcher; do" in up and "--attach" in up
    services = yaml.safe_load((HOME / "deploy/docker/compose.yaml").read_text())["services"]
    storage = [{name: value for name, value in services[each]["environment"].items() if name.startswith("STENTOR_STORAGE_")} for each in ("gateway", "dispatcher")]
    assert storage[0] == storage[1] and len(storage[0]) == 4


def test_up_prints_no_secret_and_the_build_has_no_unused_setting():
    text = (LOCAL / "up").read_text()
    said = text.split("cat <<TXT", 1)[1]
    assert "$(password_of" not in said and "$key" not in said and "$DATA/etc/api.key" in said
    assert "CMAKE_RULE_MESSAGES" not in text


@pytest.mark.parametrize("option, words", [("--help", "minutes on 2 cores"), ("--what", "usage: tests/run")])
def test_the_tests_say_how_long_they_take(option, words):
    done = _run(HOME / "tests/run", option)
    assert words in done.stdout + done.stderr and done.returncode == (0 if option == "--help" else 2)


@pytest.mark.parametrize("bench", ["run", "backlog", "batch", "fairness", "saga", "outbox"])
def test_a_bench_names_the_packages_that_it_lacks(bench, tmp_path):
    """As a user who may not install them, on a machine that has none."""
    for name, body in (("dpkg-query", "exit 1"), ("id", "echo 1000")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    done = _run("/usr/bin/python3", HOME / "tests/bench" / bench, "--quick", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1 and done.stdout == ""
    assert "only root can install them: gcc " in done.stderr and " postfix " in done.stderr and f"{bench}: the packages above are needed" in done.stderr
