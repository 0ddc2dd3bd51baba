# SPDX-License-Identifier: Apache-2.0
"""What differs between two versions of a template, over the API."""
import uuid

import pytest

from tests.integration.operating_api.test_dead_letters_api import ask, slug


@pytest.fixture(scope="module")
def bill(pipeline):
    key = f"bill-{uuid.uuid4().hex[:8]}"
    for version, html, subject in (("1.0.0", "<p>Hi</p>\n<p>{{total}}</p>\n", "Bill"), ("1.1.0", "<p>Hello</p>\n<p>{{total}}</p>\n", "Your bill")):
        document = {"key": key, "version": version, "channel": "email", "category": "transactional", "status": "active",
                    "locales": [{"locale": "en", "subject": subject, "html": html, "text": "x"}]}
        status, answer = ask(pipeline, "POST", "/v1/templates", document)
        assert status in (200, 201), answer
    return key


def test_a_diff_names_each_member_and_shows_lines(pipeline, bill):
    status, diff = ask(pipeline, "GET", f"/v1/templates/{bill}/diff?from=1.0.0")
    assert status == 200 and (diff["from"], diff["to"], diff["channel"], diff["complete"]) == ("1.0.0", "1.1.0", "email", True)
    changes = {change["at"]: change for change in diff["changes"]}
    assert set(changes) == {"locales[en].subject", "locales[en].html"}
    assert changes["locales[en].subject"]["to"] == "Your bill"
    assert [line["op"] for line in changes["locales[en].html"]["lines"]] == ["-", "+", " ", " "]
    back = ask(pipeline, "GET", f"/v1/templates/{bill}/diff?from=1.1.0&to=1.0.0")[1]
    assert {change["at"] for change in back["changes"]} == set(changes)
    assert ask(pipeline, "GET", f"/v1/templates/{bill}/diff?from=1.1.0&to=1.1.0")[1]["changes"] == []


def test_what_is_missing_is_named(pipeline, bill):
    refused = ask(pipeline, "GET", f"/v1/templates/{bill}/diff")
    assert (refused[0], refused[1]["field"]) == (422, "from")
    assert slug(ask(pipeline, "GET", f"/v1/templates/{bill}/diff?from=9.9.9")) == (404, "not-found")
    assert slug(ask(pipeline, "GET", f"/v1/templates/no-{bill}/diff?from=1.0.0")) == (404, "not-found")
    other = f"dif-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", other)
    assert slug(ask(pipeline, "GET", f"/v1/templates/{bill}/diff?from=1.0.0", tenant=other)) == (404, "not-found")
