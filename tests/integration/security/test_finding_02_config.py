# SPDX-License-Identifier: Apache-2.0
"""Finding 2: what nats-server writes on a reply's subject destroys no configuration, doctor names it, and CONFIG has copies."""
import base64
import http.client
import json
import threading
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until


@pytest.fixture(scope="module")
def pipeline():
    """A pipeline of its own: these tests judge every entry of CONFIG, and those of other files write entries of earlier versions."""
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,1,1"}, durable=True).start()
    yield running
    running.stop()


@pytest.fixture
def doctor(pipeline):
    def ask():
        done = pipeline.run_cli("doctor", "--json")
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        return done.returncode, checks
    return ask


def _answer_on(nats, subject):
    """The review's command: an answer of JetStream's API as the newest entry of a subject."""
    before = nats.stream_info("CONFIG")["state"]["last_seq"]
    nats._write(f"PUB $JS.API.STREAM.INFO.STATUS {subject} 0\r\n\r\n".encode())
    until = time.monotonic() + 10
    while nats.stream_info("CONFIG")["state"]["last_seq"] == before:
        assert time.monotonic() < until
        time.sleep(0.05)


def _key_subject(pipeline):
    return f"cfg.apikey.{TENANT}.{pipeline.key.removeprefix('stn_').split('.')[0]}"


def test_finding_02_an_api_key_outlives_a_forged_entry_and_a_restart(pipeline, nats, doctor):
    subject = _key_subject(pipeline)
    good = nats.message("CONFIG", last_by_subj=subject)[1]
    _answer_on(nats, subject)
    assert nats.message("CONFIG", last_by_subj=subject)[1] != good
    assert pipeline.send()  # memory keeps what it has
    pipeline.services["ingest"].stop()
    pipeline.services["ingest"].start()
    assert pipeline.send()  # and a new process finds what was there before
    status, checks = doctor()
    assert status == 1 and checks[subject]["result"] == "fail"
    assert f"stentor config mend {subject}" in checks[subject]["text"]
    mended = pipeline.run_cli("config", "mend", subject, admin=True)
    assert mended.returncode == 0 and "restored as it was before" in mended.stdout
    assert nats.message("CONFIG", last_by_subj=subject)[1] == good
    assert subject not in doctor()[1]
    assert "can be read" in pipeline.run_cli("config", "mend", subject, admin=True).stdout
    assert pipeline.run_cli("config", "mend", "cfg.tenant.unknown.self", admin=True).returncode == 3
    assert pipeline.run_cli("config", "mend", "ntf.status.acme", admin=True).returncode == 2


def test_finding_02_a_revoked_key_is_not_brought_back_from_the_history(pipeline, nats):
    """A pull's answer keeps subject, headers and bytes of the message: with a reply's subject in CONFIG it is an entry of before."""
    leaked = json.loads(pipeline.cli("apikey", "create", "--name", "leaked", "--json"))["key"]
    subject = f"cfg.apikey.{TENANT}.{leaked.removeprefix('stn_').split('.')[0]}"
    pipeline.cli("apikey", "revoke", leaked.split(".")[0])
    revoked = nats.message("CONFIG", last_by_subj=subject)[1]
    config = nats.stream_info("CONFIG")["config"]
    nats.request("$JS.API.STREAM.UPDATE.CONFIG", json.dumps({**config, "duplicate_window": 100_000_000}).encode())
    time.sleep(0.2)
    thief = NatsClient(pipeline.nats.port, "stentor-archiver")
    reader = {"name": "stentor-archiver-7", "filter_subject": subject, "ack_policy": "none", "mem_storage": True, "inactive_threshold": 10**10}
    made = json.loads(thief.request(f"$JS.API.CONSUMER.CREATE.CONFIG.stentor-archiver-7.{subject}",
                                    json.dumps({"stream_name": "CONFIG", "config": reader}).encode()))
    assert made["num_pending"] == 2, made
    thief._write(b'PUB $JS.API.CONSUMER.MSG.NEXT.CONFIG.stentor-archiver-7 cfg.replayed 26\r\n{"batch":1,"no_wait":true}\r\n')
    info = "$JS.API.CONSUMER.INFO.CONFIG.stentor-archiver-7"
    wait_until(lambda: json.loads(nats.request(info))["delivered"]["consumer_seq"] == 1, 10, "the earlier entry being delivered")
    nats.publish("cfg.after.acme.it", b"", event_id="after-it")  # behind it in the stream's queue
    assert nats.message("CONFIG", last_by_subj=subject)[1] == revoked
    assert pipeline.run_cli("config", "mend", "cfg.after.acme.it", "--drop", admin=True).returncode == 0
    nats.request("$JS.API.STREAM.UPDATE.CONFIG", json.dumps(config).encode())
    thief.close()


def _headers(nats, stream, **query):
    answer = json.loads(nats.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps(query).encode()))
    return base64.b64decode(answer["message"].get("hdrs", "")).decode() if "message" in answer else None


def _call(pipeline, method, path, body, key=None):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        connection.request(method, path, json.dumps(body),
                           {"Authorization": f"Bearer {key or pipeline.key}", "Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


SAYS = "Nats-Expected-Last-Subject-Sequence"
KINDS = {"suppression", "trigger", "template", "tenant", "apikey"}


def test_finding_02_every_writer_says_which_entry_it_replaces(pipeline, nats):
    """Whatever the services and the command line have stored; and twice of each kind, so that the second one has something to replace."""
    to = "written@example.com"
    pipeline.mailbox.answer("550 5.1.1 no such user")
    pipeline.status(pipeline.send(to=to), wait="failed")
    pipeline.cli("suppress", "add", "listed@example.com", "--reason", "manual")
    pipeline.cli("suppress", "release", "--address", "listed@example.com")
    file = pipeline.folder / "list.csv"
    for note in ("one", "two"):
        file.write_text(f"address,note\nimported@example.com,{note}\nimported@example.com,{note} again\n")
        pipeline.cli("suppress", "import", file)
        assert _call(pipeline, "POST", "/v1/suppressions", {"address": "posted@example.com", "note": note}) == 201
        trigger = {"event_type": "said.it", "template": "welcome", "resolver": "address:to"}
        assert _call(pipeline, "PUT", "/v1/triggers/posted", trigger) == 200
        draft = {"key": "drafted", "version": "1.0.0", "status": "draft", "locales": [{"locale": "en", "subject": note, "text": "T"}]}
        wait_until(lambda: _call(pipeline, "POST", "/v1/templates", draft) == 201, 10, "the draft being stored")
        pipeline.cli("trigger", "put", "listed", "--event", "said.so", "--template", "welcome", "--resolver", "address:to")
    pipeline.cli("trigger", "delete", "listed")
    kinds = set()
    for sequence in range(1, nats.stream_info("CONFIG")["state"]["last_seq"] + 1):
        subject, payload = nats.message("CONFIG", seq=sequence) or ("cfg.none", b"")
        kind = subject.split(".")[1]
        if kind in KINDS and not payload.startswith(b"{"):  # not what the tests forged
            assert SAYS in _headers(nats, "CONFIG", seq=sequence), subject
            kinds.add(kind)
    assert kinds >= KINDS
    pipeline.cli("trigger", "delete", "posted")


def test_finding_02_a_released_complaint_and_a_weaker_entry_at_once(pipeline, nats):
    """A complaint that the operator stores while a caller, whose key may not end one, posts another reason for the same address."""
    weak = json.loads(pipeline.cli("apikey", "create", "--name", "weak", "--scopes", "suppressions:write", "--json"))["key"]
    wait_until(lambda: _call(pipeline, "POST", "/v1/suppressions", {"address": "warm@example.com"}, weak) == 201, 10, "the key being known")
    for i in range(4):
        to, posts, stored = f"race{i}@example.com", [], threading.Event()

        def post():
            posts.append(_call(pipeline, "POST", "/v1/suppressions", {"address": to, "note": str(len(posts))}, weak))

        def post_on():
            while not stored.is_set():
                post()

        caller = threading.Thread(target=post_on)
        caller.start()
        pipeline.cli("suppress", "add", to, "--reason", "complaint")
        stored.set()
        caller.join()
        wait_until(lambda: post() or posts[-1] == 403, 20, "the complaint being known")
        assert set(posts) <= {201, 403} and posts[posts.index(403):].count(201) == 0, posts
        listed = json.loads(pipeline.cli("suppress", "list", "--address", to, "--json"))
        assert [entry["reason"] for entry in listed] == ["complaint"]
    pipeline.cli("apikey", "revoke", weak.split(".")[0])


def test_finding_02_after_eight_forged_entries_no_mail_is_sent_until_the_repair(pipeline, nats, doctor):
    to = "forged@example.com"
    entry = json.loads(pipeline.cli("suppress", "add", to, "--reason", "complaint", "--json"))
    subject = f"cfg.suppression.{TENANT}.email.any.{entry['address_hash']}"
    good = nats.message("CONFIG", last_by_subj=subject)[1]
    for _ in range(9):
        _answer_on(nats, subject)
    wait_until(lambda: pipeline.status(pipeline.send(to=to))["reason_code"] == "complaint", 10, "the suppression in memory")
    for name in ("ingest", "renderer", "dispatcher"):
        pipeline.services[name].stop()
        pipeline.services[name].start()
    row = pipeline.status(pipeline.send(to=to), wait="suppressed")
    assert row["reason_code"] == "unreadable"
    assert pipeline.services["dispatcher"].metric("stentor_config_unreadable") == 1
    assert doctor()[1][subject]["result"] == "fail"
    refused = pipeline.run_cli("config", "mend", subject, admin=True)
    assert refused.returncode == 1 and "--drop" in refused.stderr
    # The API's caller without the right to end a complaint does not end what may be one.
    weak = json.loads(pipeline.cli("apikey", "create", "--name", "meek", "--scopes", "suppressions:write", "--json"))["key"]
    wait_until(lambda: _call(pipeline, "POST", "/v1/suppressions", {"address": to}, weak) == 403, 10, "the key being known")
    pipeline.cli("apikey", "revoke", weak.split(".")[0])
    assert pipeline.run_cli("config", "mend", subject, "--drop", admin=True).returncode == 0
    assert nats.message("CONFIG", last_by_subj=subject)[1] == b"" and good  # a removal, which services follow
    wait_until(lambda: pipeline.status(pipeline.send(to=to), wait="sent")["status"] == "sent", 15, "the repaired address")
    assert subject not in doctor()[1]
    assert pipeline.services["dispatcher"].metric("stentor_config_unreadable") == 0


def test_finding_02_migrate_orders_what_an_earlier_version_stored(pipeline, nats, doctor):
    """Killed after the first entry, run again; a service of that version stores meanwhile, and a forged entry keeps what was before it."""
    entry = json.loads(pipeline.cli("suppress", "add", "old@example.com", "--reason", "complaint", "--json"))
    subject = f"cfg.suppression.{TENANT}.email.any.{entry['address_hash']}"
    released = nats.message("CONFIG", last_by_subj=subject)[1]
    old = [f"cfg.trigger.{TENANT}.old{i}" for i in range(3)] + [f"cfg.trigger.{TENANT}.spoiled"]

    for name in old:
        pipeline.cli("trigger", "put", name.split(".")[-1], "--event", "event.of." + name.split(".")[-1], "--template", "welcome", "--resolver", "address:to")
    stored = {name: nats.message("CONFIG", last_by_subj=name)[1] for name in old}
    for name in [*old, subject]:  # as an earlier version stored it: without the word, and so twice
        for _ in range(2):
            bytes_of = stored.get(name, released)
            nats.publish(name, bytes_of)
    _answer_on(nats, old[-1])
    mirror = {"name": "CONFIG_HISTORY", "mirror": {"name": "CONFIG"}, "storage": "file", "max_bytes": 1 << 20}  # of an earlier version
    assert "error" not in json.loads(nats.request("$JS.API.STREAM.CREATE.CONFIG_HISTORY", json.dumps(mirror).encode()))
    checks = doctor()[1]
    assert checks["config"]["result"] == "fail" and "stentor migrate" in checks["config"]["text"]
    died = pipeline.run_cli("migrate", "--skip-database", "--bytes-scale-percent", "1", admin=True, STENTOR_CRASH_AT="config.ordered:2")
    assert died.returncode != 0 and "crash point 'config.ordered' reached" in died.stderr
    done = pipeline.run_cli("migrate", "--skip-database", "--bytes-scale-percent", "1", admin=True)
    assert done.returncode == 0 and "now name the entry that they replace" in done.stdout, done
    for name in [*old[:-1], subject]:
        assert SAYS in _headers(nats, "CONFIG", last_by_subj=name)
        assert nats.message("CONFIG", last_by_subj=name)[1] == stored.get(name, released)
    for sequence in range(1, nats.stream_info("CONFIG")["state"]["last_seq"] + 1):
        message = nats.message("CONFIG", seq=sequence)
        if message is not None and message[0] != old[-1] and not message[1].startswith(b"{"):
            assert SAYS in _headers(nats, "CONFIG", seq=sequence), message[0]
    assert "state" in nats.stream_info("CONFIG_HISTORY")  # as long as an entry cannot be read
    assert "restored as it was before" in pipeline.run_cli("config", "mend", old[-1], admin=True).stdout  # its earlier ones were kept
    again = pipeline.run_cli("migrate", "--skip-database", "--bytes-scale-percent", "1", admin=True)
    assert again.returncode == 0 and "0 now name" in again.stdout  # what was repaired since is deleted
    last = pipeline.run_cli("migrate", "--skip-database", "--bytes-scale-percent", "1", admin=True)
    assert last.returncode == 0 and "earlier version" not in last.stdout
    assert "state" not in nats.stream_info("CONFIG_HISTORY")
    assert "earlier version" not in doctor()[1]["config"]["text"]
    for name in old:
        pipeline.cli("trigger", "delete", name.split(".")[-1])


def test_finding_02_what_never_was_an_entry_is_dropped_only_with_the_option(pipeline, nats, doctor):
    subject = "cfg.odd.acme.thing"
    _answer_on(nats, subject)
    assert doctor()[1][subject]["result"] == "fail"
    kept = pipeline.run_cli("config", "mend", subject, admin=True)
    assert kept.returncode == 1 and "--drop" in kept.stderr
    assert pipeline.run_cli("config", "mend", subject, "--drop", admin=True).returncode == 0
    assert subject not in doctor()[1] and doctor()[1]["config"]["result"] == "ok"


def test_finding_02_config_is_exported_and_imported(pipeline, nats, tmp_path):
    exported = pipeline.run_cli("config", "export")
    assert exported.returncode == 0 and "secret" in exported.stderr
    lines = exported.stdout.splitlines()
    assert json.loads(lines[-1])["entries"] == len(lines) - 1 == nats.stream_info("CONFIG")["state"]["num_subjects"]
    file = tmp_path / "config.ndjson"
    file.write_text(exported.stdout)

    def imported(*flags):
        done = pipeline.run_cli("config", "import", str(file), *flags, "--json", admin=True)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    assert imported() == {"imported": "0", "same": str(len(lines) - 1), "changed_since": "0"}
    subject = f"cfg.trigger.{TENANT}.copied"
    pipeline.cli("trigger", "put", "copied", "--event", "copy.made", "--template", "welcome", "--resolver", "address:to")
    trigger = nats.message("CONFIG", last_by_subj=subject)[1]
    file.write_text(pipeline.run_cli("config", "export").stdout)
    # Lost altogether, then changed after the export.
    nats.request("$JS.API.STREAM.PURGE.CONFIG", json.dumps({"filter": subject}).encode())
    assert imported("--dry-run")["would_import"] == "1" and nats.message("CONFIG", last_by_subj=subject) is None
    assert imported()["imported"] == "1" and nats.message("CONFIG", last_by_subj=subject)[1] == trigger
    pipeline.cli("trigger", "put", "copied", "--event", "copy.changed", "--template", "welcome", "--resolver", "address:to")
    changed = nats.message("CONFIG", last_by_subj=subject)[1]
    refusal = imported()
    assert subject in refusal and "--force" in refusal and nats.message("CONFIG", last_by_subj=subject)[1] == changed
    assert imported("--force")["imported"] == "1" and nats.message("CONFIG", last_by_subj=subject)[1] == trigger
    pipeline.cli("trigger", "delete", "copied")


def test_finding_16_doctor_names_an_empty_config_and_the_copy_brings_it_back(pipeline, nats, doctor, tmp_path):
    file = tmp_path / "config.ndjson"
    file.write_text(pipeline.run_cli("config", "export").stdout)
    nats.request("$JS.API.STREAM.PURGE.CONFIG", b"{}")
    try:
        said = doctor()[1]["config"]
        assert said["result"] == "fail" and "stentor config import FILE" in said["text"], said
        assert pipeline.send()  # memory keeps what it has
    finally:
        imported = pipeline.run_cli("config", "import", str(file), admin=True)
    assert imported.returncode == 0, imported.stderr
    assert doctor()[1]["config"]["result"] == "ok"


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda text: text.replace('"cfg.tenant.', '"cfg.tenanz.', 1), "sha256 differs"),
    (lambda text: "\n".join(text.splitlines()[:-1]) + "\n", "a part is missing"),
    (lambda text: "\n".join(text.splitlines()[1:]) + "\n", "its last line counts"),
    (lambda text: text + text.splitlines()[0] + "\n", "a part is missing"),
    (lambda text: "{" + text, "line 1"),
    (lambda text: "", "a part is missing"),
])
def test_finding_02_a_spoiled_copy_is_refused_whole(pipeline, nats, tmp_path, spoil, said):
    file = tmp_path / "config.ndjson"
    file.write_text(spoil(pipeline.run_cli("config", "export").stdout))
    before = nats.stream_info("CONFIG")["state"]["last_seq"]
    done = pipeline.run_cli("config", "import", str(file), admin=True)
    assert done.returncode == 1 and said in done.stderr
    assert nats.stream_info("CONFIG")["state"]["last_seq"] == before


def test_finding_02_a_change_is_not_decided_on_what_is_no_entry(pipeline, nats):
    """The headers of a removal without its bytes: for a change of the tenant's settings it would look as if there were none."""
    subject = "cfg.tenant.odd.self"
    pipeline.cli("tenant", "put", "odd", "--name", "odd", "--sender", "hello@odd.test", "--sender-name", "Odd", tenant="odd")
    good = nats.message("CONFIG", last_by_subj=subject)[1]
    nats.publish(subject, b"", "forged-removal", {"Nats-Msg-Size": "12"})
    refused = pipeline.run_cli("tenant", "put", "odd", "--sender-name", "Nothing", tenant="odd")
    assert refused.returncode != 0 and "50" in refused.stderr, refused
    assert "restored as it was before" in pipeline.run_cli("config", "mend", subject, admin=True).stdout
    assert nats.message("CONFIG", last_by_subj=subject)[1] == good
