# SPDX-License-Identifier: Apache-2.0
"""A channel without a vendor is refused at accept time and warned of before (audit, finding 5: "sms, whatsapp, voice, push, inapp are accepted
and fail after the answer. Nothing at accept time or in `trigger put` says that the channel has no vendor"). The session's pipeline delivers
e-mail and sms, by its word."""
import json
import uuid

from tests.integration.sending.test_templates import locale
from tests.integration.sending.test_triggers import call, new_type

WARNING = "no vendor delivers '{}' (STENTOR_INGEST_CHANNELS: email, sms, inapp)"


def warnings(answer, channel):
    return [text for text in answer.get("warnings", []) if WARNING.format(channel) in text and "(HINT: stentor credential put" in text]


def test_trigger_put_warns_of_it_and_the_trigger_is_stored(pipeline):
    for channel, said in (("whatsapp", 1), ("push", 1), ("webhook", 1), ("sms", 0), ("email", 0)):
        key, event = f"t-{uuid.uuid4().hex}", new_type("checked.out")
        body = {"event_type": event, "template": "welcome", "resolver": "address:guest.phone", "channel": channel}
        status, answer = call(pipeline, "PUT", f"/v1/triggers/{key}", body)
        assert status == 200 and len(warnings(answer, channel)) == said, answer
    done = pipeline.run_cli("trigger", "put", f"t-{uuid.uuid4().hex}", "--event", new_type("checked.out"), "--template", "welcome", "--resolver",
                            "address:guest.phone", "--channel", "whatsapp", "--json")
    assert done.returncode == 0 and "fails as no_vendor" in done.stderr and "warnings" not in json.loads(done.stdout), done.stderr


def test_template_put_warns_of_it_until_the_version_is_archived(pipeline, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("Hello {{name}}")
    key = f"p-{uuid.uuid4().hex[:12]}"
    done = pipeline.run_cli("template", "put", key, "--channel", "push", "--title", "Hello", "--text", words, "--json")
    assert done.returncode == 0 and WARNING.format("push") in done.stderr, done.stderr
    draft = {"key": f"d-{key}", "version": "1.0.0", "channel": "voice", "status": "draft", "locales": [locale("en", text="Hello")]}
    status, answer = call(pipeline, "POST", "/v1/templates", draft)
    assert status == 201 and len(warnings(answer, "voice")) == 1, answer
    status, answer = call(pipeline, "POST", f"/v1/templates/{key}/{json.loads(done.stdout)['version']}/archive")
    assert status == 200 and "warnings" not in answer, answer
    done = pipeline.run_cli("template", "put", f"s-{key}", "--channel", "sms", "--text", words, "--json")
    assert done.returncode == 0 and "no vendor" not in done.stderr, done.stderr


def test_a_batch_and_a_request_for_it_are_refused(pipeline):
    for channel in ("voice", "push", "webhook"):
        done = pipeline.run_cli("batch", "create", "--name", "spring", "--template", "welcome", "--channel", channel)
        said = f"'{channel}' is not delivered by this installation; it delivers email, sms, inapp (HINT: stentor credential put"
        assert done.returncode == 2 and said in done.stderr, done.stderr
    status, _, problem = pipeline.post({"to": "+4915112345678", "channel": "voice", "template": "welcome", "variables": {"name": "Alice"}})
    assert (status, problem["field"]) == (422, "channel") and "(HINT: stentor credential put VENDOR NAME)" in problem["detail"], problem
