# SPDX-License-Identifier: Apache-2.0
"""template-assets/: a logo is put, mails show its public address, and what was sent shows the same for ever."""
import hashlib
import http.client
import json
import re
import struct
import zlib

import pytest

from tests.harness.objectstore.puppet import Fault, Puppet
from tests.harness.pipeline import TENANT, Pipeline
from tests.harness.processes import free_port, wait_until

IMMUTABLE = "public, max-age=31536000, immutable"


class WithAssets(Pipeline):
    """The gateway has object storage; the address that mails show is nginx's."""

    def service(self, name, instance="", **options):
        url = {"STENTOR_RENDERER_PUBLIC_URL": f"http://127.0.0.1:{self.api_port}/"}
        storage = {"STENTOR_STORAGE_URL": f"file://{self.folder}/objects"} if name == "gateway" else {}
        return super().service(name, instance, **{**url, **storage, **options})

    def call(self, method, path, body=b"", key=None, port=None, **headers):
        """(status, headers, body) of the API; key "": without one."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.api_port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key != "":
            sent["Authorization"] = f"Bearer {key or self.key}"
        try:
            connection.request(method, path, body or None, sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def put(self, name, body, **options):
        status, _, text = self.call("PUT", f"/v1/template-assets/{name}", body, **options)
        assert status in (200, 201), text
        return json.loads(text)

    def show(self, asset):
        """What a mailbox gets: (status, headers, body)."""
        return self.call("GET", path_of(asset["url"]), key="")

    def object_of(self, asset):
        return self.folder / "objects/template-assets" / asset["tenant"] / asset["sha256"]

    def restart_gateway(self):
        """What it had in memory is gone."""
        assert self.services["gateway"].stop() == 0
        self.services["gateway"].start()
        wait_until(lambda: self.call("GET", "/v1/template-assets")[0] == 200, 20, "the gateway knowing the key")


@pytest.fixture(scope="module")
def pipeline():
    running = WithAssets({"STENTOR_RETRY_LADDER": "1"}).start(["ingest", "gateway", "renderer", "dispatcher", "archiver"])
    yield running
    running.stop()


def png(red):
    """A picture of one pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixel = zlib.compress(bytes([0, red, 0, 0]))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", pixel) + chunk(b"IEND", b""))


def path_of(url):
    return re.fullmatch(r"http://127\.0\.0\.1:\d+(/v1/assets/[a-z]+/[0-9a-f]{64}\.[a-z]+)", url).group(1)


def put_template(pipeline, key, html):
    file = pipeline.folder / f"{key}.html"
    file.write_text(html)
    return pipeline.run_cli("template", "put", key, "--subject", "Stay", "--html", file)


def shown_url(pipeline, template):
    """The address in the mail that is sent now."""
    mail_id = pipeline.send(template=template)
    wait_until(lambda: pipeline.mailbox.for_notification(mail_id), 20, "the mail")
    html = pipeline.mailbox.for_notification(mail_id)[0].get_body(("html",)).get_content()
    return re.search(r'<img src="([^"]+)"', html).group(1)


def end_of(pipeline, mail_id):
    """sent or failed."""
    rows = []
    def ended():
        rows[:] = pipeline.postgres.query(f"SELECT status FROM archiver.notifications WHERE id = '{mail_id}' AND status IN ('sent', 'failed')")
        return rows
    wait_until(ended, 20, "the notification's end")
    return rows[0][0]


def problem(answer):
    status, _, body = answer
    found = json.loads(body)
    return status, found["type"].rsplit(":", 1)[1], found.get("field"), found["detail"]


def test_a_logo_is_put_and_what_was_sent_shows_it_for_ever(pipeline):
    done = put_template(pipeline, "stay", '<p><img src="{{asset "logo.png"}}"> Hello {{name}}</p>')
    assert done.returncode == 0 and "warning: there is no asset 'logo.png'" in done.stderr, done.stderr
    first, second = png(1), png(2)
    (pipeline.folder / "logo.png").write_bytes(first)
    asset = json.loads(pipeline.cli("asset", "put", "logo.png", "--file", pipeline.folder / "logo.png", "--json"))
    assert asset["sha256"] == hashlib.sha256(first).hexdigest() and asset["size_bytes"] == len(first)
    assert "warning" not in put_template(pipeline, "stay", '<p><img src="{{asset "logo.png"}}"> Hello {{name}}</p>').stderr

    url = shown_url(pipeline, "stay")
    assert url == asset["url"] and url.startswith(f"http://127.0.0.1:{pipeline.api_port}/v1/assets/{TENANT}/")
    status, headers, body = pipeline.show(asset)
    assert (status, body, headers["Content-Type"]) == (200, first, "image/png")
    assert headers["Cache-Control"] == IMMUTABLE and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["ETag"] == f'"{asset["sha256"]}"'
    status, headers, body = pipeline.call("GET", path_of(url), key="", If_None_Match=headers["ETag"])
    assert (status, body, headers["Cache-Control"]) == (304, b"", IMMUTABLE)
    status, headers, body = pipeline.call("HEAD", path_of(url), key="")
    assert (status, body, headers["Content-Length"]) == (200, b"", str(len(first)))

    (pipeline.folder / "logo.png").write_bytes(second)
    replaced = json.loads(pipeline.cli("asset", "put", "logo.png", "--file", pipeline.folder / "logo.png", "--json"))
    wait_until(lambda: shown_url(pipeline, "stay") == replaced["url"], 20, "the renderer knowing the new logo")
    pipeline.restart_gateway()
    assert pipeline.show(asset)[2] == first and pipeline.show(replaced)[2] == second

    assert "still show it" in pipeline.cli("asset", "remove", "logo.png")
    assert pipeline.call("GET", "/v1/template-assets/logo.png")[0] == 404
    assert pipeline.show(asset)[2] == first and pipeline.show(replaced)[2] == second
    wait_until(lambda: end_of(pipeline, pipeline.send(template="stay")) == "failed", 20, "the renderer knowing that the logo is gone")
    shown = pipeline.status(pipeline.send(template="stay"), wait="failed")
    assert "html: line 1, column 14: 'asset': there is no asset 'logo.png'" in json.dumps(shown)


def test_a_preview_is_what_would_be_sent(pipeline):
    asset = pipeline.put("head.png", png(3))
    put_template(pipeline, "preview", '<img src="{{asset "head.png"}}">')
    answer = json.loads(pipeline.call("POST", "/v1/templates/preview", json.dumps({"template": "preview"}).encode())[2])
    assert answer["parts"]["html"] == f'<img src="{asset["url"]}">'
    body = json.dumps({"source": {"key": "x", "locales": [{"locale": "en", "subject": "x", "text": "{{asset 'no.png'}}"}]}}).encode()
    status, _, field, detail = problem(pipeline.call("POST", "/v1/templates/preview", body))
    assert (status, field) == (422, "data") and "there is no asset 'no.png'" in detail


def test_a_damaged_object_is_refused_and_put_again_it_is_whole(pipeline):
    asset, other = pipeline.put("damaged.png", png(4)), pipeline.put("whole.png", png(5))
    assert pipeline.show(asset)[0] == 200
    pipeline.object_of(asset).write_bytes(png(6))
    pipeline.restart_gateway()
    answer = pipeline.show(asset)
    assert problem(answer)[:2] == (502, "asset-damaged") and answer[1]["Cache-Control"] == "no-store"
    gateway = pipeline.services["gateway"]
    assert gateway.metric('stentor_gateway_asset_answers_total{answer="damaged"}') == 1
    assert "an asset cannot be shown" in gateway.log.read_text() and asset["sha256"] in gateway.log.read_text()
    assert pipeline.show(other)[0] == 200
    assert pipeline.put("damaged.png", png(4)) == asset, "the same bytes change nothing but the object"
    assert pipeline.show(asset)[2] == png(4)
    pipeline.object_of(other).unlink()
    pipeline.restart_gateway()
    assert problem(pipeline.show(other))[:2] == (404, "not-found")


def test_another_tenant_sees_the_platforms_asset_and_no_other(pipeline):
    mine = pipeline.put("own.png", png(7))
    pipeline.cli("tenant", "put", "globex", "--name", "Globex", tenant="globex")
    key = json.loads(pipeline.cli("apikey", "create", "--name", "test", "--json", tenant="globex"))["key"]
    wait_until(lambda: pipeline.call("GET", "/v1/template-assets", key=key)[0] == 200, 20, "the key reaching the gateway")
    assert pipeline.call("GET", "/v1/template-assets/own.png", key=key)[0] == 404
    assert json.loads(pipeline.call("GET", "/v1/template-assets", key=key)[2])["data"] == []
    guessed = {**mine, "url": mine["url"].replace(f"/{TENANT}/", "/globex/")}
    assert pipeline.show(guessed)[0] == 404, "the same bytes, which this tenant has not put"
    shared = pipeline.put("shared.png", png(8), key=pipeline.operator_key, Stentor_Tenant="platform")
    assert json.loads(pipeline.call("GET", "/v1/template-assets/shared.png", key=key)[2]) == shared
    own = pipeline.put("shared.png", png(9), key=key)
    assert own["tenant"] == "globex" and json.loads(pipeline.call("GET", "/v1/template-assets/shared.png", key=key)[2]) == own
    assert json.loads(pipeline.call("GET", "/v1/template-assets/shared.png")[2]) == shared
    listed = json.loads(pipeline.call("GET", "/v1/template-assets?platform=true")[2])["data"]
    assert [asset["name"] for asset in listed] == ["shared.png"]
    assert "shared.png" in pipeline.cli("asset", "list", "--platform")


@pytest.mark.parametrize("name, body, headers, field, words", [
    ("logo.svg", b"<svg onload='x()'/>", {}, "body", "can hold scripts"),
    ("style.css", b"body { color: red }", {}, "body", "PNG, JPEG, GIF or WebP"),
    ("empty.png", b"", {}, "body", "empty"),
    ("big.png", png(1) + bytes(1024 * 1024), {}, "body", "at most 1048576"),
    ("Logo.png", png(1), {}, "name", "a-z 0-9"),
    ("jpeg.png", png(1), {"Content_Type": "image/jpeg"}, "Content-Type", "the file is image/png"),
], ids=["svg", "css", "empty", "too large", "name", "another type"])
def test_what_is_no_asset_is_refused_with_field_and_fix(pipeline, name, body, headers, field, words):
    status, _, named, detail = problem(pipeline.call("PUT", f"/v1/template-assets/{name}", body, **headers))
    assert (status, named) == (422, field) and words in detail
    assert pipeline.call("GET", f"/v1/template-assets/{name}")[0] == 404


def test_a_put_is_conditional_and_a_replacement_needs_the_right_to_activate(pipeline):
    asset = pipeline.put("tag.png", png(10), If_None_Match="*")
    assert problem(pipeline.call("PUT", "/v1/template-assets/tag.png", png(11), If_None_Match="*"))[:2] == (412, "precondition-failed")
    etag = pipeline.call("GET", "/v1/template-assets/tag.png")[1]["ETag"]
    key = json.loads(pipeline.cli("apikey", "create", "--name", "manage", "--scopes", "manage", "--json"))["key"]
    wait_until(lambda: pipeline.call("GET", "/v1/template-assets", key=key)[0] == 200, 20, "the key reaching the gateway")
    pipeline.put("new.png", png(12), key=key)
    assert problem(pipeline.call("PUT", "/v1/template-assets/tag.png", png(11), key=key))[:2] == (403, "missing-scope")
    assert problem(pipeline.call("DELETE", "/v1/template-assets/tag.png", key=key))[:2] == (403, "missing-scope")
    assert json.loads(pipeline.call("GET", "/v1/template-assets/tag.png")[2]) == asset
    replaced = pipeline.put("tag.png", png(11), If_Match=etag)
    assert pipeline.call("DELETE", "/v1/template-assets/tag.png", If_Match=etag)[0] == 412
    assert json.loads(pipeline.call("GET", "/v1/template-assets/tag.png")[2]) == replaced
    assert pipeline.call("DELETE", "/v1/template-assets/tag.png", If_Match="*")[0] == 204
    assert pipeline.call("DELETE", "/v1/template-assets/tag.png")[0] == 404


def test_a_list_goes_page_by_page(pipeline):
    for number in range(3):
        pipeline.put(f"page{number}.png", png(20 + number))
    names, path = [], "/v1/template-assets?limit=2"
    while path:
        page = json.loads(pipeline.call("GET", path)[2])
        names += [asset["name"] for asset in page["data"]]
        path = page["next"] and f"/v1/template-assets?limit=2&cursor={page['next']}"
    assert names == sorted(names) and {"page0.png", "page1.png", "page2.png"} <= set(names)


def test_what_is_no_address_of_an_asset_is_answered_without_a_key(pipeline):
    for path in ("/v1/assets/acme/x.png", f"/v1/assets/acme/{'0' * 64}.svg", f"/v1/assets/acme/{'0' * 64}.png"):
        assert problem(pipeline.call("GET", path, key=""))[:2] == (404, "not-found"), path
    status, headers, _ = pipeline.call("DELETE", f"/v1/assets/acme/{'0' * 64}.png", key="")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_bucket_that_loses_objects_or_lies_shows_nothing_wrong(pipeline):
    port = free_port()
    with Puppet() as puppet:
        gateway = pipeline.service("gateway", "-bucket", **puppet.environment("production"), STENTOR_GATEWAY_PORT=port).start()
        try:
            wait_until(lambda: pipeline.call("GET", "/v1/template-assets", port=port)[0] == 200, 20, "the gateway knowing the key")
            asset = pipeline.put("bucket.png", png(30), port=port)
            assert f"production/template-assets/{TENANT}/{asset['sha256']}" in puppet.store
            puppet.next(Fault.LOST, method="PUT")
            assert problem(pipeline.call("PUT", "/v1/template-assets/lost.png", png(31), port=port))[0] == 500
            assert pipeline.call("GET", "/v1/template-assets/lost.png", port=port)[0] == 404, "no name without its bytes"
            puppet.full = True
            assert problem(pipeline.call("PUT", "/v1/template-assets/lost.png", png(31), port=port))[:2] == (503, "unavailable")
            puppet.full = False
            puppet.next(Fault.WRONG_BYTES, method="GET")
            assert problem(pipeline.call("GET", path_of(asset["url"]), key="", port=port))[:2] == (502, "asset-damaged")
            assert pipeline.call("GET", path_of(asset["url"]), key="", port=port)[2] == png(30)
            asked = len(puppet.requests)
            assert pipeline.call("GET", path_of(asset["url"]), key="", port=port)[2] == png(30)
            assert len(puppet.requests) == asked, "from memory"
        finally:
            assert gateway.stop() == 0


def test_without_object_storage_a_put_names_the_setting(pipeline):
    port = free_port()
    bare = pipeline.service("gateway", "-bare", STENTOR_STORAGE_URL="", STENTOR_GATEWAY_PORT=port).start()
    try:
        wait_until(lambda: pipeline.call("GET", "/v1/template-assets", port=port)[0] == 200, 20, "the gateway knowing the key")
        status, kind, _, detail = problem(pipeline.call("PUT", "/v1/template-assets/bare.png", png(1), port=port))
        assert (status, kind) == (503, "no-storage") and "STENTOR_STORAGE_URL" in detail
        assert problem(pipeline.call("GET", f"/v1/assets/acme/{'0' * 64}.png", key="", port=port))[:2] == (503, "unavailable")
    finally:
        assert bare.stop() == 0
