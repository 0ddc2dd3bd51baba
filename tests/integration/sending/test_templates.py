# SPDX-License-Identifier: Apache-2.0
"""Templates through the real pipeline: locales, mails, previews, and a version's life."""
import http.client
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until


def locale(tag, **parts):
    return {"locale": tag, **parts}


def publish(pipeline, key, version="1.0.0", expected=201, **document):
    status, headers, answer = pipeline.post({"key": key, "version": version, **document}, path="/v1/templates")
    assert status == expected, answer
    if status == 201:
        place = f"/v1/templates/{key}?version={answer['version']}&channel={answer['channel']}"
        wait_until(lambda: get(pipeline, place)[0] == 200, 10, "the version reaching ingest")
    return answer


def get(pipeline, path):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {pipeline.key}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def preview(pipeline, expected=200, **body):
    status, _, answer = pipeline.post(body, path="/v1/templates/preview")
    assert status == expected, answer
    return answer


def mail_of(pipeline, **request):
    def accepted():  # the gateway has shown the version; ingest has a copy of CONFIG of its own
        status, _, body = pipeline.post({"to": "alice@example.com", "variables": {"name": "Alice"}, **request})
        assert status == 202 or (status == 422 and body["field"] == "template"), body
        return body if status == 202 else None

    notification = wait_until(accepted, 10, "the version reaching ingest")["id"]
    assert pipeline.status(notification, wait="sent")["status"] == "sent"
    return pipeline.mailbox.for_notification(notification)[0]


def test_a_locale_falls_back_and_a_right_to_left_one_says_so(pipeline):
    publish(pipeline, "greeting", fallback_locales=["fa-AF", "en-US"], locales=[
        locale("en-US", subject="Hello {{name}}", html="<p>Hello {{name}}</p>"),
        locale("fa-AF", subject="سلام {{name}}", preheader="Now {{n}}",
               html="<html><body><p>سلام {{name}} {{currency n 'AFN'}}</p></body></html>")])
    mail = mail_of(pipeline, template="greeting", locale="ps-AF", variables={"name": "<Zar>", "n": 5})
    html = mail.get_body(("html",)).get_content()
    assert mail["Subject"] == "سلام <Zar>"
    assert '<body dir="rtl"><div style="display:none' in html and "&lt;Zar&gt;" in html and "۵" in html
    text = mail.get_body(("plain",)).get_content()
    assert "سلام <Zar>" in text and "Now" not in text
    other = mail_of(pipeline, template="greeting", locale="en-GB", variables={"name": "Ann"})
    assert other["Subject"] == "Hello Ann" and "rtl" not in other.get_body(("html",)).get_content()


def test_a_mail_without_text_gets_one_from_its_html(pipeline):
    publish(pipeline, "receipt", locales=[locale("en", subject="Receipt", html=(
        "<style>p{}</style><h1>Thanks</h1><ul>{{#each items}}<li>{{this}}</li>{{/each}}</ul>"
        "<a href=\"https://shop.test/?o={{url id}}\">Your order</a>"))])
    mail = mail_of(pipeline, template="receipt", variables={"items": ["Pen & ink", "Cup"], "id": "a b"})
    text = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")
    assert text.strip() == "Thanks\n\n- Pen & ink\n- Cup\n\nYour order (https://shop.test/?o=a%20b)"


def test_what_a_variable_brings_along_begins_no_header(pipeline):
    publish(pipeline, "inject", locales=[locale("en", subject="Hi {{{name}}}", text="Hi")])
    mail = mail_of(pipeline, template="inject", variables={"name": "x\r\nBcc: evil@example.com\r\n\r\nbody"})
    assert mail["Bcc"] is None
    assert mail["Subject"].startswith("Hi x")


def test_the_tenants_own_template_wins_over_the_platforms(pipeline, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("shared")
    pipeline.cli("template", "put", "shared", "--subject", "Platform", "--text", words, tenant="platform")
    wait_until(lambda: preview(pipeline, expected=200, template="shared") if get(pipeline, "/v1/templates/shared")[0] == 200 else None, 10)
    assert mail_of(pipeline, template="shared")["Subject"] == "Platform"
    publish(pipeline, "shared", version="3.0.0", locales=[locale("en", subject="Own", text="own")])
    wait_until(lambda: preview(pipeline, template="shared")["parts"]["subject"] == "Own", 10)
    assert mail_of(pipeline, template="shared")["Subject"] == "Own"
    keys = [item["key"] for item in get(pipeline, "/v1/templates?platform=true")[1]["data"]]
    assert "shared" in keys


def test_who_archives_the_own_template_is_back_at_the_platforms_of_the_same_number(pipeline, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("shared")
    pipeline.cli("template", "put", "own-again", "--subject", "Platform", "--text", words, "--version", "1.0.0", tenant="platform")
    publish(pipeline, "own-again", version="1.0.0", locales=[locale("en", subject="Own", text="own")])
    wait_until(lambda: preview(pipeline, template="own-again")["parts"]["subject"] == "Own", 10)
    assert mail_of(pipeline, template="own-again")["Subject"] == "Own"
    assert pipeline.post(b"", path="/v1/templates/own-again/1.0.0/archive")[0] == 200
    wait_until(lambda: mail_of(pipeline, template="own-again")["Subject"] == "Platform", 20)


def test_a_draft_is_not_usable_until_it_is_active_and_not_after_it_is_archived(pipeline, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("one")
    put = ["template", "put", "life", "--subject", "S", "--text", words, "--version", "1.0.0", "--draft",
           "--source", "ai_drafted", "--provenance", "asked for it", "--json"]
    assert json.loads(pipeline.cli(*put))["status"] == "draft"
    words.write_text("two")
    pipeline.cli(*put)  # a draft may be written again
    wait_until(lambda: get(pipeline, "/v1/templates/life")[0] == 200, 10)
    body = {"to": "a@example.com", "template": "life", "template_version": "1.0.0", "variables": {}}
    status, _, problem = pipeline.post(body)
    assert status == 422 and problem["field"] == "template_version"

    refused = pipeline.run_cli("template", "activate", "life", "1.0.0")
    assert refused.returncode == 2 and "approved_by" in refused.stderr
    pipeline.cli("template", "activate", "life", "1.0.0", "--approved-by", "Dana")
    wait_until(lambda: pipeline.post(body)[0] == 202, 10, "the active version reaching ingest")
    again = pipeline.run_cli(*put)
    assert again.returncode == 1 and "is published and cannot change" in again.stderr
    assert publish(pipeline, "life", expected=409, locales=[locale("en", subject="x", text="x")])["type"].endswith("version-exists")

    pipeline.cli("template", "archive", "life", "1.0.0")
    wait_until(lambda: pipeline.post(body)[0] == 422, 10, "the archived version reaching ingest")
    back = pipeline.run_cli("template", "activate", "life", "1.0.0")
    assert back.returncode == 1 and "is archived and cannot become active" in back.stderr
    history = json.loads(pipeline.cli("template", "history", "life", "--json"))
    assert [(v["version"], v["status"], v["approved_by"]) for v in history] == [("1.0.0", "archived", "Dana")]
    assert pipeline.run_cli("template", "activate", "life", "9.9.9").returncode == 3


def test_the_command_line_and_the_api_have_one_idea_of_a_version(pipeline, tmp_path):
    """A pre-release was 0.0.0 to the command line: it showed, tried and counted on from another version than the API froze."""
    publish(pipeline, "one-idea", version="1.4.0", locales=[locale("en", subject="Old", text="x")])
    publish(pipeline, "one-idea", version="2.0.0-rc.1", sample={"a": "b"}, locales=[locale("en", subject="New", text="x")])
    assert json.loads(pipeline.cli("template", "show", "one-idea", "--json"))["version"] == "2.0.0-rc.1"
    assert "New" in pipeline.cli("template", "preview", "one-idea") and "2.0.0-rc.1" in pipeline.cli("template", "list")
    sent = json.loads(pipeline.cli("template", "test-send", "one-idea", "--to", "me@example.com", "--json"))
    assert pipeline.status(sent["id"], wait="sent")["template_version"] == "2.0.0-rc.1"
    words = tmp_path / "words.txt"
    words.write_text("x")
    put = ["template", "put", "one-idea", "--subject", "S", "--text", words, "--by", "Dana", "--json"]
    assert json.loads(pipeline.cli(*put))["version"] == "2.0.0"
    assert json.loads(pipeline.cli(*put))["version"] == "2.0.1"
    history = json.loads(pipeline.cli("template", "history", "one-idea", "--json"))
    assert [v["version"] for v in history] == ["1.4.0", "2.0.0-rc.1", "2.0.0", "2.0.1"]
    assert history[-1]["published_by"].startswith("Dana (key ") and history[0]["locales"] == 1


def test_the_api_moves_a_version_from_draft_to_active_to_archived(pipeline):
    def move(to, expected, path="moved/1.0.0", body=b""):
        status, _, answer = pipeline.post(body, path=f"/v1/templates/{path}/{to}")
        assert status == expected, answer
        return answer
    publish(pipeline, "moved", status="draft", source="ai_drafted", locales=[locale("en", subject="Moved", text="Moved {{name}}")])
    body = {"to": "a@example.com", "template": "moved", "template_version": "1.0.0", "variables": {"name": "A"}}
    assert pipeline.post(body)[0] == 422
    assert move("activate", 422)["field"] == "approved_by"
    assert move("activate", 422, body={"approver": "Dana"})["field"] == "approver"
    assert move("activate", 422, body={"approved_by": 5})["field"] == "approved_by"
    assert move("activate", 400, body=b"[]")["type"].endswith("invalid-body")
    done = move("activate", 200, body={"approved_by": "Dana"})
    assert (done["key"], done["version"], done["status"], done["approved_by"]) == ("moved", "1.0.0", "active", "Dana")
    wait_until(lambda: pipeline.post(body)[0] == 202, 10, "the active version reaching ingest")
    assert move("activate", 409)["type"].endswith("version-status")
    assert move("archive", 200)["status"] == "archived"
    wait_until(lambda: pipeline.post(body)[0] == 422, 10, "the archived version reaching ingest")
    assert "archived and cannot become active" in move("activate", 409)["detail"]
    for path in ("moved/9.9.9", "nowhere/1.0.0", "moved/1.0", "*/1.0.0", "mov.ed/1.0.0"):
        assert move("archive", 404, path)["status"] == 404
    history = json.loads(pipeline.cli("template", "history", "moved", "--json"))
    assert [(v["version"], v["status"], v["approved_by"]) for v in history] == [("1.0.0", "archived", "Dana")]


def test_another_tenants_version_is_not_moved(pipeline, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("shared")
    pipeline.cli("template", "put", "theirs", "--subject", "Platform", "--text", words, "--version", "1.0.0", tenant="platform")
    wait_until(lambda: get(pipeline, "/v1/templates/theirs")[0] == 200, 10)
    assert pipeline.post(b"", path="/v1/templates/theirs/1.0.0/archive")[0] == 404
    assert mail_of(pipeline, template="theirs")["Subject"] == "Platform"


def test_of_two_who_move_a_version_at_once_one_is_refused(pipeline):
    publish(pipeline, "raced", status="draft", locales=[locale("en", subject="R", text="R")])
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: pipeline.post(b"", path="/v1/templates/raced/1.0.0/activate")[0], range(8)))
    assert sorted(answers) == [200] + [409] * 7


def test_a_preview_is_what_would_be_sent(pipeline):
    publish(pipeline, "pre", sample={"name": "Sam"}, variables=[{"name": "name", "type": "string", "required": True}],
            locales=[locale("en-US", subject="Hi {{name}}", html="<p>{{name}} of {{tenant.name}}{{nick}}</p>")])
    answer = preview(pipeline, template="pre", locale="de")
    assert answer["parts"] == {"subject": "Hi Sam", "html": "<p>Sam of Acme</p>", "text": "Sam of Acme\n"}
    assert answer["locale"] == "en-US" and answer["direction"] == "ltr"
    assert [w for w in answer["warnings"] if "nick" in w] and [w for w in answer["warnings"] if w.startswith("locale:")]
    missing = preview(pipeline, expected=422, template="pre", data={"name": None})
    assert missing["field"] == "data" and "'name' is missing" in missing["detail"]
    assert preview(pipeline, expected=404, template="nowhere")["status"] == 404
    printed = pipeline.cli("template", "preview", "pre")
    assert "Hi Sam" in printed and "warning: text: made from the html" in printed


def test_a_preview_counts_the_segments_of_an_sms(pipeline):
    gsm = preview(pipeline, source={"locales": [locale("en", text="{{t}}")]}, channel="sms", data={"t": "x" * 161})
    assert gsm["sms"] == {"segments": 2, "units": 161, "alphabet": "GSM-7"}
    wide = preview(pipeline, source={"channel": "sms", "locales": [locale("fa", text="{{t}}")]}, data={"t": "س" * 71})
    assert wide["sms"] == {"segments": 2, "units": 71, "alphabet": "UCS-2"} and wide["direction"] == "rtl"
    push = preview(pipeline, channel="push", data={"v": "a\"b"},
                   source={"locales": [locale("en", title="T", text="B", data='{"k": "{{v}}"}')]})
    assert push["parts"] == {"title": "T", "text": "B", "data": '{"k": "a\\"b"}'}


@pytest.mark.parametrize("document, field, words", [
    ({"locales": [locale("en", subject="s", html="<p>\n{{#if a}}")]}, "locales", "line 2, column 1: '{{#if' is never closed"),
    ({"locales": [locale("en", subject="s", html="{{shout a}}")]}, "locales", "unknown helper 'shout'"),
    ({"locales": [locale("en", subject="s", html="{{> none}}")]}, "locales", "unknown partial 'none'"),
    ({"locales": [locale("en", subject=5)]}, "locales[0].subject", "expected a text"),
    ({"locales": []}, "locales", "at least one"),
    ({"locales": [locale("en", text="x")], "colour": 1}, "colour", "unknown"),
    ({"locales": [locale("en", text="x")], "variables": [{"name": "a", "type": "date"}]}, "variables[0].type", "expected one of"),
    ({"locales": [locale("en", text="x")], "version": "one"}, "version", "semantic version"),
    ({"locales": [locale("en", text="x")], "source": "ai_drafted"}, "approved_by", "approved"),
])
def test_a_bad_version_is_refused_by_field(pipeline, document, field, words):
    problem = publish(pipeline, "bad", expected=422, **document)
    assert problem["field"] == field and words in problem["detail"], problem


def faults_of(problem):
    """Of a refused body: what is wrong, by field. The first stands in front too."""
    assert (problem["field"], problem["detail"]) == (problem["errors"][0]["field"], problem["errors"][0]["detail"])
    return {error["field"]: error["detail"] for error in problem["errors"]}


def test_all_faults_of_a_version_are_named_at_once(pipeline):
    document = {"key": "Wrong Key", "version": "one", "status": "gone", "channel": "pigeon", "category": "none", "colour": "red",
                "locales": [{"locale": "", "subject": 5, "direction": "up", "words": "x"}, 7, {"locale": "en", "parameters": [1]}],
                "variables": [{"type": "date", "required": "yes"}], "partials": {"footer": 3}, "fallback_locales": "en",
                "source": "a-stranger", "sample": []}
    status, _, problem = pipeline.post(document, path="/v1/templates")
    assert status == 422 and set(faults_of(problem)) == {
        "key", "version", "status", "channel", "category", "colour", "locales[0].locale", "locales[0].subject", "locales[0].direction",
        "locales[0].words", "locales[1]", "locales[2].parameters", "variables[0].name", "variables[0].type", "variables[0].required",
        "partials.footer", "fallback_locales", "source", "sample"}, problem
    draft = {"key": "many", "locales": [{"locale": "en", "subject": "{{#if}}", "text": "x"}], "source": "ai_drafted", "status": 5}
    assert set(faults_of(pipeline.post(draft, path="/v1/templates")[2])) == {"status", "locales"}, "what can be read is compiled"
    one = pipeline.post({**draft, "status": "active"}, path="/v1/templates")[2]
    assert set(faults_of(one)) == {"approved_by", "locales"}


def test_all_faults_of_a_preview_are_named_at_once(pipeline):
    wrong = preview(pipeline, expected=422, template=5, locale=7, data=[], size=1)
    assert set(faults_of(wrong)) == {"template", "locale", "data", "size"}
    wrong = preview(pipeline, expected=422, source={"channel": "pigeon", "locales": [{"subject": 1}]}, version=1)
    assert set(faults_of(wrong)) == {"version", "channel", "locales[0].subject", "locales[0].locale"}


def test_a_partial_that_calls_itself_and_endless_output_fail_with_their_place(pipeline):
    loops = preview(pipeline, expected=422, source={"partials": {"p": "{{> p}}"}, "locales": [locale("en", text="{{> p}}")]})
    assert "partial 'p': line 1, column 1" in loops["detail"] and "more than 32 deep" in loops["detail"]
    large = preview(pipeline, expected=422, data={"l": list(range(2000)), "t": "x" * 1000},
                    source={"locales": [locale("en", html="{{#each l}}{{@root.t}}{{/each}}")]})
    assert "html: line 1, column 12: the output is larger than 524288 bytes" in large["detail"]


def test_templates_are_listed_in_pages(pipeline):
    for key in ("page-a", "page-b", "page-c"):
        publish(pipeline, key, locales=[locale("en", subject="s", text="x")])
    whole = [t["key"] for t in get(pipeline, "/v1/templates?limit=1000")[1]["data"]]
    assert whole == sorted(whole) and {"page-a", "page-b", "page-c"} <= set(whole)
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        status, page = get(pipeline, f"/v1/templates?limit=2{cursor and '&cursor=' + cursor}")
        assert status == 200 and 1 <= len(page["data"]) <= 2, page
        seen, cursor, pages = seen + [t["key"] for t in page["data"]], page["next"], pages + 1
    assert seen == whole and pages == (len(whole) + 1) // 2
    cursor = get(pipeline, "/v1/templates?limit=2")[1]["next"]
    for wrong in (f"?platform=true&cursor={cursor}", f"?cursor={cursor[:-1]}", f"?cursor=A{cursor}", "?cursor=page-"):
        status, problem = get(pipeline, "/v1/templates" + wrong)
        assert (status, problem["field"]) == (400, "cursor"), problem
    assert get(pipeline, "/v1/templates?limit=0")[0] == 422
    status, problem = get(pipeline, "/v1/templates?after=page-")
    assert (status, problem["field"]) == (400, "after") and "limit, cursor, platform" in problem["detail"], problem
    shown = get(pipeline, "/v1/templates/page-a")[1]
    assert shown["locales"][0]["text"] == "x" and shown["versions"][0]["status"] == "active" and shown["published_by"]
    assert "page-a" in pipeline.cli("template", "list")
    assert json.loads(pipeline.cli("template", "show", "page-a", "--json"))["tenant"] == TENANT


def test_a_test_send_is_an_ordinary_notification_that_says_what_it_is(pipeline):
    publish(pipeline, "tried", version="2.1.0", sample={"name": "Sam"}, category="marketing",
            locales=[locale("en", subject="For {{name}}", text="x")])
    sent = json.loads(pipeline.cli("template", "test-send", "tried", "--to", "me@example.com", "--json"))
    row = pipeline.status(sent["id"], wait="sent")
    assert row["category"] == "transactional" and row["correlation_id"] == "test-send/tried/2.1.0"
    assert pipeline.mailbox.for_notification(sent["id"])[0]["Subject"] == "For Sam"
