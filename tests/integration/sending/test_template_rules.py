# SPDX-License-Identifier: Apache-2.0
"""What a template version says of itself: document B's notification_templates has default_priority (B25), deprecated_at and supersedes_id
(B26); document C's template_versions has variables_schema JSONB (C36)."""
import json

import pytest

from tests.harness.processes import wait_until
from tests.integration.sending.test_templates import get, locale, preview, publish

WORDS = [locale("en", subject="Rules", text="x")]


def accepted(pipeline, key, expected=202, **body):
    """Of a version that the gateway has shown; ingest reads a copy of CONFIG of its own."""
    def answered():
        status, _, answer = pipeline.post({"to": "alice@example.com", "template": key, "variables": {}, **body})
        assert status in (202, 422), answer
        return answer if status == expected and answer.get("field") != "template" else None
    return wait_until(answered, 10, f"{key}: {expected}")


def test_a_template_says_with_which_priority_it_is_sent(pipeline):
    version = publish(pipeline, "code", default_priority="critical", locales=WORDS)
    assert version["default_priority"] == "critical"
    urgent = accepted(pipeline, "code")
    own = accepted(pipeline, "code", priority="low")
    assert pipeline.status(urgent["id"], wait="sent")["priority"] == "critical"
    assert pipeline.status(own["id"], wait="sent")["priority"] == "low", "the request's own word wins"
    assert publish(pipeline, "code", version="9.0.0", expected=422, default_priority="soon", locales=WORDS)["field"] == "default_priority"


def test_a_deprecated_version_is_sent_with_a_warning_that_names_its_successor(pipeline):
    publish(pipeline, "leaving", locales=WORDS)
    assert "warnings" not in accepted(pipeline, "leaving")
    assert publish(pipeline, "leaving", version="2.0.0", locales=WORDS)["supersedes"] == "1.0.0"
    wrong = publish(pipeline, "leaving", version="3.0.0", expected=422, supersedes="7.0.0", locales=WORDS)
    assert wrong["field"] == "supersedes"
    pipeline.cli("template", "deprecate", "leaving", "1.0.0", "--at", "2026-01-01T00:00:00Z")
    assert get(pipeline, "/v1/templates/leaving?version=1.0.0")[1]["deprecated_at"].startswith("2026-01-01T00:00:00")
    assert "deprecated from 2026-01-01" in pipeline.cli("template", "history", "leaving")

    def warned():
        answer = accepted(pipeline, "leaving", template_version="1.0.0")
        assert pipeline.status(answer["id"], wait="sent")["status"] == "sent"
        return answer.get("warnings")
    text = wait_until(warned, 10, "the deprecation reaching ingest")[0]
    assert "'leaving' version 1.0.0 for email is deprecated from 2026-01-01T00:00:00" in text, text
    assert text.endswith("superseded by version 2.0.0")
    assert "warnings" not in accepted(pipeline, "leaving"), "2.0.0 is not deprecated"
    pipeline.cli("template", "deprecate", "leaving", "1.0.0", "--withdraw")
    assert "deprecated_at" not in get(pipeline, "/v1/templates/leaving?version=1.0.0")[1]


ORDER = {"name": "order", "type": "object", "required": True, "properties": {
    "status": {"type": "string", "enum": ["paid", "open"], "required": True},
    "lines": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {
        "email": {"type": "string", "format": "email", "required": True}, "price": {"type": "number", "minimum": 0}}}}}}
RULES = [ORDER, {"name": "due", "type": "string", "format": "date"}, {"name": "note", "type": "string", "maxLength": 3}]


def test_a_request_that_breaks_a_rule_is_refused_by_path(pipeline):
    publish(pipeline, "ruled", variables=RULES, locales=WORDS)
    shown = get(pipeline, "/v1/templates/ruled")[1]["variables"]
    assert shown[0]["properties"]["lines"]["items"]["properties"]["email"]["format"] == "email"
    good = {"order": {"status": "paid", "lines": [{"email": "a@example.com", "price": 2}]}, "due": "2026-12-31", "note": "abc"}
    assert accepted(pipeline, "ruled", variables=good)["id"]
    bad = {"order": {"status": "lost", "lines": [{"email": "a@example.com"}, {"email": "nobody"}]}, "due": "2026-02-30", "note": "abcd"}
    problem = accepted(pipeline, "ruled", expected=422, variables=bad)
    faults = {error["field"]: error["detail"] for error in problem["errors"]}
    assert faults == {"variables.order.status": 'must be one of "paid", "open"', "variables.due": "must be of format date",
                      "variables.note": "must have at most 3 characters"}, faults
    bad["order"]["status"] = "open"
    faults = {e["field"]: e["detail"] for e in accepted(pipeline, "ruled", expected=422, variables=bad)["errors"]}
    assert faults["variables.order.lines[1].email"] == "must be of format email" and "nobody" not in str(faults)
    refused = preview(pipeline, expected=422, template="ruled", data={"order": {"status": "paid", "lines": []}})
    assert "'order.lines' must have at least 1 items" in refused["detail"], "the renderer's own check"


@pytest.mark.parametrize("rule, field", [
    ({"type": "string", "format": "colour"}, "variables[0].format"),
    ({"type": "number", "format": "email"}, "variables[0].format"),
    ({"type": "number", "minimum": 2, "maximum": 1}, "variables[0].maximum"),
    ({"type": "string", "maxLength": "3"}, "variables[0].maxLength"),
    ({"type": "string", "enum": []}, "variables[0].enum"),
    ({"type": "string", "properties": {}}, "variables[0].properties"),
    ({"type": "object", "properties": {"a": {"kind": "x"}}}, "variables[0].properties.a.kind"),
    ({"type": "array", "items": {"type": "text"}}, "variables[0].items.type"),
])
def test_a_rule_that_is_none_is_refused_by_field(pipeline, rule, field):
    problem = publish(pipeline, "misruled", expected=422, variables=[{"name": "x", **rule}], locales=WORDS)
    assert problem["field"] == field, problem


def test_rules_are_at_most_eight_deep(pipeline):
    rule = {"type": "string"}
    for _ in range(7):
        rule = {"type": "array", "items": rule}
    assert publish(pipeline, "deep", variables=[{"name": "x", **rule}], locales=WORDS)["version"] == "1.0.0"
    problem = publish(pipeline, "deep", version="2.0.0", expected=422, variables=[{"name": "x", "type": "array", "items": rule}], locales=WORDS)
    assert "at most 8 deep" in problem["detail"], problem
    assert json.loads(pipeline.cli("template", "show", "deep", "--json"))["variables"][0]["items"]
