# SPDX-License-Identifier: Apache-2.0
"""Rotation of the master key and of the hash key under a running pipeline: nothing is lost, no suppressed recipient gets mail."""
import http.client
import json
import re
import subprocess
import urllib.parse

import pytest

from tests.harness.pipeline import CONSENT, Pipeline
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
    wait_until(lambda: status_of(rotating)[old]["data_keys"] == 0, 30, "every data key being wrapped again")
    assert status_of(rotating)[new]["data_keys"] >= 20
    assert "the current master key wraps every data key" in rotating.services["ingest"].log.read_text()

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
    wait_until(lambda: status_of(rotating)[old]["data_keys"] == 0, 30, "every data key being wrapped again")
    rotating.services["ingest"].stop()
    rotating.postgres.query(
        f"INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped) VALUES ('acme', substr(sha256('x'), 1, 16), 1, '\\x0101{old}' || substr(sha256('y') || sha256('z'), 1, 60))")
    try:
        refused = rotating.run_cli("keys", "retire", old, "--now", admin=True)
        assert refused.returncode == 1 and "1 data keys are wrapped by it" in refused.stderr, refused
    finally:
        rotating.postgres.query("DELETE FROM keys.data_keys WHERE subject = substr(sha256('x'), 1, 16)")
        rotating.services["ingest"].start()


# ---- the hash key ----


def call(pipeline, method, path, body=None, port=None):
    connection = http.client.HTTPConnection("127.0.0.1", port or pipeline.api_port, timeout=30)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Authorization": f"Bearer {pipeline.key}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def import_people(pipeline, line):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    connection.request("POST", "/v1/recipients/import", json.dumps(line) + "\n",
                       {"Authorization": f"Bearer {pipeline.key}", "Content-Type": "application/x-ndjson"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()


def found(pipeline, address):
    status, answer = call(pipeline, "GET", f"/v1/recipients?address={urllib.parse.quote(address)}")
    assert status == 200, answer
    return [person["id"] for person in answer["data"]]


def end_of(pipeline, **fields):
    status, answer = call(pipeline, "POST", "/v1/notifications", {"template": "welcome", "variables": {"name": "Ada"}, "consent": CONSENT, **fields})
    assert status == 202, answer
    return pipeline.status(answer["id"], wait="sent")


def wait_end(pipeline, status, **fields):
    def attempt():
        row = end_of(pipeline, **fields)
        return row if row["status"] == status else None
    return wait_until(attempt, 20, f"{fields} being {status}")


def test_what_was_hashed_under_the_key_of_before_is_found_after(rotating):
    ada = call(rotating, "POST", "/v1/recipients", {"name": "Ada", "addresses": [{"channel": "email", "address": "ada@example.com"}]})[1]["id"]
    bob = call(rotating, "POST", "/v1/recipients", {"name": "Bob", "addresses": [{"channel": "email", "address": "bob@example.com"}]})[1]["id"]
    import_people(rotating, {"name": "Cleo", "addresses": [{"channel": "email", "address": "cleo@example.com"}]})
    wait_until(lambda: found(rotating, "ada@example.com") == [ada] and found(rotating, "bob@example.com") == [bob], 20, "people")
    cleo = wait_until(lambda: found(rotating, "cleo@example.com"), 20, "the imported one")
    rotating.cli("suppress", "add", "angry@example.com", "--reason", "complaint")
    rotating.cli("suppress", "add", "spam@example.com", "--reason", "complaint", "--tenant", "platform")
    wait_end(rotating, "suppressed", to="angry@example.com")
    wait_end(rotating, "suppressed", to="spam@example.com")
    mail, = rotating.mailbox.for_notification(end_of(rotating, to="reader@example.com", template="promo")["id"])
    link = re.fullmatch(r"<(http://[^>]+)>", mail["List-Unsubscribe"].strip()).group(1)
    for person in (ada, cleo[0]):  # both have a key for what a law may keep, too
        assert end_of(rotating, recipient_id=person)["status"] == "sent"
    keys = "SELECT count(*) FROM keys.data_keys"
    count = rotating.postgres.query(keys)

    old, new = rotate(rotating, "hash")
    assert {key: row["state"] for key, row in status_of(rotating).items() if row["kind"] == "hash"} == {old: "old", new: "current"}

    # Suppressions of before: by address, in the platform's list, and where a list or a release asks for them.
    assert end_of(rotating, to="angry@example.com")["status"] == "suppressed"
    assert end_of(rotating, to="spam@example.com")["status"] == "suppressed"
    assert [entry["reason"] for entry in json.loads(rotating.cli("suppress", "list", "--address", "angry@example.com", "--json"))] == ["complaint"]
    assert len(call(rotating, "GET", "/v1/suppressions?address=angry@example.com")[1]["data"]) == 1
    assert call(rotating, "GET", "/v1/suppressions?address=unknown@example.com")[1]["data"] == []

    # People: their address still opens, they are found by it, and they get no second id and no second key.
    assert found(rotating, "ada@example.com") == [ada]
    assert end_of(rotating, recipient_id=ada)["status"] == "sent"
    import_people(rotating, {"name": "Cleo", "addresses": [{"channel": "email", "address": "cleo@example.com"}]})
    assert end_of(rotating, recipient_id=cleo[0])["status"] == "sent"
    wait_until(lambda: len(found(rotating, "cleo@example.com")) == 1, 20, "one record of the imported one")
    assert rotating.postgres.query(keys) == count

    # A suppression of after meets an address that is stored under the key of before.
    rotating.cli("suppress", "add", "bob@example.com", "--reason", "complaint")
    wait_end(rotating, "suppressed", recipient_id=bob)

    # A link of before.
    path = urllib.parse.urlsplit(link).path
    connection = http.client.HTTPConnection("127.0.0.1", rotating.webhook_port, timeout=20)
    connection.request("POST", path, "List-Unsubscribe=One-Click", {"Content-Type": "application/x-www-form-urlencoded"})
    assert connection.getresponse().status == 200
    wait_end(rotating, "suppressed", to="reader@example.com", template="promo")

    # A release ends what was made under either key.
    rotating.cli("suppress", "release", "--address", "angry@example.com")
    wait_end(rotating, "sent", to="angry@example.com")

    refused = rotating.run_cli("keys", "retire", old, admin=True)
    assert refused.returncode == 1 and "suppressions too, is not found without it" in refused.stderr
