# SPDX-License-Identifier: Apache-2.0
"""A tenant's own server signs tokens for its users' inboxes, by the programs of services/gateway/INBOX_TOKENS.md."""
import json
import re
import shutil
import subprocess
import time

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import HOME, wait_until
from tests.integration.inbox.test_inapp import new_user, send
from tests.integration.inbox.test_inbox_preferences import make_recipient
from tests.integration.sending.test_templates import locale, publish

TEMPLATE = "inbox-signed"
TEXT = (HOME / "services/gateway/INBOX_TOKENS.md").read_text()
VECTOR = dict(re.findall(r"^(key id|secret|to|expiry|token) +(\S+)$", TEXT, re.M))


def code(language):
    return re.search(rf"```{language}\n(.*?)```", TEXT, re.S)[1]


@pytest.fixture(scope="module")
def sign():
    space = {}
    exec(code("python"), space)  # noqa: S102 (the document's own program)
    return space["inbox_token"]


def manage(pipeline, method, path="", **headers):
    status, _, answer = pipeline.post(b"", path=f"/v1/inbox/keys{path}", method=method,
                                      headers={"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": TENANT, **headers})
    return status, answer


@pytest.fixture(scope="module")
def key(pipeline):
    publish(pipeline, TEMPLATE, channel="inapp", category="transactional",
            locales=[locale("en", title="Hello {{name}}", text="You have {{count}} orders")])
    status, made = manage(pipeline, "POST")
    assert status == 201, made
    yield made
    assert manage(pipeline, "DELETE", f"/{made['id']}")[0] == 204


def ask(pipeline, token, path="/counts", method="GET"):
    status, _, answer = pipeline.post(b"", path=f"/v1/inbox{path}", method=method, headers={"Authorization": f"Bearer {token}"})
    return status, answer


def test_the_document_s_programs_make_the_document_s_token(sign, tmp_path):
    assert sign(VECTOR["key id"], VECTOR["secret"], VECTOR["to"], int(VECTOR["expiry"])) == VECTOR["token"]
    if not shutil.which("node"):
        pytest.skip("no Node.js")
    program = code("js") + "console.log(inboxToken(...process.argv.slice(2, 5), Number(process.argv[5])));\n"
    (tmp_path / "token.mjs").write_text(program)
    done = subprocess.run(["node", tmp_path / "token.mjs", VECTOR["key id"], VECTOR["secret"], VECTOR["to"], VECTOR["expiry"]],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == VECTOR["token"], done.stderr


def test_a_signed_token_opens_its_user_s_inbox(pipeline, key, sign):
    user = new_user()
    notification = send(pipeline, template=TEMPLATE, to=user)
    token = sign(key["id"], key["secret"], user)
    items = wait_until(lambda: ask(pipeline, token, "")[1]["data"], 10, "the item in the inbox")
    assert [item["id"] for item in items] == [notification]
    assert ask(pipeline, token, f"/{notification}/read", "POST")[1]["unread"] == 0
    assert ask(pipeline, sign(key["id"], key["secret"], new_user()), f"/{notification}/read", "POST")[0] == 404


def test_a_recipient_without_an_address_is_named_by_its_id(pipeline, key, sign):
    recipient = make_recipient(pipeline)
    send(pipeline, template=TEMPLATE, recipient_id=recipient)
    token = sign(key["id"], key["secret"], recipient)
    wait_until(lambda: len(ask(pipeline, token, "")[1]["data"]) == 1, 10, "the item in the inbox by id")
    status, shown = ask(pipeline, token, "/preferences")
    assert status == 200 and shown["preferences"], shown
    user = new_user()
    assert ask(pipeline, sign(key["id"], key["secret"], user), "/preferences")[0] == 404
    make_recipient(pipeline, {"channel": "inapp", "address": user})
    assert ask(pipeline, sign(key["id"], key["secret"], user), "/preferences")[0] == 200


def test_what_is_not_signed_so_is_refused(pipeline, key, sign):
    user = new_user()
    good = sign(key["id"], key["secret"], user)
    assert ask(pipeline, good)[0] == 200
    other = "ink_01M8DZ0000000000000000000A"
    for token in (sign(key["id"], "another secret", user), sign(other, key["secret"], user), good[:-2], good + "=", good + ".x", VECTOR["token"],
                  sign(key["id"], key["secret"], "has a space"), sign(key["id"], key["secret"], "a\nb"), "ink_", "ink_...."):
        status, problem = ask(pipeline, token)
        assert (status, problem["type"]) == (401, "urn:stentor:problem:unauthorized"), (token, problem)
    now = int(time.time())
    status, problem = ask(pipeline, sign(key["id"], key["secret"], user, now - 5))
    assert (status, problem["type"]) == (401, "urn:stentor:problem:token-expired")
    status, problem = ask(pipeline, sign(key["id"], key["secret"], user, now + 86400 + 600))
    assert status == 401 and "24 hours at most" in problem["detail"]


def test_a_revoked_key_s_tokens_open_nothing(pipeline, key, sign):
    status, made = manage(pipeline, "POST")
    assert status == 201 and len(made["secret"]) == 43
    token = sign(made["id"], made["secret"], new_user())
    assert ask(pipeline, token)[0] == 200
    status, listed = manage(pipeline, "GET")
    assert [each["id"] for each in listed["data"]] == [key["id"], made["id"]] and "secret" not in json.dumps(listed)
    assert manage(pipeline, "DELETE", f"/{made['id']}")[0] == 204
    assert ask(pipeline, token)[0] == 401
    assert ask(pipeline, sign(key["id"], key["secret"], new_user()))[0] == 200, "the other key stays"
    assert manage(pipeline, "DELETE", f"/{made['id']}")[0] == 404 and manage(pipeline, "DELETE", "/all")[0] == 404


def command(pipeline, *words):
    return json.loads(pipeline.cli("inbox-key", *words, "--json"))


def test_the_command_line_rotates_keys(pipeline, key, sign):
    """create, list, rotate and revoke: the old key's tokens stay good until it is revoked, or are refused at once with --now."""
    user = new_user()
    first = command(pipeline, "create")
    assert ask(pipeline, sign(first["id"], first["secret"], user))[0] == 200
    second = command(pipeline, "rotate", first["id"])
    assert second["rotated_from"] == first["id"] and second["old_state"] == "must be revoked"
    for each in (first, second):
        assert ask(pipeline, sign(each["id"], each["secret"], user))[0] == 200
    listed = command(pipeline, "list")
    assert [each["id"] for each in listed] == [key["id"], first["id"], second["id"]] and second["secret"] not in json.dumps(listed)
    assert command(pipeline, "revoke", first["id"])["state"] == "revoked"
    third = command(pipeline, "rotate", second["id"], "--now")
    assert third["old_state"] == "revoked"
    assert [ask(pipeline, sign(each["id"], each["secret"], user))[0] for each in (first, second, third)] == [401, 401, 200]
    assert command(pipeline, "revoke", third["id"])["id"] == third["id"]
    assert [each["id"] for each in command(pipeline, "list")] == [key["id"]]
    assert re.fullmatch(rf"KEY +CREATED +BY\n{key['id']}  20\S+ +\S+\n", pipeline.cli("inbox-key", "list"))


def test_the_command_line_names_a_key_that_is_not_there(pipeline, key):
    other = key["id"][:-1] + ("X" if key["id"][-1] != "X" else "Y")
    for words in (["revoke", other], ["rotate", "ink_01M8DZ0000000000000000000A"]):
        done = pipeline.run_cli("inbox-key", *words)
        assert done.returncode == 3 and "stentor inbox-key list" in done.stderr, done
    done = pipeline.run_cli("inbox-key", "rotate", "all")
    assert done.returncode == 2 and "not the id of a signing key" in done.stderr, done
    assert [each["id"] for each in command(pipeline, "list")] == [key["id"]], "nothing was made"


def test_there_are_at_most_four_keys(pipeline, key):
    made = [manage(pipeline, "POST") for _ in range(4)]
    assert [status for status, _ in made] == [201, 201, 201, 409]
    assert made[3][1]["type"] == "urn:stentor:problem:too-many-keys"
    for _, each in made[:3]:
        assert manage(pipeline, "DELETE", f"/{each['id']}")[0] == 204


def test_keys_are_made_by_who_may_manage_keys(pipeline, key, sign):
    status, problem = manage(pipeline, "POST", Authorization=f"Bearer {pipeline.key}")
    assert status == 403 and "keys:manage" in problem["detail"], problem
    assert manage(pipeline, "POST", Authorization=f"Bearer {sign(key['id'], key['secret'], 'user')}")[0] == 401
    status, _, problem = pipeline.post({"name": "web"}, path="/v1/inbox/keys",
                                       headers={"Authorization": f"Bearer {pipeline.operator_key}", "Stentor-Tenant": TENANT})
    assert (status, problem["field"]) == (422, "name")
