# SPDX-License-Identifier: Apache-2.0
"""An invoice is uploaded once, sealed in object storage, named by requests and carried by their mails; an image of it is shown inline."""
import email
import email.policy
import hashlib
import http.client
import json
import time
import uuid

import pytest

from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import wait_until

PDF = b"%PDF-1.7 an invoice of 1,234.56 \x00\xff" * 3000
PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 100


class WithStorage(Pipeline):
    def service(self, name, instance="", **options):
        storage = {"STENTOR_STORAGE_URL": f"file://{self.folder}/objects"} if name in ("gateway", "dispatcher") else {}
        if name == "gateway":
            places = [{"name": "invoices", "tenants": [TENANT], "url": f"file://{self.folder}/callers"},
                      {"name": "others", "tenants": ["beta"], "url": f"file://{self.folder}/others"},
                      {"name": "away", "tenants": [TENANT], "url": "s3://away/pdf?endpoint=http://127.0.0.1:1&patience_s=1", "key_id": "k",
                       "secret_file": str(self.folder / "secret"), "vendor": "ceph"}]
            (self.folder / "places.json").write_text(json.dumps(places))
            (self.folder / "secret").write_text("secret\n")
            storage["STENTOR_GATEWAY_ATTACHMENT_PLACES"] = str(self.folder / "places.json")
        return super().service(name, instance, **{**storage, **options})

    def upload(self, name, content_type, body, key=None, query=None):
        """(status, parsed answer)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api_port, timeout=30)
        try:
            head = {"Authorization": f"Bearer {key or self.key}"}
            if content_type:
                head["Content-Type"] = content_type
            connection.request("POST", "/v1/attachments" + (f"?name={name}" if query is None else query), body, head)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def objects(self):
        return sorted(path for path in (self.folder / "objects" / "attachments").rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def pipeline():
    running = WithStorage({"STENTOR_RETRY_LADDER": "2,2,2,2,2,2,2,2"}).start()
    yield running
    running.stop()


def person():
    return f"{uuid.uuid4().hex}@example.com"


def mail_of(pipeline, notification):
    with pipeline.mailbox.lock:
        found = [raw for _, _, raw in pipeline.mailbox.raw if notification.encode() in raw]
    assert len(found) == 1
    return email.message_from_bytes(found[0], policy=email.policy.default)


def put(pipeline, name="invoice.pdf", content_type="application/pdf", body=PDF):
    status, answer = pipeline.upload(name, content_type, body)
    assert status == 201, answer
    return answer


def test_an_invoice_and_an_inline_logo_arrive_whole(pipeline):
    invoice, logo = put(pipeline), put(pipeline, "logo.png", "image/png", PNG)
    assert invoice["size_bytes"] == len(PDF) and invoice["sha256"] == hashlib.sha256(PDF).hexdigest() and invoice["id"].startswith("att_")
    notification = pipeline.send(to=person(), attachments=[{"id": invoice["id"]}, {"id": logo["id"], "inline": True, "content_id": "logo"}])
    pipeline.status(notification, wait="sent")
    mail = mail_of(pipeline, notification)
    assert mail.get_content_type() == "multipart/mixed"
    related, file = mail.iter_parts()
    assert file.get_filename() == "invoice.pdf" and file.get_content_type() == "application/pdf" and file.get_content() == PDF
    assert related.get_content_type() == "multipart/related"
    texts, image = related.iter_parts()
    assert texts.get_content_type() == "multipart/alternative"
    assert image["Content-ID"] == "<logo>" and image.get_content_disposition() == "inline" and image.get_content() == PNG


def test_the_command_uploads_what_it_attaches(pipeline):
    file = pipeline.folder / "terms.pdf"
    file.write_bytes(PDF)
    to = ("send", "--to", person(), "--template", "welcome", "--var", "name=Ada")
    notification = pipeline.cli(*to, "--attach", file).split()[0]
    pipeline.status(notification, wait="sent")
    part, = mail_of(pipeline, notification).iter_attachments()
    assert part.get_filename() == "terms.pdf" and part.get_content_type() == "application/pdf" and part.get_content() == PDF
    sent_before = put(pipeline)["id"]
    again = [pipeline.cli(*to, "--attach", sent_before, "--idempotency-key", "terms-1").split()[0] for _ in range(2)]
    assert again[0] == again[1]
    for words, said in ((("--attach", file, "--idempotency-key", "terms-2"), "name the id of an uploaded file"),
                        (("--attach", pipeline.folder / "none.pdf"), "--attach"), (("--attach", "att_x"), "attachments[0].id")):
        refused = pipeline.run_cli(*to, *words)
        assert refused.returncode != 0 and said in refused.stderr, (words, refused.stderr)


def test_shadow_says_what_it_does_of_files(pipeline):
    """By name and type: so a vendor that carries none is found before its route takes mails."""
    notification = pipeline.send(to=person(), attachments=[{"id": put(pipeline)["id"]}])
    pipeline.status(notification, wait="sent")
    own = pipeline.folder / "own.json"
    own.write_text('{"request": {"url": "https://mail.example/send", "json": {"to": "{{to}}"}}}')
    pipeline.cli("credential", "put", "postmark", "trial", "--reference", "file:/run/secrets/none")
    pipeline.cli("credential", "put", "email-own", "trial", "--reference", "file:/run/secrets/none", "--definition", own)
    pipeline.cli("route", "put", "next", "--vendor", "postmark/trial", "--fallback", "email-own/trial", "--disabled")
    words = ("shadow", "--route", "next", "--last", "1", "--ground", "moving to another vendor")
    found = json.loads(pipeline.cli(*words, "--json"))
    postmark, other = found["vendors"]
    assert (found["mails"], found["with_attachments"]) == (1, 1)
    assert postmark["built"] == 1 and '"invoice.pdf"' in postmark["requests"][0]["body"]
    assert (other["built"], list(other["reasons"])) == (0, ["the mail has attachments, which no vendor by definition carries"])
    assert "1 have attachments: a text stands for each file, so their sizes are not checked" in pipeline.cli(*words)
    pipeline.cli("route", "delete", "next")


def test_the_same_file_goes_to_many_and_to_a_later_time(pipeline):
    invoice = put(pipeline, "r%C3%A9sum%C3%A9.pdf")
    assert invoice["name"] == "résumé.pdf"
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    sent = [pipeline.send(to=person(), attachments=[{"id": invoice["id"]}], **fields) for fields in ({}, {}, {"scheduled_for": soon})]
    for notification in sent:
        pipeline.status(notification, wait="sent")
        file = list(mail_of(pipeline, notification).iter_attachments())[0]
        assert file.get_filename() == "résumé.pdf" and file.get_content() == PDF


def refer(pipeline, **fields):
    """(status, answer) of a reference to an object of a place; fields: what is other than right."""
    wanted = {"place": "invoices", "object": "2026/11/17.pdf", "name": "invoice.pdf", "content_type": "application/pdf", "size_bytes": len(PDF),
              "sha256": hashlib.sha256(PDF).hexdigest(), **fields}
    status, _, answer = pipeline.post({name: value for name, value in wanted.items() if value is not None}, path="/v1/attachments/objects")
    return status, answer


def lay(pipeline, place="callers", name="2026/11/17.pdf", body=PDF):
    path = pipeline.folder / place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def test_an_object_of_the_callers_is_attached_by_its_name_and_checksum(pipeline):
    path = lay(pipeline)
    status, answer = refer(pipeline)
    assert status == 201 and answer["sha256"] == hashlib.sha256(PDF).hexdigest() and answer["size_bytes"] == len(PDF), answer
    path.unlink()  # what the id names is a sealed copy
    assert all(b"invoice" not in each.read_bytes() for each in pipeline.objects())
    notification = pipeline.send(to=person(), attachments=[{"id": answer["id"]}])
    pipeline.status(notification, wait="sent")
    file, = mail_of(pipeline, notification).iter_attachments()
    assert file.get_filename() == "invoice.pdf" and file.get_content() == PDF


def test_a_fault_of_a_reference_is_named_and_nothing_is_stored(pipeline):
    lay(pipeline)
    lay(pipeline, "others", "1.pdf")
    lay(pipeline, name="run.bin", body=b"MZ" + PDF[2:])
    outside = lay(pipeline, "outside", "1.pdf")
    before = pipeline.objects()
    for fields, field in (
            ({"object": "2026/11/18.pdf"}, "object"), ({"object": "../outside/1.pdf"}, "object"), ({"object": str(outside)}, "object"), ({"object": ""}, "object"),
            ({"sha256": hashlib.sha256(b"x").hexdigest()}, "sha256"), ({"sha256": "abc"}, "sha256"), ({"sha256": None}, "sha256"),
            ({"size_bytes": len(PDF) - 1}, "size_bytes"), ({"size_bytes": len(PDF) + 1}, "size_bytes"), ({"size_bytes": None}, "size_bytes"),
            ({"size_bytes": 1 << 40}, "size_bytes"), ({"place": "others", "object": "1.pdf"}, "place"), ({"place": "none"}, "place"),
            ({"place": f"file://{outside.parent}", "object": "1.pdf"}, "place"), ({"name": "../x"}, "name"), ({"content_type": None}, "content_type"),
            ({"object": "run.bin", "sha256": hashlib.sha256(b"MZ" + PDF[2:]).hexdigest()}, "body"), ({"url": "http://127.0.0.1/"}, "url")):
        status, answer = refer(pipeline, **fields)
        assert status == 422 and f'"field": "{field}"' in json.dumps(answer), (fields, answer)
    status, answer = refer(pipeline, place="away")
    assert status == 503 and "place does not answer" in answer["detail"], answer
    assert pipeline.objects() == before


def test_a_file_of_places_that_is_wrong_ends_the_gateway(pipeline, tmp_path):
    for text, said in (("{}", "no JSON list"), ('[{"name": "a", "url": "file:///x"}]', "'tenants' (a list) are required"),
                       ('[{"name": "a", "tenants": ["acme"], "url": "ftp://x"}]', "place 'a'"), ('[{"nam": "a"}]', "'nam' is no field"),
                       ('[{"name": "a", "tenants": ["acme"], "url": "s3://b/p?region=x", "key_id": "k", "secret_file": "/none"}]', "'/none' cannot be read")):
        (tmp_path / "places.json").write_text(text)
        process = pipeline.service("gateway", "wrong", STENTOR_GATEWAY_ATTACHMENT_PLACES=str(tmp_path / "places.json"))
        process.start(wait=False)
        assert process.exit_status() == 2, text
        assert said in process.tail(20), (text, process.tail(20))


def test_nothing_in_object_storage_can_be_read(pipeline):
    put(pipeline)
    for path in pipeline.objects():
        stored = path.read_bytes()
        assert b"invoice" not in stored and b"PDF" not in stored and b"picture" not in stored and len(stored) > 28


def test_a_lost_or_altered_object_is_a_failure_and_a_dead_letter(pipeline):
    for harm in ("removed", "altered"):
        before = set(pipeline.objects())
        invoice = put(pipeline)
        path, = set(pipeline.objects()) - before
        if harm == "removed":
            path.unlink()
        else:
            stored = bytearray(path.read_bytes())
            stored[100] ^= 1
            path.chmod(0o644)
            path.write_bytes(bytes(stored))
        notification = pipeline.send(to=person(), attachments=[{"id": invoice["id"]}])
        assert pipeline.status(notification, wait="failed")["reason_code"] == "attachment_lost"
        wait_until(lambda: notification in pipeline.cli("dlq", "list"), 20, "the dead letter")
        with pipeline.mailbox.lock:
            assert not any(notification.encode() in raw for _, _, raw in pipeline.mailbox.raw)


def test_a_mail_waits_for_a_dispatcher_that_has_object_storage(pipeline):
    invoice = put(pipeline)
    assert pipeline.services["dispatcher"].stop() == 0
    without = pipeline.service("dispatcher", "without", STENTOR_STORAGE_URL="").start()
    try:
        notification = pipeline.send(to=person(), attachments=[{"id": invoice["id"]}])
        found = pipeline.status(notification, wait="sending")
        assert "attachments need object storage" in json.dumps(found), found
    finally:
        assert without.stop() == 0
        pipeline.services["dispatcher"].start()
    assert pipeline.status(notification, wait="sent", timeout=60)["status"] == "sent"


def test_objects_past_their_time_are_removed(pipeline):
    put(pipeline)
    kept = pipeline.objects()
    old = pipeline.folder / "objects" / "attachments" / "2020-01-31" / "acme" / "01m2v3"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"sealed")
    assert pipeline.services["gateway"].stop() == 0
    pipeline.services["gateway"].start()
    wait_until(lambda: not old.exists(), 30, "the removal of the old object")
    assert pipeline.objects() == kept


def test_a_fault_of_an_upload_is_named(pipeline):
    for name, kind, body, query, field in (
            ("a.pdf", "application/pdf", b"", None, "body"), ("run.exe", "application/octet-stream", b"x", None, "body"),
            ("a.pdf", "application/pdf", b"MZ\x90", None, "body"), ("a.sh", "text/plain", b"x", None, "body"),
            ("", "application/pdf", b"x", "", "name"), ("..%2Fa", "application/pdf", b"x", None, "name"),
            ("a.pdf", "application/pdf; x=y", b"x", None, "Content-Type"), ("a.pdf", "multipart/mixed", b"x", None, "Content-Type")):
        status, answer = pipeline.upload(name, kind, body, query=query)
        assert status == 422 and answer["field"] == field, (name, kind, answer)


def test_a_fault_of_a_request_names_its_attachment(pipeline):
    invoice = put(pipeline)
    tenant = f"other-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", tenant, "--name", "Other", "--sender", f"desk@{tenant}.test", "--sender-name", "Desk")
    key = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant=tenant))["key"]
    wait_until(lambda: pipeline.upload("a.pdf", "application/pdf", b"x", key=key)[0] == 201, 20, "the key")
    others = pipeline.upload("a.pdf", "application/pdf", b"x", key=key)[1]["id"]
    altered = invoice["id"][:60] + ("A" if invoice["id"][60] != "A" else "B") + invoice["id"][61:]
    far = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60 * 86400))
    for fields, field in (
            ({"attachments": [{"id": "att_01M2V3W4X5Y6Z7A8B9CADBECFD"}]}, "attachments[0].id"), ({"attachments": [{"id": altered}]}, "attachments[0].id"),
            ({"attachments": [{"id": others}]}, "attachments[0].id"), ({"attachments": [{"id": invoice["id"], "inline": True}]}, "attachments[0].content_id"),
            ({"attachments": [{"file": "x"}]}, "attachments[0]"), ({"attachments": [{"id": invoice["id"]}] * 21}, "attachments"),
            ({"attachments": [{"id": invoice["id"]}], "scheduled_for": far}, "attachments[0].id"), ({"attachments": "x"}, "attachments")):
        status, _, answer = pipeline.post({"to": "ada@example.com", "template": "welcome", "variables": {"name": "Ada"}, **fields})
        assert status == 422 and f'"{field}"' in json.dumps(answer), (fields, answer)
