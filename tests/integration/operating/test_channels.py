# SPDX-License-Identifier: Apache-2.0
"""An operator gives a tenant its vendors: credentials as references, routes, a vendor that is suspended and resumed (rows A93, C51, C54, C55, C06)."""
import http.server
import json
import threading
import uuid

import pytest

from tests.harness.pipeline import Pipeline
from tests.integration.sending.test_triggers import call


@pytest.fixture(scope="module")
def pipeline():
    pipeline = Pipeline().start(["ingest", "gateway"])
    yield pipeline
    pipeline.stop()


@pytest.fixture
def hotel(pipeline):
    name = f"hotel-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", name, "--name", "Hotel", "--sender", f"desk@{name}.test", "--sender-name", "Desk")
    return name


def show(pipeline, hotel, *words):
    return json.loads(pipeline.cli(*words, "--json", tenant=hotel))


def states(pipeline, hotel):
    return {entry["name"]: entry["state"] for entry in show(pipeline, hotel, "credential", "list") if entry["of"] == "tenant"}


def put_credential(pipeline, hotel, name, vendor="sendgrid"):
    return show(pipeline, hotel, "credential", "put", vendor, name, "--reference", f"file:/run/secrets/{name}", "--rate-per-s", "100")


def test_a_credential_is_staged_promoted_superseded_and_revoked(pipeline, hotel):
    staged = put_credential(pipeline, hotel, "spring")
    assert staged["state"] == "staged" and staged["id"].startswith("chc_") and staged["reference"] == "file:/run/secrets/spring"
    assert staged["rate_per_s"] == 100
    assert show(pipeline, hotel, "credential", "promote", "sendgrid", "spring")["state"] == "active"
    put_credential(pipeline, hotel, "summer")
    assert states(pipeline, hotel) == {"spring": "active", "summer": "staged"}
    assert show(pipeline, hotel, "credential", "promote", "sendgrid", "summer")["replaces"] == "spring"
    assert states(pipeline, hotel) == {"spring": "superseded", "summer": "active"}
    refused = pipeline.run_cli("credential", "revoke", "sendgrid", "summer", tenant=hotel)
    assert refused.returncode == 1 and "'spring' would be active again" in refused.stderr
    in_use = pipeline.run_cli("credential", "delete", "sendgrid", "spring", tenant=hotel)
    assert in_use.returncode == 1 and "revoke it first" in in_use.stderr
    pipeline.cli("credential", "revoke", "sendgrid", "spring", tenant=hotel)
    again = pipeline.run_cli("credential", "promote", "sendgrid", "spring", tenant=hotel)
    assert again.returncode == 1 and "stays revoked" in again.stderr
    pipeline.cli("credential", "delete", "sendgrid", "spring", tenant=hotel)
    pipeline.cli("credential", "revoke", "sendgrid", "summer", tenant=hotel)
    assert states(pipeline, hotel) == {"summer": "revoked"}


def test_a_superseded_credential_can_be_promoted_again(pipeline, hotel):
    for name in ("old", "new"):
        put_credential(pipeline, hotel, name)
        pipeline.cli("credential", "promote", "sendgrid", name, tenant=hotel)
    assert show(pipeline, hotel, "credential", "promote", "sendgrid", "old")["state"] == "active"
    assert states(pipeline, hotel) == {"old": "active", "new": "superseded"}
    changed = show(pipeline, hotel, "credential", "put", "sendgrid", "old", "--reference", "env:SENDGRID_KEY")
    assert changed["state"] == "active" and changed["reference"] == "env:SENDGRID_KEY"


def test_a_secret_is_never_taken_nor_shown(pipeline, hotel):
    secret = "SG.dGhpcyBpcyBh.c2VjcmV0"
    as_reference = pipeline.run_cli("credential", "put", "sendgrid", "main", "--reference", secret, tenant=hotel)
    assert as_reference.returncode == 2 and "a secret itself is never taken" in as_reference.stderr and secret not in as_reference.stderr
    operator = {"Stentor-Tenant": hotel}
    for field in ("secret", "api_key", "password", "token"):
        body = {"reference": "file:/run/secrets/x", field: secret}
        status, answer = call(pipeline, "PUT", "/v1/credentials/sendgrid/main", body, pipeline.operator_key, operator)
        assert status == 422 and answer["field"] == field and "file:/run/secrets/NAME" in answer["detail"] and secret not in json.dumps(answer)
    body = {"reference": "file:/run/secrets/x", "settings": {"secret": secret}}
    status, answer = call(pipeline, "PUT", "/v1/credentials/sendgrid/main", body, pipeline.operator_key, operator)
    assert status == 422 and answer["field"] == "settings.secret"
    assert states(pipeline, hotel) == {}


@pytest.mark.parametrize("words, says", [
    (["sendgrid", "main", "--reference", "vault:secret/mail#key"], "kv get -field=FIELD PATH"),
    (["sendgrid", "main", "--reference", "file:run/x"], "not absolute"),
    (["sendgrid", "main", "--reference", "file:/run/secrets/../../etc/stentor/master.key"], "'..'"),
    (["sendgrid", "main", "--reference", "env:STENTOR_MASTER_KEY"], "the programs' own"),
    (["sendgrid", "Main", "--reference", "env:KEY"], "a-z, 0-9"),
    (["pigeon", "main", "--reference", "env:KEY"], "'pigeon' is no vendor"),
    (["smtp", "main", "--reference", "env:KEY"], "STENTOR_SMTP_PASSWORD_FILE"),
    (["sendgrid", "main", "--reference", "env:KEY", "--set", "base_url=http://vendor.example"], "the URL must begin with https://"),
    (["sendgrid", "main", "--reference", "env:KEY", "--set", "region"], "--set is not NAME=VALUE"),
    (["postmark", "main", "--reference", "env:KEY", "--set", "message_strem=news"], "postmark has no such setting; it has base_url, message_stream, field settings.message_strem"),
    (["mailgun", "main", "--reference", "env:KEY", "--set", "domain=x/../y"], "letters, digits, '.' and '-' only, field settings.domain"),
    (["ses", "main", "--reference", "env:KEY", "--key-id", "AKIA", "--set", "region=evil.example/#"], "letters, digits, '.' and '-' only, field settings.region"),
])
def test_a_wrong_credential_is_refused_with_the_fix(pipeline, hotel, words, says):
    refused = pipeline.run_cli("credential", "put", *words, tenant=hotel)
    assert refused.returncode == 2 and says in refused.stderr, refused.stderr


@pytest.mark.parametrize("settings, field", [
    ({"base_url": 7}, "settings.base_url"),
    ({"base_url": ["https://vendor.example"]}, "settings.base_url"),
    ({f"a{n}": "b" for n in range(500)}, "settings"),
])
def test_a_setting_that_cannot_be_one_is_refused_and_not_dropped(pipeline, hotel, settings, field):
    body = {"reference": "env:KEY", "settings": settings}
    status, answer = call(pipeline, "PUT", "/v1/credentials/sendgrid/odd", body, pipeline.operator_key, {"Stentor-Tenant": hotel})
    assert status == 422 and answer["field"] == field, answer
    assert pipeline.run_cli("credential", "show", "sendgrid", "odd", tenant=hotel).returncode == 3


def test_routes_of_the_tenant_come_before_the_platforms(pipeline, hotel):
    pipeline.cli("route", "put", "everything", "--vendor", "smtp", "--position", "5", tenant="platform")
    try:
        warned = pipeline.run_cli("route", "put", "codes", "--vendor", "sendgrid/main=90", "--vendor", "postmark=10", "--fallback", "smtp", "--category",
                                  "security", "--unknown", "failover", "--fallback-on", "unsent,retry", "--max-vendors", "3", tenant=hotel)
        assert warned.returncode == 0 and "sendgrid has no active credential main" in warned.stderr
        route = show(pipeline, hotel, "route", "show", "codes")
        assert route["vendors"] == [{"vendor": "sendgrid", "credential": "main", "weight": 90, "step": 0},
                                    {"vendor": "postmark", "weight": 10, "step": 0}, {"vendor": "smtp", "weight": 1, "step": 1}]
        assert route["fallback_on"] == ["unsent", "retry"] and route["unknown"] == "failover" and route["category"] == "security"
        pipeline.cli("route", "put", "partner", "--vendor", "smtp", "--domain", "*.partner.example", tenant=hotel)
        assert [entry["key"] for entry in show(pipeline, hotel, "route", "list")] == ["codes", "partner", "everything"]
        assert "sendgrid/main=90 postmark=10, else smtp=1" in pipeline.cli("route", "list", tenant=hotel)
        file = pipeline.folder / "route.json"
        file.write_text(pipeline.cli("route", "show", "codes", "--json", tenant=hotel))
        again = show(pipeline, hotel, "route", "put", "codes", "--file", file, "--position", "7")
        assert again["position"] == 7 and again["vendors"] == route["vendors"]
        pipeline.cli("route", "delete", "codes", tenant=hotel)
        assert pipeline.run_cli("route", "delete", "codes", tenant=hotel).returncode == 3
        assert show(pipeline, hotel, "route", "show", "everything")["of"] == "platform"
    finally:
        pipeline.cli("route", "delete", "everything", tenant="platform")


@pytest.mark.parametrize("words, says", [
    (["r", "--vendor", "pigeon"], "'pigeon' is no vendor"),
    (["r", "--vendor", "smtp", "--fallback", "smtp"], "the same vendor"),
    (["r", "--vendor", "smtp", "--channel", "sms"], "carries no sms"),
    (["r", "--vendor", "smtp/main"], "smtp has none here"),
    (["r", "--vendor", "smtp=0"], "VENDOR[/CREDENTIAL][=WEIGHT]"),
    (["r", "--vendor", "smtp", "--unknown", "twice"], "park, resend"),
    (["r", "--vendor", "smtp", "--domain", "Example.com"], "lower case"),
    (["r", "--vendor", "smtp", "--fallback-on", "always"], "unsent, retry"),
    (["r"], "required, 1 to 8"),
    (["R", "--vendor", "smtp"], "a-z, 0-9"),
])
def test_a_wrong_route_is_refused_with_the_fix(pipeline, hotel, words, says):
    refused = pipeline.run_cli("route", "put", *words, tenant=hotel)
    assert refused.returncode == 2 and says in refused.stderr, refused.stderr


def of(pipeline, tenant, vendor):
    return [entry for entry in show(pipeline, tenant, "channel", "list") if entry["vendor"] == vendor]


def test_a_vendor_is_suspended_with_a_reason_and_resumed(pipeline):
    before = of(pipeline, "platform", "smtp")[0]
    assert before["status"] == "active" and before["usable"] and before["channel"] == "email"
    pipeline.cli("channel", "suspend", "smtp", "--reason", "relay moves at noon", "--until", "2h", tenant="platform")
    suspended = of(pipeline, "platform", "smtp")[0]
    assert suspended["status"] == "disabled" and not suspended["usable"]
    assert suspended["reason"] == "relay moves at noon" and suspended["until"] and suspended["noted_by"]
    assert "relay moves at noon" in pipeline.cli("channel", "list", tenant="platform")
    assert "relay moves at noon" in pipeline.run_cli("doctor", tenant="platform", merged=True).stdout
    assert show(pipeline, "platform", "channel", "resume", "smtp")["status"] == "active"
    again = pipeline.run_cli("channel", "resume", "smtp", tenant="platform")
    assert again.returncode == 1 and "nothing is to be resumed" in again.stderr


def test_a_tenants_own_vendor_is_listed_beside_the_platforms(pipeline, hotel):
    assert [entry["of"] for entry in of(pipeline, hotel, "sendgrid")] == ["platform"]
    put_credential(pipeline, hotel, "main")
    pipeline.cli("credential", "promote", "sendgrid", "main", tenant=hotel)
    pipeline.cli("channel", "suspend", "sendgrid", "--reason", "account is under review", tenant=hotel)
    own, shared = of(pipeline, hotel, "sendgrid")
    assert own["of"] == "tenant" and own["credential"] == "main" and own["status"] == "disabled"
    assert shared["of"] == "platform" and not shared["usable"] and shared["status"] == "active"


def test_the_list_shows_what_can_send_or_was_stopped_and_names_the_rest_in_a_line(pipeline, hotel):
    put_credential(pipeline, hotel, "listed")
    pipeline.cli("credential", "promote", "sendgrid", "listed", tenant=hotel)
    pipeline.cli("channel", "suspend", "mailgun", "--reason", "contract ended", tenant=hotel)
    lines = pipeline.cli("channel", "list", tenant=hotel).splitlines()
    vendors = [line.split()[1:3] for line in lines[1:-1]]
    assert ["smtp", "platform"] in vendors and ["sendgrid", "tenant"] in vendors and ["mailgun", "tenant"] in vendors, lines
    assert ["inapp", "platform"] in vendors and len(vendors) == 4, lines
    assert lines[-1].startswith("no credential: ") and "postmark" in lines[-1], lines
    assert not {"smtp", "sendgrid", "mailgun"} & {name.strip(" ,") for name in lines[-1].split()}, lines


@pytest.mark.parametrize("words, says", [
    (["suspend", "pigeon", "--reason", "x"], "vendor 'pigeon'"),
    (["suspend", "smtp", "--reason", " "], "required"),
    (["suspend", "smtp", "--reason", "x", "--until", "yesterday"], "--until"),
    (["test", "pigeon", "main"], "no vendor with an HTTP API"),
    (["test", "sendgrid", "absent"], "credential 'absent'"),
])
def test_a_wrong_call_about_a_channel_is_refused(pipeline, hotel, words, says):
    refused = pipeline.run_cli("channel", *words, tenant=hotel)
    assert refused.returncode != 0 and says in refused.stderr, refused.stderr


def test_reading_is_a_tenants_and_writing_the_operators(pipeline):
    for path in ("/v1/routes", "/v1/credentials", "/v1/channels"):
        assert call(pipeline, "GET", path)[0] == 200
    for method, path in (("PUT", "/v1/routes/own"), ("PUT", "/v1/credentials/sendgrid/own"), ("POST", "/v1/channels/smtp/suspend"),
                         ("POST", "/v1/credentials/sendgrid/own/promote"), ("DELETE", "/v1/routes/own")):
        status, answer = call(pipeline, method, path, {})
        assert status == 403 and "tenants:operate" in answer["detail"], (method, path, answer)


def test_another_caller_that_was_quicker_is_not_overwritten(pipeline, hotel):
    operator = {"Stentor-Tenant": hotel, "If-None-Match": "*"}
    body = {"vendors": [{"vendor": "smtp"}]}
    assert call(pipeline, "PUT", "/v1/routes/own", body, pipeline.operator_key, operator)[0] == 200
    status, answer = call(pipeline, "PUT", "/v1/routes/own", body, pipeline.operator_key, operator)
    assert status == 412 and answer["type"].endswith("precondition-failed")


class Vendor(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        good = self.headers["Authorization"] == "Bearer SG.good"
        body = b"" if good else json.dumps({"errors": [{"message": "authorization grant is invalid: " + self.headers["Authorization"]}]}).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_credential_is_tried_at_the_vendor_and_its_secret_not_shown(pipeline, hotel):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for name, secret in (("good", "SG.good"), ("stale", "SG.stale")):
            (pipeline.folder / name).write_text(secret + "\n")
            pipeline.cli("credential", "put", "sendgrid", name, "--reference", f"file:{pipeline.folder}/{name}", "--set",
                         f"base_url=http://127.0.0.1:{server.server_port}", tenant=hotel)
        elsewhere = pipeline.run_cli("channel", "test", "sendgrid", "good", tenant=hotel)
        assert elsewhere.returncode == 1 and "STENTOR_CREDENTIAL_DIRS" in elsewhere.stderr
        here = {"tenant": hotel, "STENTOR_CREDENTIAL_DIRS": str(pipeline.folder)}
        denied = pipeline.run_cli("channel", "test", "sendgrid", "good", **here)  # as the dispatcher does without the option
        assert denied.returncode == 1 and "loopback" in denied.stderr, denied.stderr
        here["STENTOR_VENDOR_ADDRESSES"] = "loopback"
        good = pipeline.run_cli("channel", "test", "sendgrid", "good", "--json", **here)
        assert good.returncode == 0 and json.loads(good.stdout)["state"] == "accepted", good.stderr
        stale = pipeline.run_cli("channel", "test", "sendgrid", "stale", "--json", **here)
        answer = json.loads(stale.stdout)
        assert stale.returncode == 1 and answer["state"] == "refused" and answer["status"] == "401"
        assert "authorization grant is invalid" in answer["answer"] and "SG.stale" not in stale.stdout
    finally:
        server.shutdown()
