# SPDX-License-Identifier: Apache-2.0
"""A template's category never changes silently (audit, finding 2: "The new version's category silently became `transactional` as well,
which ignores opt-outs"). Document C: notification.templates has one category for a key."""
import json

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_templates import get, locale, publish

WORDS = [locale("en", subject="Spring", text="x")]


def category_of(pipeline, key):
    return get(pipeline, f"/v1/templates/{key}")[1]["category"]


def put(pipeline, key, *more, tenant=None):
    words = pipeline.folder / "words.txt"
    words.write_text("x")
    return pipeline.run_cli("template", "put", key, "--subject", "Spring", "--text", words, "--json", *more,
                            **({"tenant": tenant} if tenant else {}))


def test_a_version_that_names_no_category_keeps_the_templates(pipeline):
    assert json.loads(put(pipeline, "kept", "--category", "marketing").stdout)["category"] == "marketing"
    again = put(pipeline, "kept")
    assert again.returncode == 0 and json.loads(again.stdout)["category"] == "marketing" and "warning" not in again.stderr
    assert publish(pipeline, "kept", version="2.0.0", locales=WORDS)["category"] == "marketing"
    assert publish(pipeline, "fresh", locales=WORDS)["category"] == "transactional"


def test_another_category_is_refused_with_both_names_until_it_is_allowed(pipeline):
    put(pipeline, "sale", "--category", "marketing")
    refused = put(pipeline, "sale", "--category", "transactional")
    assert refused.returncode == 2 and "from 'marketing' to 'transactional'" in refused.stderr, refused.stderr
    assert "--allow-category-change" in refused.stderr and category_of(pipeline, "sale") == "marketing"
    problem = publish(pipeline, "sale", version="2.0.0", expected=422, category="billing", locales=WORDS)
    assert problem["field"] == "category" and "'marketing'" in problem["detail"] and "'billing'" in problem["detail"]
    wrong = publish(pipeline, "sale", version="2.0.0", expected=422, allow_category_change="yes", locales=WORDS)
    assert wrong["field"] == "allow_category_change"
    allowed = put(pipeline, "sale", "--category", "transactional", "--allow-category-change")
    assert allowed.returncode == 0 and "warning: the category of template 'sale' changes" in allowed.stderr, allowed.stderr
    assert category_of(pipeline, "sale") == "transactional"


def test_a_draft_changes_nothing_until_it_is_active(pipeline):
    def activate(body=b""):
        return pipeline.post(body, path="/v1/templates/drafted/2.0.0/activate")

    publish(pipeline, "drafted", category="marketing", locales=WORDS)
    draft = publish(pipeline, "drafted", version="2.0.0", status="draft", category="system", locales=WORDS)
    assert draft["warnings"] == ["active, the category of template 'drafted' changes from 'marketing' to 'system'"]
    status, _, problem = activate()
    assert (status, problem["field"]) == (422, "category"), problem
    assert pipeline.run_cli("template", "activate", "drafted", "2.0.0").returncode == 2
    status, _, done = activate({"allow_category_change": True})
    assert status == 200 and done["warnings"] and category_of(pipeline, "drafted") == "system"


def test_an_archived_version_brings_no_other_category_into_force(pipeline):
    publish(pipeline, "back", category="marketing", locales=WORDS)
    publish(pipeline, "back", version="2.0.0", category="social", allow_category_change=True, locales=WORDS)
    refused = pipeline.run_cli("template", "archive", "back", "2.0.0")
    assert refused.returncode == 2 and "from 'social' to 'marketing'" in refused.stderr
    pipeline.cli("template", "archive", "back", "2.0.0", "--allow-category-change")
    assert category_of(pipeline, "back") == "marketing"
    pipeline.cli("template", "archive", "back", "1.0.0")  # none is in force then
    problem = publish(pipeline, "back", version="3.0.0", expected=422, category="billing", locales=WORDS)
    assert problem["field"] == "category", "what requests got last still counts"


def test_a_tenants_first_version_is_compared_with_the_platforms(pipeline):
    assert put(pipeline, "reset", "--category", "security", tenant="platform").returncode == 0
    wait_until(lambda: get(pipeline, "/v1/templates/reset")[0] == 200, 10, "the platform's version")
    refused = put(pipeline, "reset", "--category", "marketing", tenant=TENANT)
    assert refused.returncode == 2 and "from 'security' to 'marketing'" in refused.stderr
    assert json.loads(put(pipeline, "reset", tenant=TENANT).stdout)["category"] == "security"
