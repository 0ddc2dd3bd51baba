# SPDX-License-Identifier: Apache-2.0
"""A template is (tenant, key, channel), each with its versions (audit, finding 2 and C32: notification.templates is UNIQUE (tenant_id, key,
channel)): "publishing `spring` 2.0.0 for sms made each e-mail request answer 422"."""
import json

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages
from tests.integration.sending.test_templates import get, locale, mail_of, preview, publish

MAIL = [locale("en", subject="Spring for {{name}}", text="A mail")]
SMS = [locale("en", text="An SMS")]


def history(pipeline, key, *more):
    return [(v["version"], v["status"], v["channel"])
            for v in json.loads(pipeline.cli("template", "history", key, *more, "--json"))]


def test_a_version_for_sms_leaves_the_one_for_email_active(pipeline):
    publish(pipeline, "spring", category="marketing", locales=MAIL)
    sms = publish(pipeline, "spring", version="2.0.0", channel="sms", locales=SMS)
    assert sms["category"] == "marketing", "as its other channels"
    assert get(pipeline, "/v1/templates/spring?channel=sms")[1]["version"] == "2.0.0"
    assert mail_of(pipeline, template="spring", category="transactional")["Subject"] == "Spring for Alice"
    lines = [t for t in get(pipeline, "/v1/templates")[1]["data"] if t["key"] == "spring"]
    assert [(t["channel"], t["version"]) for t in lines] == [("email", "1.0.0"), ("sms", "2.0.0")]
    assert publish(pipeline, "spring", version=None, locales=MAIL)["version"] == "1.0.1", "each channel counts its own"
    other = publish(pipeline, "spring", version="1.0.0", channel="push", expected=422, category="billing",
                    locales=[locale("en", title="t", text="x")])
    assert other["field"] == "category" and "from 'marketing' to 'billing'" in other["detail"]


def test_the_channel_is_required_only_when_the_key_has_several(pipeline):
    publish(pipeline, "both", locales=MAIL)
    assert get(pipeline, "/v1/templates/both")[0] == 200
    assert history(pipeline, "both") == [("1.0.0", "active", "email")]
    publish(pipeline, "both", channel="sms", status="draft", locales=SMS)  # of the same number
    status, problem = get(pipeline, "/v1/templates/both")
    assert (status, problem["field"]) == (400, "channel") and "email, sms" in problem["detail"], problem
    unsaid = pipeline.run_cli("template", "archive", "both", "1.0.0")
    assert unsaid.returncode == 2 and "channel" in unsaid.stderr, unsaid.stderr
    pipeline.cli("template", "activate", "both", "1.0.0", "--channel", "sms")
    assert history(pipeline, "both", "--channel", "sms") == [("1.0.0", "active", "sms")]
    pipeline.cli("template", "archive", "both", "1.0.0", "--channel", "email")
    assert history(pipeline, "both", "--channel", "email") == [("1.0.0", "archived", "email")]
    assert history(pipeline, "both", "--channel", "sms") == [("1.0.0", "active", "sms")]
    assert preview(pipeline, template="both", channel="sms")["parts"]["text"] == "An SMS"
    assert preview(pipeline, template="both", expected=400)["field"] == "channel"
    assert "An SMS" in pipeline.cli("template", "preview", "both", "--channel", "sms")
    assert [t["channel"] for t in json.loads(pipeline.cli("template", "list", "--channel", "sms", "--json")) if t["key"] == "both"] == ["sms"]
    assert get(pipeline, "/v1/templates/both?channel=pigeon")[1]["field"] == "channel"
    assert get(pipeline, "/v1/templates/both?channel=voice")[0] == 404
    assert pipeline.post(b"", path="/v1/templates/both/1.0.0/activate?channel=voice")[0] == 404


def test_a_request_for_a_channel_that_the_template_lacks_says_which_it_has(pipeline):
    publish(pipeline, "text-only", channel="sms", locales=SMS)

    def refused():
        status, _, problem = pipeline.post({"to": "a@example.com", "template": "text-only", "variables": {}})
        assert (status, problem["field"]) == (422, "template"), problem
        return "is not for channel 'email'; it is for sms" in problem["detail"]
    wait_until(refused, 10, "the version reaching ingest")


@pytest.fixture
def stored(pipeline, nats):
    """Puts a version where releases before 2026-11-23 stored it: cfg.template.<tenant>.<key>.<version>."""
    protocol = messages(pipeline)

    def put(key, version, channel="EMAIL", status="ACTIVE", category="BILLING"):
        entry = protocol.TemplateVersion(
            tenant=TENANT, key=key, version=version, status=getattr(protocol, f"TEMPLATE_STATUS_{status}"),
            channel=getattr(protocol, f"CHANNEL_{channel}"), category=getattr(protocol, f"CATEGORY_{category}"))
        entry.locales.add(locale="en", subject=f"Old {key} {version}" if channel == "EMAIL" else "", text="x")
        nats.publish(f"cfg.template.{TENANT}.{key}.{version.replace('.', '_')}", entry.SerializeToString())
    return put


def test_what_is_stored_without_a_channel_is_read_as_before(pipeline, stored):
    stored("vintage", "1.0.0")
    stored("vintage", "2.0.0", channel="SMS")  # which took the mails away
    stored("vintage", "1.1.0", status="DRAFT")
    wait_until(lambda: get(pipeline, "/v1/templates/vintage?version=1.1.0&channel=email")[0] == 200, 10, "the entries")
    assert mail_of(pipeline, template="vintage")["Subject"] == "Old vintage 1.0.0"
    assert history(pipeline, "vintage", "--channel", "sms") == [("2.0.0", "active", "sms")]
    pipeline.cli("template", "activate", "vintage", "1.1.0", "--channel", "email")
    wait_until(lambda: mail_of(pipeline, template="vintage")["Subject"] == "Old vintage 1.1.0", 20, "the draft that is active now")
    pipeline.cli("template", "archive", "vintage", "1.1.0", "--channel", "email")
    assert publish(pipeline, "vintage", version="1.0.0", expected=409, locales=MAIL)["type"].endswith("version-exists")
    new = publish(pipeline, "vintage", version=None, locales=MAIL)
    assert (new["version"], new["category"]) == ("1.1.1", "billing")
    wait_until(lambda: mail_of(pipeline, template="vintage")["Subject"] == "Spring for Alice", 20, "the new version")
    assert history(pipeline, "vintage", "--channel", "email") == [
        ("1.0.0", "active", "email"), ("1.1.0", "archived", "email"), ("1.1.1", "active", "email")]
