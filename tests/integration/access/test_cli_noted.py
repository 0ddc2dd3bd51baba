# SPDX-License-Identifier: Apache-2.0
"""A command that changes something past the API, or shows what was sent, is in the audit log. Every command of the table stands here
once: a new one fails until it is sorted, and one that writes has to be noted."""
import json
import re
import signal
import subprocess

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.processes import BIN, HOME

# They ask the API, which notes every write and every reveal (services/gateway/ACCESS.md).
API = """
send cancel why scheduled-list
batch-create batch-add batch-schedule batch-start batch-pause batch-resume batch-cancel batch-show batch-list
template-put template-list template-show template-history template-activate template-deprecate template-archive template-preview template-test-send
asset-put asset-list asset-remove
trigger-put trigger-list trigger-show trigger-delete trigger-try resolver-put resolver-list resolver-show resolver-remove
tenant-put tenant-list tenant-show tenant-sender-domain
inbound-put inbound-list inbound-url mail-domain-put mail-domain-list mail-domain-show mail-domain-delete
webhook-create webhook-put webhook-list webhook-show webhook-rotate webhook-enable webhook-disable webhook-delete webhook-test
webhook-deliveries webhook-delivery webhook-replay webhook-recover
route-put route-list route-show route-delete
credential-put credential-list credential-show credential-promote credential-revoke credential-delete
channel-list channel-suspend channel-resume
apikey-create apikey-list apikey-rotate apikey-revoke inbox-key-create inbox-key-list inbox-key-rotate inbox-key-revoke
console-login console-sessions console-revoke
recipient-put recipient-get recipient-delete recipient-prefs recipient-consent recipient-import
suppress-list suppress-add suppress-release suppress-import suppress-export guard-list guard-resume opt-out-revoke
""".split()
# On this machine alone: files, the own settings, the vendor's test call.
LOCAL = """up down init-files init-secrets subscriber-create nats-config ready login logout completion man version template-render vendor-try
channel-test master-key master-key-add master-key-use master-key-remove erase-key""".split()
# They read streams and tables, addresses masked and contents sealed.
READS = """status find order-show order-list tail inbound-rejected route-compare doctor audit-log-list audit-log-verify dlq-list dlq-show data-map
config-export keys-status erase-list erase-certificate hold-list archive-list archive-show archive-verify archive-orphans costs-list
outbox-check outbox-show""".split()
# Without an entry, and why.
UNNOTED = {
    "init": "init-files and init-servers",
    "migrate": "makes the structure, the stream AUDIT too, and changes no data",
    "keys-dump": "a backup, which must not depend on NATS; what it holds is in Postgres' own backup too",
    "facts-write": "figures without persons, written by a timer",
    "outbox-install": "of the application's own database",
    "outbox-retry": "of the application's own database",
}
# Noted: the action, as it stands in the source.
NOTED = {
    "apikey-bootstrap": "api_key.bootstrapped", "init-servers": "api_key.bootstrapped", "config-import": "config.imported", "config-mend": "config.mended",
    "replay": "stream.replayed", "shadow": "content.shadowed", "audit": "notifications.repaired", "rebuild": "projection.rebuilt",
    "keys-rotate": "epoch_key.rotation_asked", "keys-retire": "key.retired", "keys-restore": "data_keys.restored",
    "archive-run": "archive.%s", "archive-restore": "archive.%s", "archive-expire": "archive.%s", "archive-adopt": "archive.%s",
    "costs-set": "costs.set", "costs-delete": "costs.deleted", "costs-import-invoice": "costs.invoice_imported",
    "dlq-resend": "dead_letter.resent", "dlq-drop": "dead_letter.dropped", "content": "content.shown", "callbacks": "callbacks.shown",
    "erase": "erasure.requested", "erase-run": "erasure.requested", "erase-replay": "erasure.done", "erase-verify": "erasure.certified",
    "export": "person.exported", "hold-set": "hold.set", "hold-release": "hold.released",
}
TABLE = (HOME / "services/cli/commands.c").read_text()
COMMANDS = {name.replace(" ", "-"): function for name, function in re.findall(r'^    \{"([a-z -]+)", .*?\b(cmd_\w+), ', TABLE, re.M | re.S)}


def source_of(command):
    """The file in which the command's function is."""
    found = [path for path in (HOME / "services/cli").rglob("*.c") if re.search(rf"^int {COMMANDS[command]}\(", path.read_text(), re.M)]
    assert len(found) == 1, (command, found)
    return found[0].read_text()


def test_every_command_of_the_table_is_sorted():
    shown = subprocess.run([BIN / "stentor", "man", "--markdown"], capture_output=True, text=True, check=True).stdout
    names = {name.replace(" ", "-") for name in re.findall(r"^### (.+)$", shown, re.M)}
    assert names == set(COMMANDS), "the table is read whole"
    sorted_ = [*API, *LOCAL, *READS, *UNNOTED, *NOTED]
    assert len(sorted_) == len(set(sorted_)), "each once"
    assert set(sorted_) == names, "sort the new command: does it write past the API? then it is noted (services/cli/noted.h)"


SOURCES = "".join(path.read_text() for folder in ("services/cli", "common/erasure", "common/deadletter") for path in (HOME / folder).rglob("*.c"))


def test_every_action_is_written_somewhere():
    assert [action for action in NOTED.values() if f'"{action}"' not in SOURCES] == []


@pytest.mark.parametrize("command", [*API, *LOCAL])
def test_a_command_without_an_entry_of_its_own_reaches_no_server_of_ours_itself(command):
    text = source_of(command)
    reached = re.findall(r'#include [<"](common/(?:session|archive|db)/[a-z_]+\.h|libpq-fe\.h)', text)
    reached = set(reached) - {"common/session/key_file.h"}  # the master key's file
    # nats-config prints, beside migrate in one file.
    assert not reached or "services/cli/noted.h" in text or command == "nats-config", reached


# ---- that they do it ----


def entries(pipeline, action):
    return [entry for entry in json.loads(pipeline.cli("audit-log", "list", "--json")) if entry["action"] == action]


def broken_subject(pipeline):
    """Of CONFIG, with a message that is no entry."""
    nats = NatsClient(pipeline.nats.port)
    nats.publish("cfg.template.noted.email.broken", b"\xff\xff")
    nats.close()
    return "cfg.template.noted.email.broken"


def changed_export(pipeline, folder):
    """An export of CONFIG from before its tenant had another name."""
    pipeline.cli("tenant", "put", "noted", "--name", "Before")
    (file := folder / "config.ndjson").write_text(pipeline.cli("config", "export"))
    pipeline.cli("tenant", "put", "noted", "--name", "After")
    return file


def template(folder):
    (file := folder / "welcome.hbs").write_text("Hello {{name}}")
    return file


PRICE = ["sms", "twilio", "--from", "2026-01-01T00:00:00Z", "--tenant", "noted"]
# (action, words, settings, kind, target)
DONE = {
    "apikey-bootstrap": ("api_key.bootstrapped", lambda pipeline, folder: ["apikey", "bootstrap", "--name", "noted", "--expires", "1h"], True, "write", None),
    "config-mend": ("config.mended", lambda pipeline, folder: ["config", "mend", broken_subject(pipeline), "--drop"], True, "write", "cfg.template.noted.email.broken"),
    "config-import": ("config.imported", lambda pipeline, folder: ["config", "import", changed_export(pipeline, folder), "--force"], True, "write", "CONFIG"),
    "costs-set": ("costs.set", lambda pipeline, folder: ["costs", "set", *PRICE, "--price", "1", "--currency", "EUR"], False, "write", "sms/twilio"),
    "costs-delete": ("costs.deleted", lambda pipeline, folder: ["costs", "delete", *PRICE], False, "write", "sms/twilio"),
    "replay": ("stream.replayed", lambda pipeline, folder: ["replay", "--stream", "STATUS", "--from-time", "1s", "--to-subject", "replay.noted"], False, "write", "STATUS"),
    "replay-shadow": ("content.compared", lambda pipeline, folder: ["replay", "--shadow", "--from-time", "1h", "--template", template(folder)], False, "read", "welcome"),
    "audit-repair": ("notifications.repaired", lambda pipeline, folder: ["audit", "--since", "1s", "--repair"], False, "write", "accept_log"),
}


@pytest.mark.parametrize("name", DONE)
def test_a_command_past_the_api_is_in_the_audit_log(pipeline, tmp_path, name):
    action, words, admin, kind, target = DONE[name]
    before = entries(pipeline, action)
    done = pipeline.run_cli(*words(pipeline, tmp_path), admin=admin, SUDO_USER="ada")
    assert done.returncode == 0, done
    new = entries(pipeline, action)[len(before):]
    assert [(entry["kind"], entry["actor"]) for entry in new] == [(kind, "cli ada")], new
    assert target is None or new[0]["target"] == target


def test_what_cannot_be_noted_is_not_done(pipeline):
    costs = "SELECT count(*) FROM archive.unit_costs WHERE vendor = 'vonage' AND tenant = 'noted'"
    words = ["costs", "set", "sms", "vonage", "--tenant", "noted", "--price", "1", "--currency", "EUR"]
    done = pipeline.run_cli(*words, STENTOR_NATS_URL="nats://127.0.0.1:1")
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr, done
    assert pipeline.postgres.query(costs) == [(0,)]
    pipeline.cli(*words)
    assert pipeline.postgres.query(costs) == [(1,)]
    pipeline.postgres.query("DELETE FROM archive.unit_costs WHERE tenant = 'noted'")


def test_a_command_that_is_killed_behind_its_entry_is_run_again(pipeline):
    """The entry stands for what was not done; the second run has its own."""
    words = ["costs", "set", "sms", "telnyx", "--tenant", "noted", "--price", "1", "--currency", "EUR"]
    before = len(entries(pipeline, "costs.set"))
    killed = pipeline.run_cli(*words, STENTOR_CRASH_AT="command.noted:1")
    if "STENTOR_CRASH_AT" in killed.stderr:
        pytest.skip("built without -DSTENTOR_CRASH_POINTS=ON")
    costs = "SELECT count(*) FROM archive.unit_costs WHERE vendor = 'telnyx' AND tenant = 'noted'"
    assert killed.returncode == -signal.SIGKILL and pipeline.postgres.query(costs) == [(0,)], killed
    pipeline.cli(*words)
    assert pipeline.postgres.query(costs) == [(1,)] and len(entries(pipeline, "costs.set")) == before + 2
    pipeline.postgres.query("DELETE FROM archive.unit_costs WHERE tenant = 'noted'")


def test_a_dry_run_is_not_noted(pipeline, tmp_path):
    before = pipeline.cli("audit-log", "list", "--json")
    assert pipeline.run_cli("replay", "--stream", "STATUS", "--from-time", "1h", "--dry-run").returncode == 0
    assert pipeline.run_cli("audit", "--since", "1s").returncode == 0
    (file := tmp_path / "same.ndjson").write_text(pipeline.cli("config", "export"))
    for flags in ([], ["--dry-run"]):
        assert pipeline.run_cli("config", "import", file, *flags, admin=True).returncode == 0
    assert pipeline.cli("audit-log", "list", "--json") == before
