# SPDX-License-Identifier: Apache-2.0
"""`stentor init`: from an empty folder, a Postgres that wants passwords and a NATS to services that are ready; again, and after each kill."""
import contextlib
import json
import os
import re
import subprocess
import time

import psycopg2
import pytest

from tests.harness.installed import NAMES, FolderService, World, do, run
from tests.harness.nats_client import NatsClient
from tests.harness.processes import BIN, HOME, NEIGHBOURS, SERVICES, wait_until


@pytest.fixture(name="world", scope="module")
def _world():
    world = World()
    try:
        yield world.start()
    finally:
        world.end()


@pytest.fixture(name="etc")
def _etc(tmp_path):
    return tmp_path / "etc"


def shot(etc):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) for path in etc.iterdir()}


# ---- the folder ----


def test_the_folder_has_a_file_for_each_secret_and_none_in_the_settings(etc):
    do("init", "files", "--folder", etc)
    secrets = {path.read_text().strip() for path in etc.glob("*.password")}
    assert len(secrets) == len(NAMES) + 4 and all(len(secret) == 32 for secret in secrets)
    assert {path.stat().st_mode & 0o777 for path in etc.iterdir()} == {0o600}
    for conf in etc.glob("*.conf"):
        if conf.name != "nats-accounts.conf":
            assert not [secret for secret in secrets if secret in conf.read_text()], conf
    for name in NAMES:
        printed = subprocess.run([BIN / f"stentor-{name}", "--options-markdown"], capture_output=True, text=True, timeout=20).stdout
        conf = (etc / f"{name}.conf").read_text()
        for setting, line in (("STENTOR_DATABASE_URL", "STENTOR_DATABASE_URL_FILE"), ("STENTOR_MASTER_KEY_FILE", "STENTOR_MASTER_KEY_FILE"),
                              ("STENTOR_EPOCH_KEYS_DIR", "STENTOR_EPOCH_KEYS_DIR"), ("STENTOR_KEYS_DUMP_DIR", "STENTOR_KEYS_DUMP_DIR")):
            assert (f"| `{setting}` |" in printed) == (f"{line}=" in conf), (name, setting)


def test_every_program_of_the_house_is_in_the_folder():
    assert sorted([*SERVICES, *NEIGHBOURS]) == sorted([*NAMES, "outbox-relay"])  # whose database is an application's


def test_a_second_run_changes_no_file_whatever_its_options(etc):
    do("init", "files", "--folder", etc, "--set", "ingest:STENTOR_ADMIN_PORT=9401", "--nats", "nats://nats:4222")
    before = shot(etc)
    said = do("init", "files", "--folder", etc, "--nats", "nats://other:4222", "--json")
    assert shot(etc) == before and {step["result"] for step in said} == {"present"}
    do("init", "files", "--folder", etc, "--nats", "nats://other:4222", "--renew")
    after = shot(etc)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {f"{name}.conf" for name in [*NAMES, "admin", "cli"]}, "settings, and no secret"
    assert b"nats://other:4222" in after["ingest.conf"][0] and b"9401" not in after["ingest.conf"][0]


def test_an_empty_file_is_no_secret_and_half_a_folder_is_completed(etc):
    do("init", "files", "--folder", etc)
    before = shot(etc)
    (etc / "renderer.password").write_text("")
    (etc / "renderer.conf").unlink()
    (etc / "ingest.password.new.aBcDeF").write_text("left by a kill")
    do("init", "files", "--folder", etc)
    after = shot(etc)
    assert set(after) == set(before) and len(after["renderer.password"][0]) == 33
    assert after["renderer.conf"][0] == before["renderer.conf"][0]
    assert {name for name in after if after[name][0] != before[name][0]} == {"renderer.password", "nats-accounts.conf"}


@pytest.mark.parametrize("number", [1, 13, 20, 38])
def test_a_run_that_is_killed_after_any_file_is_completed(etc, number):
    killed = run("init", "files", "--folder", etc, crash_at=f"init.file_written:{number}")
    assert killed.returncode == -9
    before = shot(etc)
    assert len(before) == number
    do("init", "files", "--folder", etc)
    after = shot(etc)
    assert all(after[name] == before[name] for name in before), "what was there stays"
    assert len(after) == len(NAMES) * 3 - 1 + 4 + 3 + 3 + 5  # passwords, urls and settings of each; of the others; keys; nats


def test_the_files_belong_to_whom_they_are_said_to(etc):
    do("init", "files", "--folder", etc)
    do("init", "files", "--folder", etc, "--group", "12345")
    assert {(path.stat().st_mode & 0o777, path.stat().st_gid) for path in etc.iterdir()} == {(0o640, 12345)}
    done = run("init", "files", "--folder", etc, "--service-groups")
    if subprocess.run(["getent", "group", "stentor-ingest", "stentor-keys"], capture_output=True).returncode != 0:
        missing = re.search(r"no group '(stentor-\w+)' \(HINT: groupadd --system (stentor-\w+)\)", done.stderr)
        assert done.returncode == 2 and missing and missing[1] == missing[2], done.stderr


def epochs_of(etc):
    """{service or cli: its folder of epoch keys}, and where the dumps go."""
    found = {path.stem: dict(re.findall(r"^(STENTOR_(?:EPOCH_KEYS|KEYS_DUMP)_DIR)=\"(.*)\"$", path.read_text(), re.M)) for path in etc.glob("*.conf")}
    return {name: settings for name, settings in found.items() if settings}


def test_a_new_installation_has_epoch_keys(etc):
    said = {step["what"]: step["result"] for step in do("init", "files", "--folder", etc, "--group", "12345", "--json")}
    keys, dumps = etc.parent / "etc-epochs", etc.parent / "etc-epochs-dumps"
    assert said[str(keys)] == said[str(dumps)] == "made"
    assert (keys.stat().st_mode & 0o7777, keys.stat().st_gid) == (0o2750, 12345) and dumps.stat().st_mode & 0o7777 == 0o700
    with_keys = {name: {"STENTOR_EPOCH_KEYS_DIR": str(keys)} for name in set(NAMES) - {"archiver", "webhook", "webhook-receiver"} | {"cli"}}
    with_keys["ingest"]["STENTOR_KEYS_DUMP_DIR"] = str(dumps)
    assert epochs_of(etc) == with_keys
    # What is there keeps its rights: a package or a volume has made it.
    keys.chmod(0o2770)
    assert do("init", "files", "--folder", etc, "--renew") and keys.stat().st_mode & 0o7777 == 0o2770 and epochs_of(etc) == with_keys


def test_an_installation_without_epoch_keys_stays_so_until_it_is_asked(etc):
    do("init", "files", "--folder", etc)
    (etc / "epoch-keys").unlink()  # as the release before left it
    do("init", "files", "--folder", etc, "--renew")
    assert (etc / "epoch-keys").read_text() == "none\n" and not epochs_of(etc)
    do("init", "files", "--folder", etc, "--renew", "--epoch-keys", etc.parent / "shared")
    assert {settings["STENTOR_EPOCH_KEYS_DIR"] for settings in epochs_of(etc).values()} == {str(etc.parent / "shared")}
    assert (etc.parent / "shared").is_dir()


def test_the_folder_of_epoch_keys_is_not_made_where_the_programs_do_not_run(etc):
    do("init", "files", "--folder", etc, "--seen-as", "/etc/stentor")
    assert epochs_of(etc)["ingest"] == {"STENTOR_EPOCH_KEYS_DIR": "/var/lib/stentor-epochs", "STENTOR_KEYS_DUMP_DIR": "/var/lib/stentor-epochs-dumps"}
    assert [path.name for path in etc.parent.iterdir()] == ["etc"]


def test_a_folder_that_cannot_be_made_is_named(etc):
    done = run("init", "files", "--folder", etc, "--epoch-keys", "/proc/epochs")
    assert done.returncode != 0 and "cannot make '/proc/epochs' for epoch keys" in done.stderr and "HINT: --epoch-keys DIR, or none" in done.stderr


def test_passwords_and_accounts_of_an_installation_that_exists_are_kept(etc, tmp_path):
    (tmp_path / "passwords").write_text("stentor-ingest=old=one\npostgres=root\nmemo=app\n")
    (tmp_path / "accounts").write_text("subscriber desk tenant=acme\ndesk=secret\n")
    do("init", "files", "--folder", etc, "--passwords", tmp_path / "passwords", "--accounts", tmp_path / "accounts")
    assert (etc / "ingest.password").read_text() == "old=one\n" and (etc / "postgres.password").read_text() == "root\n"
    accounts = (etc / "nats-accounts.conf").read_text()
    assert '"subscriber-desk"' in accounts and "old=one" not in accounts and accounts.count('password: "$2a$04$') > 8
    (tmp_path / "accounts").unlink()
    do("init", "files", "--folder", etc)
    assert (etc / "nats-accounts.conf").read_text() == accounts


@pytest.mark.parametrize("words, said", [
    (["--database", "host=db user=me"], "--database names a user"),
    (["--database", "host='"], "cannot be parsed (HINT: host=HOST dbname=stentor)"),
    (["--set", "STENTOR_ADMIN_PROT=1"], "did you mean STENTOR_ADMIN_PORT"),
    (["--set", "postman:STENTOR_ADMIN_PORT=1"], "there is no service 'postman'"),
    (["--set", "nothing"], "expected SETTING=VALUE"),
    (["--group", "no-such-group"], "there is no group 'no-such-group'"),
    (["--group", "1", "--service-groups"], "only one of them"),
    (["--epoch-keys", "epochs"], "--epoch-keys 'epochs': expected a whole path, or none"),
    (["--folder", "/nonexistent/etc"], "cannot make '/nonexistent/etc'"),
    (["--accounts", "/dev/null", "--passwords", "/nonexistent"], "cannot open '/nonexistent'"),
])
def test_what_is_wrong_in_an_option_is_said_before_anything_is_written(etc, words, said):
    done = run("init", "files", "--folder", etc, *words)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not etc.exists() or not shot(etc)


def test_the_secrets_of_kubernetes_have_what_each_mounts_and_no_more(etc):
    job = etc.parent / "job"
    do("init", "files", "--folder", etc, "--seen-as", job)
    listed = json.loads(do("init", "secrets", "--folder", etc, "--namespace", "mail"))
    secrets = {item["metadata"]["name"]: item["stringData"] for item in listed["items"]}
    assert listed["kind"] == "List" and all(item["metadata"]["namespace"] == "mail" for item in listed["items"])
    assert set(secrets) == {f"stentor-{name}" for name in [*NAMES, "nats", "operator", "postgres", "init"]}
    assert set(secrets["stentor-archiver"]) == {"archiver.conf", "archiver.password", "archiver.database-url"}
    assert f"{job}/archiver.password" in secrets["stentor-archiver"]["archiver.conf"]
    for name in NAMES:
        for file, text in secrets[f"stentor-{name}"].items():
            assert text == (etc / file).read_text()
            assert file == "master.key" or file.startswith(name + ".")
    # A Job with the last of them alone finds all that it reads.
    job.mkdir()
    for file, text in secrets["stentor-init"].items():
        (job / file).write_text(text)
    done = run("init", "servers", "--folder", job, "--timeout", "0", STENTOR_SUPERUSER_URL="host=127.0.0.1 port=1 user=me")
    assert done.returncode == 1 and "port 1 failed" in done.stderr


# ---- the servers ----


def test_init_killed_again_and_again_ends_as_one_that_was_not(world):
    """Each run is killed further on; what the earlier ones made is kept."""
    made = 0
    for point in ("init.database_made:1", "init.password_set:1", "init.password_set:3", "migrate.applied:2", "migrate.applied:9",
                  "topology.applied:3", "topology.applied:17", "init.key_stored:1"):
        done = world.servers(crash_at=point)
        assert done.returncode == -9, f"{point}: {done.stdout}{done.stderr}"
        steps = [json.loads(line) for line in done.stdout.splitlines()]
        made += sum(step["result"] in ("set", "created", "registered", "applied") for step in steps)
    assert made > 30
    last = do("init", "servers", "--folder", world.etc, "--bytes-scale-percent", 1, "--json")
    results = {step["what"]: step["result"] for step in last}
    assert results["database stentor"] == "present" and results["password of stentor_ingest"] == "present"
    assert {result for what, result in results.items() if what.startswith(("stream ", "consumer ", "operator's key "))} == {"present"}
    assert results["database"].startswith("0 applied")


def test_a_second_run_changes_nothing_on_the_servers(world):
    def state():
        with contextlib.closing(NatsClient(world.nats.port, password=world.text("admin.password"))) as client:
            streams = json.loads(client.request("$JS.API.STREAM.LIST"))["streams"]
            return world.verifiers(), sorted((s["config"]["name"], s["created"], s["state"]["last_seq"], json.dumps(s["config"])) for s in streams)
    do("init", "servers", "--folder", world.etc)
    before = state()
    do("init", "servers", "--folder", world.etc, "--timeout", "5")
    assert state() == before and len(before[0]) >= 9


def test_services_start_from_the_folder_and_the_operators_key_works(world):
    assert world.servers().returncode == 0
    for name in NAMES:
        world.services.append(FolderService(world, name))
    for service in world.services:
        service.start(wait=False)
    for service in world.services:
        service.wait_ready()
    gateway = world.services[1]
    env = {"STENTOR_API_URL": f"http://127.0.0.1:{gateway.api_port}", "STENTOR_API_KEY_FILE": str(world.etc / "operator.key"), "STENTOR_TENANT": "demo"}
    done = wait_until(lambda: (d := run("--config", world.etc / "cli.conf", "tenant", "put", "demo", "--name", "Demo", "--sender", "a@demo.test", "--json", **env))
                      .returncode == 0 and d, 10, "the operator's key being in force")
    assert json.loads(done.stdout)
    for service in world.services:
        assert service.stop() == 0, service.tail()


def test_another_folders_passwords_are_refused_and_change_nothing(world, etc):
    before = world.verifiers()
    do("init", "files", "--folder", etc, "--database", f"host=127.0.0.1 port={world.postgres.port} dbname=stentor", "--nats", world.nats.url)
    superuser = {"STENTOR_SUPERUSER_URL": world.text("superuser.database-url")}
    done = run("init", "servers", "--folder", etc, "--timeout", "3", **superuser)
    assert done.returncode == 1 and f"another password than '{etc}/owner.password'" in done.stderr and "--reset-passwords" in done.stderr
    assert world.verifiers() == before
    # Without the superuser the folder's own owner is asked for, whom this server does not let in.
    done = run("init", "servers", "--folder", etc, "--timeout", "1", "--skip-roles")
    assert done.returncode == 1 and 'password authentication failed for user "stentor_owner"' in done.stderr


def test_a_lost_password_is_given_again(world):
    (world.etc / "renderer.password").unlink()
    (world.etc / "renderer.database-url").unlink()
    assert world.files().returncode == 0
    done = world.servers()
    assert done.returncode == 1 and "'stentor_renderer' has another password" in done.stderr
    world.nats.stop()
    world.nats.start()
    done = world.servers("--reset-passwords")
    assert done.returncode == 0, done.stderr
    assert {"what": "password of stentor_renderer", "result": "set"} in [json.loads(line) for line in done.stdout.splitlines()]
    psycopg2.connect(world.text("renderer.database-url")).close()


def test_init_waits_for_servers_and_says_what_it_waits_for(world):
    world.nats.stop()
    with subprocess.Popen([BIN / "stentor", "init", "servers", "--folder", world.etc, "--timeout", "30"], text=True, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "STENTOR_HOME": str(HOME)}) as waiting:
        lines = []
        while not any("waiting" in line for line in lines):
            lines.append(waiting.stderr.readline())
            assert lines[-1], lines
        assert f"cannot connect to NATS at 'nats://127.0.0.1:{world.nats.port}'" in "".join(lines)
        world.nats.start()
        assert waiting.wait(30) == 0


def test_without_servers_it_ends_at_its_time_and_says_so(world, etc):
    do("init", "files", "--folder", etc, "--database", "host=127.0.0.1 port=1 dbname=stentor")
    began = time.monotonic()
    done = run("init", "servers", "--folder", etc, "--timeout", "1")
    assert done.returncode == 1 and 0.9 < time.monotonic() - began < 10
    assert "Connection refused" in done.stderr and "--timeout" in done.stderr.splitlines()[-1]
    done = run("init", "servers", "--folder", etc / "nothing")
    assert done.returncode == 1 and f"'{etc}/nothing/admin.conf'" in done.stderr
