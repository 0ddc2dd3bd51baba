# SPDX-License-Identifier: Apache-2.0
"""Rotation of the master key and of the hash key under a running pipeline: nothing is lost, nobody who is suppressed gets mail."""
import json
import re
import subprocess

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, wait_until


@pytest.fixture(scope="module")
def rotating():
    pipeline = Pipeline({"STENTOR_RENDERER_PUBLIC_URL": "http://links.test"}).start()
    html = pipeline.folder / "promo.html"
    html.write_text("<p>Buy</p>")
    pipeline.cli("template", "put", "promo", "--subject", "Buy", "--html", html, "--category", "marketing")
    yield pipeline
    pipeline.stop()


def status_of(pipeline):
    return {key["id"]: key for key in json.loads(pipeline.cli("keys", "status", "--json"))["keys"]}


def change_file(pipeline, *words):
    path = pipeline.folder / "master.key"
    done = subprocess.run([BIN / "stentor", "master-key", *words], env={"STENTOR_MASTER_KEY_FILE": str(path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path.write_text(done.stdout)


def ids(pipeline, kind):
    return re.findall(rf"^{kind} ([0-9a-f]{{8}})", (pipeline.folder / "master.key").read_text(), re.M)


def restart(pipeline):
    for service in pipeline.services.values():
        service.stop()
    for service in pipeline.services.values():
        service.start(wait=False)
    for service in pipeline.services.values():
        service.wait_ready()


def rotate(pipeline, kind):
    """The steps of deploy/README.md; returns the ids of the old and of the new key."""
    change_file(pipeline, "add", "--kind", kind)
    old, new = ids(pipeline, kind)[0], ids(pipeline, kind)[-1]
    restart(pipeline)  # every program knows it, none uses it
    change_file(pipeline, "use", new)
    pipeline.cli("migrate", "--bytes-scale-percent", "1", admin=True)
    restart(pipeline)
    return old, new


def test_the_master_key_rotates_and_the_old_one_goes(rotating):
    for number in range(20):
        rotating.send(to=f"before{number}@example.com")
    wait_until(lambda: len(rotating.mailbox.mails()) >= 20, 30, "the mails of before")
    old, new = rotate(rotating, "master")
    assert status_of(rotating)[new]["state"] == "current" and status_of(rotating)[old]["state"] == "old"
    wait_until(lambda: status_of(rotating)[old]["data_keys"] == 0, 30, "every data key being wrapped anew")
    assert status_of(rotating)[new]["data_keys"] >= 20
    assert "every data key is wrapped by the current master key" in rotating.services["ingest"].log.read_text()

    # A known recipient is written to under the key of before, now wrapped by the new one.
    assert rotating.status(rotating.send(to="before0@example.com"), wait="sent")["status"] == "sent"

    refused = rotating.run_cli("keys", "retire", old, admin=True)
    assert refused.returncode == 1 and "opt-out links" in refused.stderr, refused
    assert "is the current one" in rotating.run_cli("keys", "retire", new, "--now", admin=True).stderr
    rotating.cli("keys", "retire", old, "--now", admin=True)
    change_file(rotating, "remove", old)
    restart(rotating)
    assert rotating.status(rotating.send(to="before1@example.com"), wait="sent")["status"] == "sent"
    report = json.loads(rotating.run_cli("doctor", "--json").stdout)
    assert {check["check"]: check["result"] for check in report["checks"]}["master key file"] == "ok"
    assert status_of(rotating)[old]["state"] == "retired"


def test_a_file_without_a_key_that_is_in_use_is_refused(rotating):
    text = (rotating.folder / "master.key").read_text()
    old, _new = rotate(rotating, "master")
    kept = (rotating.folder / "master.key").read_text()
    change_file(rotating, "remove", old)
    service = rotating.service("renderer", instance="lacking").start(wait=False)
    wait_until(lambda: service.child.poll() is not None, 30, "the renderer ending")
    assert service.child.returncode == 2 and f"lacks the master key {old}, which is still in use" in service.log.read_text()
    (rotating.folder / "master.key").write_text(kept)
    assert text != kept


def test_a_key_is_not_retired_while_data_keys_hang_on_it(rotating):
    (old,) = [key for key, row in status_of(rotating).items() if row["state"] == "old" and row["kind"] == "master"]
    wait_until(lambda: status_of(rotating)[old]["data_keys"] == 0, 30, "every data key being wrapped anew")
    rotating.services["ingest"].stop()
    rotating.postgres.query(
        f"INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped) VALUES ('acme', substr(sha256('x'), 1, 16), 1, '\\x0101{old}' || substr(sha256('y') || sha256('z'), 1, 60))")
    try:
        refused = rotating.run_cli("keys", "retire", old, "--now", admin=True)
        assert refused.returncode == 1 and "1 data keys are wrapped by it" in refused.stderr, refused
    finally:
        rotating.postgres.query("DELETE FROM keys.data_keys WHERE subject = substr(sha256('x'), 1, 16)")
        rotating.services["ingest"].start()
