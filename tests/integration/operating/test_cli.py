# SPDX-License-Identifier: Apache-2.0
"""Every command of `stentor`, for people and with --json."""
import ctypes
import functools
import json
import os
import re
import subprocess

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import BIN, free_port, wait_until
from tests.harness.proxy import Proxy


def _stentor(*words, **environment):
    """Without a server: nothing is set but what is said."""
    return subprocess.run([BIN / "stentor", *map(str, words)], env=environment, capture_output=True, text=True, timeout=30)


@functools.cache
def _help(command):
    """Two tests look at the help of each command. Without the search for leaks, which that of all commands has."""
    return _stentor("help", *command.split(), ASAN_OPTIONS="detect_leaks=0")


def _commands():
    return re.findall(r"^  ([a-z]+(?:-[a-z]+| [a-z]+)?)  +\S", _help("").stdout, re.M)


# ---- without a server -----------------------------------------------------------------------------------------------


def test_help_lists_the_commands_and_tells_the_options_of_each():
    done = _stentor("help")
    assert done.returncode == 0 and done.stderr == ""
    commands = _commands()
    assert {"up", "down", "migrate", "send", "status", "tail", "template put", "doctor"} <= set(commands)
    for command in commands:
        reported = _help(command)
        assert reported.returncode == 0 and reported.stdout.startswith("usage: stentor [--config FILE] " + command), command
        assert _stentor(*command.split(), "--help", ASAN_OPTIONS="detect_leaks=0").stdout == reported.stdout, command
    assert "--idempotency-key" in _stentor("help", "send").stdout
    assert _stentor().stdout == _stentor("--help").stdout == _stentor("-h").stdout == done.stdout
    unknown = _stentor("help", "frobnicate")
    assert unknown.returncode == 2 and "unknown command 'frobnicate'" in unknown.stderr and unknown.stdout == ""


def test_the_first_word_of_several_commands_tells_them():
    reported = _stentor("help", "dlq")
    assert reported.returncode == 0 and re.findall(r"^  (dlq [a-z]+) ", reported.stdout, re.M) == ["dlq list", "dlq show", "dlq resend", "dlq drop"]
    assert _stentor("dlq", "--help").stdout == reported.stdout
    assert _stentor("dlq", "-h").stdout == reported.stdout
    done = _stentor("dlq")
    assert done.returncode == 2 and "dlq list, dlq show, dlq resend, dlq drop" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("typed,meant", [("statsu", "status"), ("dlq lsit", "dlq list"), ("apikey revok", "apikey revoke"), ("--versoin", "version"), ("dlq frobnicate", None)])
def test_an_unknown_command_is_named_with_the_one_it_is_most_like(typed, meant):
    done = _stentor(*typed.split())
    hint = f"; did you mean '{meant}'?" if meant else ""
    there = {"dlq": "there are dlq list, dlq show, dlq resend, dlq drop"}.get(typed.split()[0], "stentor help lists all" if " " not in typed else None)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith(f"stentor: unknown command '{typed}'{hint} ({there or 'there are apikey'}")


def test_an_unknown_option_is_named_with_the_one_it_is_most_like():
    done = _stentor("send", "--templat", "welcome")
    assert done.returncode == 2 and done.stderr == "stentor: unknown option '--templat'; did you mean '--template'? (stentor help send)\n"


def test_the_help_of_a_command_shows_what_must_be_given_and_json_where_it_works():
    assert _stentor("help", "send").stdout.startswith("usage: stentor [--config FILE] send --template KEY [OPTION...] [--json]\n")
    assert _stentor("help", "config", "export").stdout.startswith("usage: stentor [--config FILE] config export\n")
    assert "\n  template render --file FILE [OPTION...] [--json]\n" in _stentor("help", "template").stdout
    assert "--name TEXT" in _stentor("help", "tenant", "put").stdout


def test_every_flag_of_the_table_is_explained_in_its_help():
    commands = _commands()
    script = f"source <('{BIN}/stentor' completion bash); for command; do echo $(_stentor_flags \"$command\"); done"
    lines = subprocess.run(["bash", "-c", script, "flags", *commands], capture_output=True, text=True, timeout=20).stdout.splitlines()
    assert len(lines) == len(commands) and len("".join(lines)) > 1000
    for command, flags in zip(commands, lines):
        missing = [flag for flag in flags.split() if flag not in ("--help", "--json") and not re.search(rf"(?<![\w-]){flag}(?![\w-])", _help(command).stdout)]
        assert not missing, f"{command}: {missing}"


WRONG = [
    (["send", "--to", "a@example.com"], "--template KEY is required"),
    (["send", "--template", "welcome"], "one of --to ADDRESS and --recipient ID is required"),
    (["send", "--template", "w", "--to", "a@example.com", "--var", "name"], "--var is 'name': expected NAME=TEXT"),
    (["send", "--template", "w", "--to", "a@example.com", "--at", "tomorrow"], "--at is 'tomorrow': expected a time such as"),
    (["send", "--template", "w", "--to", "a@example.com", "--data", "/nowhere.json"], "--data: cannot open '/nowhere.json'"),
    (["batch", "create", "--name", "x"], "--template KEY is required"),
    (["batch", "schedule", "dbt_x", "--at", "soon"], "--at is 'soon'"),
    (["template", "put", "welcome"], "--subject"),
    (["template", "render"], "--file FILE is required"),
    (["template", "test-send", "welcome"], "--to ADDRESS is required"),
    (["tenant", "put", "BAD NAME"], "'BAD NAME' is not a tenant id"),
    (["tenant", "put", "t", "--suspended", "--no-suspended"], "exclude each other"),
    (["inbound", "put", "sendgrid"], "--public-key"),
    (["inbound", "put", "pigeon", "--public-key", "QUJD"], "known: sendgrid"),
    (["outbox", "check"], "--mapping FILE is required"),
    (["outbox", "show"], "--mapping FILE is required"),
    (["nats-config"], "--passwords FILE is required"),
    (["trigger", "try", "k"], "--event-file FILE is required"),
    (["suppress", "release", "nope"], "expected either an id"),
    (["suppress", "export", "--format", "xml"], "--format 'xml': expected csv or ndjson"),
    (["dlq", "drop", "--all"], "--yes"),
    (["recipient", "import", "x"], "--format csv|ndjson"),
    (["recipient", "get"], "no recipient is named"),
    (["apikey", "create", "--expires", "1970-01-01T00:00:00Z"], "is not in the future"),
    (["master-key", "add", "--kind", "epoch"], "--kind 'epoch': expected master or hash"),
    (["rebuild", "inbox"], "'inbox' is not a projection: expected one of history, people, clock, feed, find, saga, outbox"),
]


@pytest.mark.parametrize("words,why", WRONG, ids=lambda value: "-".join(value[:3]).replace("/", "") if isinstance(value, list) else "")
def test_a_wrong_use_ends_with_two(words, why):
    settings = {"STENTOR_API_KEY": "k", "STENTOR_TENANT": TENANT, "STENTOR_MASTER_KEY_FILE": "/dev/null"}
    done = _stentor(*words, **settings)
    assert done.returncode == 2 and why in done.stderr and done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    printed_text = json.loads(_stentor(*words, "--json", **settings).stderr) if "--json" in _stentor("help", *words[:2]).stdout else None
    assert printed_text is None or printed_text == {"error": done.stderr.removeprefix("stentor: ").rstrip("\n"), "exit_status": 2}


@pytest.mark.parametrize("words,name", [
    (["dlq", "list"], "STENTOR_TENANT"), (["tail"], "STENTOR_TENANT"), (["suppress", "list"], "STENTOR_API_KEY"), (["apikey", "create"], "STENTOR_API_KEY"),
    (["audit"], "STENTOR_DATABASE_URL"), (["rebuild", "history"], "STENTOR_DATABASE_URL"), (["master-key", "add"], "STENTOR_MASTER_KEY_FILE")])
def test_a_setting_that_is_missing_ends_with_two(words, name):
    done = _stentor(*words)
    assert done.returncode == 2 and done.stderr.startswith(f"stentor: {name} is not set (HINT: "), done.stderr


def test_a_settings_file_that_may_not_be_read_says_what_to_do(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    config = tmp_path / "cli.conf"
    config.write_text("STENTOR_TENANT=demo\n")
    config.chmod(0o600)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run([BIN / "stentor", "tail"], env={"STENTOR_CONFIG": str(config)}, capture_output=True, text=True, timeout=20,
                          user=65534, group=65534, extra_groups=[])
    assert done.returncode == 2 and f"no right to read the settings in '{config}'" in done.stderr
    assert "sudo stentor" in done.stderr and "stentor login URL" in done.stderr


def test_the_command_says_its_version_as_the_services_do():
    service = subprocess.run([BIN / "stentor-ingest", "--version"], capture_output=True, text=True, timeout=20).stdout
    assert _stentor("version").stdout == _stentor("--version").stdout == service.replace("stentor-ingest", "stentor")


def test_a_setting_comes_from_the_config_file_and_the_environment_overrules_it(tmp_path):
    config = tmp_path / "stentor.conf"
    config.write_text(f"STENTOR_HOME={tmp_path}/from-file\n")
    by_flag = _stentor("--config", config, "down")
    by_name = _stentor("down", STENTOR_CONFIG=str(config))
    overruled = _stentor("--config", config, "down", STENTOR_HOME=f"{tmp_path}/from-environment")
    for done, folder in ((by_flag, "from-file"), (by_name, "from-file"), (overruled, "from-environment")):
        assert done.returncode == 2 and f"{tmp_path}/{folder}/deploy/local/down" in done.stderr, done.stderr
    assert _stentor("--config", tmp_path / "none", "down").returncode == 2


@pytest.mark.parametrize("words,handed", [
    (["up"], ["up"]),
    (["up", "--json"], ["up", "--json"]),
    (["down", "--wipe", "--json"], ["down", "--json", "--wipe"]),
])
def test_up_and_down_run_the_scripts_of_deploy_local_and_end_as_they_do(tmp_path, words, handed):
    folder = tmp_path / "deploy" / "local"
    folder.mkdir(parents=True)
    for name in ("up", "down"):
        script = folder / name
        script.write_text('#!/bin/sh\necho "$(basename "$0") $*"\nexit 7\n')
        script.chmod(0o755)
    done = _stentor(*words, STENTOR_HOME=str(tmp_path), PATH="/usr/bin:/bin")
    assert done.returncode == 7 and done.stdout.split() == handed


def test_a_master_key_is_two_keys_and_new_each_time():
    first, second = _stentor("master-key"), _stentor("master-key")
    lines = [line for line in first.stdout.splitlines() if not line.startswith("#")]
    assert first.returncode == 0 and len(set(lines)) == 2
    assert re.fullmatch(r"master [0-9a-f]{8} [0-9a-f]{64}", lines[0]) and re.fullmatch(r"hash [0-9a-f]{8} [0-9a-f]{64}", lines[1])
    assert not set(lines) & set(second.stdout.splitlines())


def test_a_master_key_file_gets_a_key_more_another_one_first_and_one_less(tmp_path):
    path = tmp_path / "master.key"

    def change(*words, status=0):
        done = _stentor("master-key", *words, STENTOR_MASTER_KEY_FILE=str(path))
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    def ids(text):
        return [line.split()[1] for line in text.splitlines() if line.startswith("master ")]

    path.write_text(change())
    old = ids(path.read_text())
    path.write_text(change("add"))
    new = ids(path.read_text())[1]
    assert ids(path.read_text()) == [*old, new]
    path.write_text(change("use", new))
    assert ids(path.read_text()) == [new, *old]
    assert f"{new} is the current master key (HINT: put another one first: stentor master-key use ID)" in change("remove", new, status=1)
    assert "holds no key 00000000" in change("use", "00000000", status=1)
    path.write_text(change("remove", *old))
    assert ids(path.read_text()) == [new]


def test_nats_config_gives_every_user_its_password_and_names_the_one_without(tmp_path):
    passwords = tmp_path / "passwords"
    users = []
    while True:
        passwords.write_text("".join(f"{user}=secret-{i}\n" for i, user in enumerate(users)))
        done = _stentor("nats-config", "--passwords", passwords)
        if done.returncode == 0:
            break
        missing = re.search(r"no password for '([a-z-]+)'", done.stderr).group(1)
        assert done.returncode == 1 and missing not in users and done.stdout == ""
        users.append(missing)
    assert {"stentor-admin", "stentor-cli", "stentor-ingest"} <= set(users)
    hashes = dict(re.findall(r'user: "([a-z-]+)", password: "(\$2a\$04\$[./A-Za-z0-9]{53})"', done.stdout))
    assert set(hashes) == set(users) and len(set(hashes.values())) == len(users) and "secret-" not in done.stdout
    crypt = ctypes.CDLL("libcrypt.so.1").crypt
    crypt.restype = ctypes.c_char_p
    for i, user in enumerate(users):
        assert crypt(f"secret-{i}".encode(), hashes[user].encode()).decode() == hashes[user]
    assert _stentor("nats-config", "--passwords", passwords).stdout == done.stdout, "the same passwords, the same file"


def test_template_render_needs_no_server(tmp_path):
    page, data, footer = tmp_path / "page.html", tmp_path / "data.json", tmp_path / "footer.html"
    page.write_text("<p>{{name}}</p>{{> footer}}")
    footer.write_text("<i>{{company}}</i>")
    data.write_text('{"name": "A & B", "company": "Acme"}')
    words = ["template", "render", "--file", page, "--data", data, "--partial", f"footer={footer}"]
    assert _stentor(*words).stdout == "<p>A &amp; B</p><i>Acme</i>"
    assert _stentor(*words, "--plain").stdout == "<p>A & B</p><i>Acme</i>"
    data.write_text('{"name": ')
    broken = _stentor(*words)
    assert broken.returncode == 2 and "--data: line 1" in broken.stderr and broken.stdout == ""


@pytest.mark.parametrize("words,why", [
    (["status", "ntf_short"], "'ntf_short' is not a notification id"),
    (["status", "ntf_01K00000000000000000000000", "--wait", "done"], "--wait 'done' is not a status: expected one of queued scheduled"),
    (["status", "ntf_01K00000000000000000000000", "--timeout", "soon"], "--timeout is 'soon'"),
    (["status", "ntf_01K00000000000000000000000", "more"], "unexpected argument 'more'"),
])
def test_a_wrong_use_of_status_is_named_and_ends_with_two(words, why):
    done = _stentor(*words)
    assert done.returncode == 2 and why in done.stderr and done.stdout == "", done.stderr


def test_an_error_is_one_line_also_when_postgres_tells_it_in_many():
    id = "ntf_01K00000000000000000000000"
    done = _stentor("status", id, STENTOR_DATABASE_URL="host=127.0.0.1 port=1", STENTOR_TENANT=TENANT)
    assert done.returncode == 1 and re.fullmatch(r"stentor: cannot connect to postgres: [^\n]+\n", done.stderr), done.stderr
    unset = _stentor("status", id)
    assert unset.returncode == 2 and "STENTOR_DATABASE_URL is not set" in unset.stderr and "--config" in unset.stderr


# ---- configuration --------------------------------------------------------------------------------------------------


def test_migrate_can_be_repeated_and_tells_each_step(pipeline):
    done = pipeline.cli("migrate", "--ack-wait-ms", pipeline.ack_wait_ms, "--json", admin=True)
    steps = {step["what"]: step["result"] for step in map(json.loads, done.splitlines())}
    assert steps["database"].startswith("0 applied")
    assert any("STATUS" in what for what in steps)
    only_nats = pipeline.cli("migrate", "--ack-wait-ms", pipeline.ack_wait_ms, "--skip-database", "--json", admin=True)
    assert "database" not in {json.loads(line)["what"] for line in only_nats.splitlines()}
    only_database = pipeline.cli("migrate", "--skip-nats", admin=True)
    assert only_database.startswith("database") and "STATUS" not in only_database


def test_a_tenant_can_be_made_suspended_and_taken_back(pipeline):
    made = json.loads(pipeline.cli("tenant", "put", "cli-tenant", "--name", "T", "--sender", "t@t.test", "--json"))
    assert made == {"tenant": "cli-tenant", "state": "active"}
    key = json.loads(pipeline.cli("apikey", "create", "--json", tenant="cli-tenant"))
    assert key["tenant"] == "cli-tenant" and re.fullmatch(r"stn_[0-9a-f]{16}\.[0-9a-f]{64}", key["key"])
    sign = {"Authorization": f"Bearer {key['key']}"}
    wait_until(lambda: pipeline.post({}, headers=sign)[0] == 422, 20, "the key of the new tenant")
    assert json.loads(pipeline.cli("tenant", "put", "cli-tenant", "--suspended", "--json"))["state"] == "suspended"
    wait_until(lambda: pipeline.post({}, headers=sign)[0] == 403, 20, "the suspension")
    assert json.loads(pipeline.cli("tenant", "put", "cli-tenant", "--name", "T2", "--json"))["state"] == "suspended"
    assert "active" in pipeline.cli("tenant", "put", "cli-tenant", "--no-suspended")
    wait_until(lambda: pipeline.post({}, headers=sign)[0] == 422, 20, "the end of the suspension")


def test_a_put_of_a_tenant_keeps_all_that_no_option_names(pipeline):
    pipeline.cli("tenant", "put", "cli-keeps", "--name", "K", "--sender", "k@keeps.test", "--sender-name", "Keeps", "--locale", "de-DE",
                 "--time-zone", "Europe/Berlin", "--quiet-hours", "22:00-07:00", "--limit-minute", "5", "--recipient-limit-day", "7",
                 "--over-limit", "suppress", "--guardian-routing", "copy", "--physical-address", "Street 1", "--address-footer", "every",
                 "--theme", "logo=x", "--suspended")
    pipeline.cli("tenant", "sender-domain", "add", "cli-keeps", "*.keeps.test")
    before = json.loads(pipeline.cli("tenant", "show", "cli-keeps", "--json"))
    assert before["suspended"] is True and before["sender_domains"] == ["keeps.test", "*.keeps.test"]
    pipeline.cli("tenant", "put", "cli-keeps", "--name", "Other")
    assert json.loads(pipeline.cli("tenant", "show", "cli-keeps", "--json")) == {**before, "name": "Other"}


def test_the_sender_domains_of_a_tenant_are_listed(pipeline):
    pipeline.cli("tenant", "put", "cli-domains", "--name", "D", "--sender", "d@one.test")
    pipeline.cli("tenant", "sender-domain", "add", "cli-domains", "two.test")
    assert pipeline.cli("tenant", "sender-domain", "list", "cli-domains") == "one.test\ntwo.test\n"
    listed = json.loads(pipeline.cli("tenant", "sender-domain", "list", "--json", tenant="cli-domains"))
    assert listed == ["one.test", "two.test"]
    assert pipeline.run_cli("tenant", "sender-domain", "list", "cli-unknown").returncode == 3
    for words in (["add", "cli-domains"], ["list", "a", "b"], ["show"]):
        wrong = pipeline.run_cli("tenant", "sender-domain", *words)
        assert wrong.returncode == 2 and "usage: stentor tenant sender-domain" in wrong.stderr


def test_doctor_tries_the_command_lines_own_key(pipeline):
    def own_key(key):
        done = pipeline.run_cli("doctor", "--json", key=key)
        return next(check for check in json.loads(done.stdout)["checks"] if check["check"] == "own api key")

    made = json.loads(pipeline.cli("apikey", "create", "--scopes", "send", "--json"))  # may not read the settings
    wait_until(lambda: own_key(made["key"])["result"] == "ok", 20, "the key reaching ingest")
    pipeline.cli("apikey", "revoke", made["key_id"])
    wait_until(lambda: own_key(made["key"])["result"] == "fail", 20, "the revocation reaching ingest")
    assert own_key(made["key"])["text"].endswith("(HINT: stentor apikey create)")
    assert own_key("")["result"] == "warn"
    assert own_key(pipeline.key)["text"] == "STENTOR_API_KEY is in force"


def test_a_vendors_key_can_be_put_and_revoked(pipeline):
    put = pipeline.cli("inbound", "put", "sendgrid", "--public-key", "QUJD", "--json", tenant="cli-vendor")
    assert json.loads(put) == {"tenant": "cli-vendor", "vendor": "sendgrid", "state": "active"}
    revoked = pipeline.cli("inbound", "put", "sendgrid", "--revoke", "--json", tenant="cli-vendor")
    assert json.loads(revoked)["state"] == "revoked"


def test_template_put_counts_versions_up_and_takes_partials(pipeline, tmp_path):
    page, footer = tmp_path / "page.html", tmp_path / "footer.html"
    page.write_text("<p>{{name}}</p>{{> footer}}")
    footer.write_text("<i>from us</i>")
    words = ["template", "put", "cli-counted", "--subject", "S", "--html", page, "--partial", f"footer={footer}", "--json"]
    assert json.loads(pipeline.cli(*words)) == {"template": "cli-counted", "version": "1.0.0", "tenant": TENANT, "status": "active",
                                                "channel": "email", "category": "transactional"}
    page.write_text("<p>{{name}}!</p>{{> footer}}")
    assert json.loads(pipeline.cli(*words))["version"] == "1.0.1"
    assert json.loads(pipeline.cli(*words, "--version", "2.0.0"))["version"] == "2.0.0"
    incomplete = pipeline.run_cli("template", "put", "cli-counted", "--subject", "S")
    assert incomplete.returncode == 2 and incomplete.stderr


# ---- sending and looking --------------------------------------------------------------------------------------------


def test_send_takes_variables_from_a_file_and_overrules_them(pipeline, tmp_path):
    page, data = tmp_path / "page.txt", tmp_path / "data.json"
    page.write_text("{{name}} {{plan}} {{#each items}}{{this}};{{/each}}")
    data.write_text('{"name": "File", "plan": "basic", "items": []}')
    version = json.loads(pipeline.cli("template", "put", "cli-data", "--subject", "S", "--text", page, "--json"))["version"]
    words = ["send", "--to", "data@example.com", "--name", "Dora Data", "--template", "cli-data", "--template-version", version,
             "--data", data, "--var", "name=Flag=1", "--var-json", "items=[1,2]", "--correlation-id", "cli-data", "--json"]
    wait_until(lambda: pipeline.run_cli(*words, "--idempotency-key", "cli-data-1").returncode == 0, 20, "the template")
    first = json.loads(pipeline.cli(*words, "--idempotency-key", "cli-data-1"))
    again = json.loads(pipeline.cli(*words, "--idempotency-key", "cli-data-1"))
    assert first == again and first["status"] == "queued"
    row = json.loads(pipeline.cli("status", first["id"], "--wait", "sent", "--json"))
    assert row["correlation_id"] == "cli-data" and row["template_version"] == version
    mails = pipeline.mailbox.for_notification(first["id"])
    assert len(mails) == 1 and mails[0].get_content().strip() == "Flag=1 basic 1;2;"
    assert mails[0]["To"].addresses[0].display_name == "Dora Data"
    other = pipeline.run_cli(*words, "--idempotency-key", "cli-data-1", "--var", "name=Other")
    problem = json.loads(other.stderr)  # --json: with the problem document as the API gave it
    assert other.returncode == 1 and other.stdout == "" and "409" in problem["error"]
    assert problem["exit_status"] == 1 and problem["problem"]["status"] == 409


@pytest.mark.parametrize("content,words", [("[1]", "not a JSON object"), ("{", "not a JSON object"), (None, "no-such-file")])
def test_send_says_what_is_wrong_with_its_file(pipeline, tmp_path, content, words):
    path = tmp_path / ("data.json" if content is not None else "no-such-file")
    if content is not None:
        path.write_text(content)
    done = pipeline.run_cli("send", "--to", "a@example.com", "--template", "welcome", "--data", path)
    assert done.returncode == 2 and "--data" in done.stderr and words in done.stderr


def test_send_names_the_option_and_the_missing_variable_at_once(pipeline):
    done = pipeline.run_cli("send", "--to", "a@example.com", "--template", "welcome")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("stentor: --var name: "), done.stderr
    for words, option in ((["--priority", "purple"], "--priority"), (["--channel", "pigeon"], "--channel"), (["--correlation-id", "x" * 999], "--correlation-id")):
        wrong = pipeline.run_cli("send", "--to", "a@example.com", "--template", "welcome", "--var", "name=A", *words)
        assert wrong.returncode == 2 and wrong.stderr.startswith(f"stentor: {option}: "), wrong.stderr
    for words, option in ((["--time-zone", "Mars/Phobos"], "--time-zone"), (["--limit-minute", "5", "--over-limit", "explode"], "--over-limit")):
        wrong = pipeline.run_cli("tenant", "put", TENANT, *words)
        assert wrong.returncode == 2 and wrong.stderr.startswith(f"stentor: {option}: "), wrong.stderr
    assert pipeline.run_cli("suppress", "add", "nope").returncode == 2


def test_send_for_later_is_scheduled(pipeline):
    answer = pipeline.cli("send", "--to", "later@example.com", "--template", "welcome", "--var", "name=L", "--at", "2s")
    notification, status = answer.split()
    assert status == "scheduled"
    shown = pipeline.cli("status", notification, "--wait", "sent")
    assert shown.startswith(f"{notification}  sent\n")
    assert [line.split()[-1] for line in shown.splitlines() if re.match(r"  \d{4}-", line)] == ["queued", "scheduled", "rendered", "sent"]
    assert "attempt 1 via smtp: accepted" in shown


def test_lists_are_one_array_and_empty_ones_say_so(pipeline):
    nothing = "cli-empty"
    pipeline.cli("tenant", "put", nothing, "--name", "E")
    for words in (["batch", "list"], ["suppress", "list"], ["template", "list"], ["apikey", "list"], ["tenant", "sender-domain", "list"],
                  ["recipient", "get", "--address", "unknown@example.com"]):
        empty = pipeline.run_cli(*words, tenant=nothing)
        assert (empty.returncode, empty.stdout) == (0, "") and empty.stderr.startswith("stentor: no "), (words, empty)
        machine = pipeline.run_cli(*words, "--json", tenant=nothing)
        assert (machine.returncode, json.loads(machine.stdout), machine.stderr) == (0, [], ""), (words, machine)
    assert isinstance(json.loads(pipeline.cli("trigger", "list", "--json")), list)


def test_a_wrong_nats_password_is_named_without_a_line_of_a_log(pipeline):
    done = pipeline.run_cli("tail", STENTOR_NATS_PASSWORD="wrong")
    assert done.returncode == 1 and re.fullmatch(r"stentor: cannot connect to NATS at '[^']+': [^\n]*Authorization Violation[^\n]*\n", done.stderr), done.stderr


def test_status_gives_up_waiting_and_says_so(pipeline):
    notification = pipeline.send()
    pipeline.status(notification, wait="sent")
    done = pipeline.run_cli("status", notification, "--wait", "delivered", "--timeout", "1", "--json")
    assert done.returncode == 1 and "is not 'delivered' after 1 s" in done.stderr
    assert json.loads(done.stdout)["status"] == "sent"
    assert "not a status" in pipeline.run_cli("status", notification, "--wait", "arrived").stderr
    hidden = pipeline.run_cli("status", notification, tenant="another-tenant")
    assert hidden.returncode == 3 and hidden.stdout == ""


def test_tail_shows_what_happens_from_now_on_until_it_is_stopped(pipeline):
    """Another tenant's status is shown with --every-tenant only."""
    tails = [subprocess.Popen(
        [BIN / "stentor", "tail", "--count", "2", "--json", *more], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={"STENTOR_NATS_URL": pipeline.nats.url, "STENTOR_NATS_USER": "stentor-cli", "STENTOR_NATS_PASSWORD": "pw",
             "STENTOR_TENANT": tenant})
        for more, tenant in (([], TENANT), (["--every-tenant"], "another-tenant"), ([], "another-tenant"))]
    mine, everyones, others = tails
    sent = []

    def both_ended():
        sent.append(pipeline.send())  # one of these comes after they listen
        return mine.poll() is not None and everyones.poll() is not None

    try:
        wait_until(both_ended, 30, "two events on both")
        for tail in (mine, everyones):
            out, err = tail.communicate(timeout=10)
            events = [json.loads(line) for line in out.splitlines()]
            assert tail.returncode == 0 and len(events) == 2, err
            assert all(event["tenant"] == TENANT and event["id"] in sent for event in events)
        assert others.poll() is None
        others.send_signal(2)
        out, err = others.communicate(timeout=10)
        assert others.returncode == 0 and out == "", err
    finally:
        for tail in tails:
            if tail.poll() is None:
                tail.kill()
                tail.communicate()


def test_a_tail_goes_on_when_its_connection_is_back(pipeline, tmp_path):
    port = free_port()
    proxy = Proxy({"nats": (port, pipeline.nats.port)}).start()
    shown = tmp_path / "shown"
    with shown.open("w") as out:
        tail = subprocess.Popen([BIN / "stentor", "tail", "--json"], stdout=out, stderr=subprocess.PIPE, text=True, env={
            "STENTOR_NATS_URL": f"nats://127.0.0.1:{port}", "STENTOR_NATS_USER": "stentor-cli", "STENTOR_NATS_PASSWORD": "pw", "STENTOR_TENANT": TENANT})
    try:
        def more_than(lines):
            pipeline.send()
            return tail.poll() is not None or len(shown.read_text().splitlines()) > lines
        wait_until(lambda: more_than(0), 20, "the first event")
        proxy.cut(["nats"])
        proxy.heal(["nats"])
        before = len(shown.read_text().splitlines())
        wait_until(lambda: more_than(before + 2), 20, "events behind the cut")
        assert tail.poll() is None, tail.stderr.read()
        tail.send_signal(2)
        assert tail.wait(10) == 0
    finally:
        if tail.poll() is None:
            tail.kill()
        tail.communicate()
        proxy.stop()


def test_doctor_names_the_service_that_does_not_run(pipeline):
    def warned():
        report = json.loads(pipeline.cli("doctor", "--json"))
        assert report["ok"]
        return {check["check"] for check in report["checks"] if "is stentor-webhook-receiver running" in check["text"]}

    wait_until(lambda: warned() == set(), 20, "the webhook-receiver at work")
    pipeline.services["webhook-receiver"].stop()
    try:
        wait_until(lambda: warned() == {"webhook-receiver on INBOUND"}, 20, "the warning")
    finally:
        pipeline.services["webhook-receiver"].start()


def _checks(pipeline, **settings):
    """{check: what doctor says}"""
    return {check["check"]: check for check in json.loads(pipeline.run_cli("doctor", "--json", **settings).stdout)["checks"]}


def test_doctor_names_a_proxy_that_tells_no_methods_apart(pipeline):
    """A bare Ingress sends all of /v1/notifications to ingest: here ingest's own port."""
    checks = _checks(pipeline, STENTOR_API_URL=f"http://127.0.0.1:{pipeline.ingest_port}")
    assert checks["api"]["result"] == "fail" and "to GET /v1/notifications where 401 was expected" in checks["api"]["text"], checks["api"]
    assert "console" not in checks, "nothing more is asked there"


def test_doctor_says_where_the_console_is(pipeline):
    """Or that there is none, where the gateway was built without Node.js."""
    url = f"http://127.0.0.1:{pipeline.api_port}/console/"
    status = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url], capture_output=True, text=True, timeout=30, check=True).stdout
    said = _checks(pipeline)["console"]
    assert said["result"] == "ok" and {"200": url, "404": "without Node.js"}[status] in said["text"], said


def test_doctor_tells_no_epoch_keys_from_none_yet(pipeline, tmp_path):
    def said(**settings):
        report = json.loads(pipeline.run_cli("doctor", "--json", **settings).stdout)
        return next(check["text"] for check in report["checks"] if check["check"] == "epoch keys")

    assert "with the master key (HINT: STENTOR_EPOCH_KEYS_DIR" in said()
    assert said(STENTOR_EPOCH_KEYS_DIR=str(tmp_path)).startswith("none yet: ingest makes the first one")


def projections(pipeline, *words):
    """What doctor says of each."""
    checks = json.loads(pipeline.run_cli("doctor", "--json", *words).stdout)["checks"]
    return {check["check"].split()[1]: check for check in checks if check["check"].startswith("projection ")}


def test_doctor_has_a_line_for_each_projection(pipeline):
    pipeline.cli("recipient", "put", "--identity", "user:doctor", "--name", "Doc", "--email", "doctor@example.com")
    pipeline.status(pipeline.send(to="lines@example.com"), wait="sent")
    wait_until(lambda: all(check["result"] == "ok" for check in projections(pipeline).values()), 20, "all at work")
    reported = projections(pipeline)
    assert sorted(reported) == ["digests", "feed", "find", "history", "people"]
    assert reported["feed"]["text"].endswith(", folding")
    for name in ("digests", "people"):
        last = pipeline.postgres.query("SELECT max(sequence) FROM people.positions")[0][0]
        assert reported[name]["text"] == f"0 events behind, at PEOPLE {last}, folding"
    assert ", STATUS " in reported["history"]["text"]
    assert ", at STATUS " in reported["find"]["text"] and reported["find"]["text"].endswith(", folding")


def test_doctor_names_what_does_not_fold(pipeline):
    pipeline.services["archiver"].stop()
    try:
        pipeline.send(to="behind@example.com", variables={"name": "Alice"})
        wait_until(lambda: not projections(pipeline)["history"]["text"].startswith("0 "), 20, "some events behind")
        history = projections(pipeline)["history"]
        assert history["result"] == "warn" and history["text"].endswith("no process folds it (HINT: is stentor-archiver running?)")
        assert projections(pipeline)["people"]["result"] == "ok"
    finally:
        pipeline.services["archiver"].start()
    wait_until(lambda: projections(pipeline)["history"]["result"] == "ok" and projections(pipeline)["history"]["text"].startswith("0 "), 20, "all read")


def test_doctor_names_a_projection_whose_stream_is_another(pipeline):
    """The time of the last message read is another: so is the stream."""
    shift = "UPDATE archiver.positions SET stream_created_at = stream_created_at {0} interval '1 hour', stored_at = stored_at {0} interval '1 hour'"
    pipeline.status(pipeline.send(to="another@example.com"), wait="sent")
    pipeline.services["archiver"].stop()
    try:
        pipeline.postgres.query(shift.format("-"))
        pipeline.services["archiver"].start(wait=False)
        wait_until(lambda: "projection stopped" in pipeline.services["archiver"].log.read_text(), 20, "the archiver refusing it")
        history = projections(pipeline)["history"]
        assert history["result"] == "fail" and "failed: stream '" in history["text"], history
        assert history["text"].endswith("(HINT: stentor rebuild history --carry-older)")
    finally:
        pipeline.services["archiver"].stop()
        pipeline.postgres.query(shift.format("+"))
        pipeline.services["archiver"].start()
    wait_until(lambda: projections(pipeline)["history"]["result"] == "ok", 20, "history at work")


def test_doctor_names_a_projection_that_stands_still(pipeline):
    """Its process holds the lock and does not fold: Postgres refuses its rows."""
    pipeline.postgres.query("ALTER TABLE archiver.notifications ADD CONSTRAINT no_stander CHECK (template <> 'welcome') NOT VALID")
    try:
        pipeline.send(to="stands@example.com", variables={"name": "Alice"})
        wait_until(lambda: "stands still (HINT: the log of stentor-archiver says why)" in projections(pipeline)["history"]["text"], 30, "the warning")
    finally:
        pipeline.postgres.query("ALTER TABLE archiver.notifications DROP CONSTRAINT no_stander")
        pipeline.services["archiver"].stop()
        pipeline.services["archiver"].start()
    wait_until(lambda: projections(pipeline)["history"]["result"] == "ok", 20, "history at work")


def test_doctor_does_not_ask_for_a_saga_that_does_not_run(pipeline):
    report = json.loads(pipeline.cli("doctor", "--json"))
    assert [check["result"] for check in report["checks"] if check["check"] == "order-saga on EVENTS"] == ["ok"]


def test_doctor_says_how_long_the_oldest_message_waits_and_sums_up(pipeline):
    pipeline.services["renderer"].stop()
    try:
        pipeline.send(to="oldest@example.com")

        def waits():
            report = json.loads(pipeline.run_cli("doctor", "--json").stdout)
            line = next(check["text"] for check in report["checks"] if check["check"] == "renderer on REQUEST_NORMAL")
            return report["oldest_waits_s"] >= 1 and report["oldest_waits_for"] == "stentor-renderer on REQUEST_NORMAL" and "1 waiting, 0 in flight, the oldest for " in line

        wait_until(waits, 20, "the message that no renderer takes")
        last = pipeline.run_cli("doctor").stdout.splitlines()[-1]
        assert re.fullmatch(r"0 failed, \d+ warnings, \d+ ok; the oldest message has waited \d+ s for stentor-renderer on REQUEST_NORMAL", last), last
    finally:
        pipeline.services["renderer"].start()
    wait_until(lambda: pipeline.run_cli("doctor").stdout.splitlines()[-1].endswith("; no message waits"), 20, "nothing that waits")


def test_doctor_says_nothing_of_history_when_nats_is_away(pipeline):
    done = _stentor("doctor", "--json", STENTOR_NATS_URL="nats://127.0.0.1:9", STENTOR_API_URL="http://127.0.0.1:9",
                    STENTOR_DATABASE_URL=pipeline.postgres.url("stentor_cli"), STENTOR_TENANT=TENANT)
    checks = {check["check"]: check["result"] for check in json.loads(done.stdout)["checks"]}
    assert checks["nats"] == "fail" and checks["postgres"] == "ok" and not any("projection" in name for name in checks)


def test_doctor_names_what_is_not_there(pipeline):
    shown = pipeline.cli("doctor", admin=True)
    assert "durability" in shown and "STATUS" in shown
    done = _stentor("doctor", "--json", STENTOR_NATS_URL="nats://127.0.0.1:9", STENTOR_API_URL="http://127.0.0.1:9",
                    STENTOR_DATABASE_URL="postgresql://127.0.0.1:9/none", STENTOR_TENANT=TENANT)
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["ok"] is False and report["counts"]["fail"] >= 3
    assert sum(check["result"] not in ("ok", "note") for check in report["checks"]) >= 3
