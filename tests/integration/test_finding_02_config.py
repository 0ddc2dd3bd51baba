# SPDX-License-Identifier: Apache-2.0
"""Finding 2: what nats-server writes on a reply's subject destroys no configuration, doctor names it, and CONFIG has copies."""
import json
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until


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
    while nats.stream_info("CONFIG_HISTORY")["state"]["last_seq"] == before:
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
    mended = pipeline.run_cli("config", "mend", subject)
    assert mended.returncode == 0 and "put again as it was before" in mended.stdout
    assert nats.message("CONFIG", last_by_subj=subject)[1] == good
    assert subject not in doctor()[1]
    assert "can be read" in pipeline.run_cli("config", "mend", subject).stdout
    assert pipeline.run_cli("config", "mend", "cfg.tenant.nobody.self").returncode == 3
    assert pipeline.run_cli("config", "mend", "ntf.status.acme").returncode == 1


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
    made = json.loads(thief.request(f"$JS.API.CONSUMER.CREATE.CONFIG_HISTORY.stentor-archiver-7.{subject}",
                                    json.dumps({"stream_name": "CONFIG_HISTORY", "config": reader}).encode()))
    assert made["num_pending"] == 2, made
    thief._write(b'PUB $JS.API.CONSUMER.MSG.NEXT.CONFIG_HISTORY.stentor-archiver-7 cfg.replayed 26\r\n{"batch":1,"no_wait":true}\r\n')
    info = "$JS.API.CONSUMER.INFO.CONFIG_HISTORY.stentor-archiver-7"
    wait_until(lambda: json.loads(nats.request(info))["delivered"]["consumer_seq"] == 1, 10, "the history's entry being delivered")
    nats.publish("cfg.after.acme.it", b"", event_id="after-it")  # behind it in the stream's queue
    assert nats.message("CONFIG", last_by_subj=subject)[1] == revoked
    assert pipeline.run_cli("config", "mend", "cfg.after.acme.it", "--drop").returncode == 0
    nats.request("$JS.API.STREAM.UPDATE.CONFIG", json.dumps(config).encode())
    thief.close()


def test_finding_02_what_never_was_an_entry_is_dropped_only_when_told(pipeline, nats, doctor):
    subject = "cfg.odd.acme.thing"
    _answer_on(nats, subject)
    assert doctor()[1][subject]["result"] == "fail"
    kept = pipeline.run_cli("config", "mend", subject)
    assert kept.returncode == 1 and "--drop" in kept.stderr
    assert pipeline.run_cli("config", "mend", subject, "--drop").returncode == 0
    assert subject not in doctor()[1] and doctor()[1]["config"]["result"] == "ok"


def test_finding_02_config_is_exported_and_imported(pipeline, nats, tmp_path):
    exported = pipeline.run_cli("config", "export")
    assert exported.returncode == 0 and "secret" in exported.stderr
    lines = exported.stdout.splitlines()
    assert json.loads(lines[-1])["entries"] == len(lines) - 1 == nats.stream_info("CONFIG")["state"]["messages"]
    file = tmp_path / "config.ndjson"
    file.write_text(exported.stdout)

    def imported(*flags):
        done = pipeline.run_cli("config", "import", str(file), *flags, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    assert imported() == {"imported": "0", "same": str(len(lines) - 1), "changed_since": "0"}
    subject = f"cfg.trigger.{TENANT}.copied"
    pipeline.cli("trigger", "put", "copied", "--event", "copy.made", "--template", "welcome", "--resolver", "address:to")
    trigger = nats.message("CONFIG", last_by_subj=subject)[1]
    file.write_text(pipeline.run_cli("config", "export").stdout)
    # Lost altogether, then changed after the export.
    sequence = json.loads(nats.request("$JS.API.STREAM.MSG.GET.CONFIG", json.dumps({"last_by_subj": subject}).encode()))["message"]["seq"]
    nats.request("$JS.API.STREAM.MSG.DELETE.CONFIG", json.dumps({"seq": sequence}).encode())
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
        imported = pipeline.run_cli("config", "import", str(file))
    assert imported.returncode == 0, imported.stderr
    assert doctor()[1]["config"]["result"] == "ok"


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda text: text.replace('"cfg.tenant.', '"cfg.tenanz.', 1), "sha256 differs"),
    (lambda text: "\n".join(text.splitlines()[:-1]) + "\n", "a part is missing"),
    (lambda text: "\n".join(text.splitlines()[1:]) + "\n", "the file says"),
    (lambda text: text + text.splitlines()[0] + "\n", "a part is missing"),
    (lambda text: "{" + text, "line 1"),
    (lambda text: "", "a part is missing"),
])
def test_finding_02_a_spoiled_copy_is_refused_whole(pipeline, nats, tmp_path, spoil, said):
    file = tmp_path / "config.ndjson"
    file.write_text(spoil(pipeline.run_cli("config", "export").stdout))
    before = nats.stream_info("CONFIG")["state"]["last_seq"]
    done = pipeline.run_cli("config", "import", str(file))
    assert done.returncode == 1 and said in done.stderr
    assert nats.stream_info("CONFIG")["state"]["last_seq"] == before
