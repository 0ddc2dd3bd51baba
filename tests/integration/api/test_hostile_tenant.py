# SPDX-License-Identifier: Apache-2.0
"""A tenant that asks for everything of another one, callers without the right key, and requests that make no sense: every route of the API's document
answers with a refusal. The routes are the document's, so a new one is in here by itself."""
import json
import re
import time

import pytest

from tests.harness import openapi
from tests.harness.openapi import OPERATIONS, OPERATOR, Example, call
from tests.harness.openapi.tryout import ALL_SCOPES, Tryout, started
from tests.harness.processes import wait_until

HOSTILE = "rival"
REFUSED = (401, 403, 404)
KEYED = [one for one in OPERATIONS if one.scope not in ("none", "inbox")]
INBOX = [one for one in OPERATIONS if one.scope == "inbox"]
STREAMS = [one.id for one in OPERATIONS if "skip" in (one.try_ or {})]
ID = re.compile(r"\b(?:ntf|rcp|dbt|sup|whs|whd|chc|req)_[0-9A-Za-z_-]{20,}|\bwhsec_\S+|\bacme\b")
# What differs between two answers when nothing has happened: the request's id, the span up to now, how old a view is, when a key was used last.
OF_THE_ANSWER = re.compile(rb'req_[0-9A-Z]{26}|"(?:from|to|last_used_at)":(?:null|"[-0-9T:.Z]+")|"lag_seconds":[-0-9.e+]+')
# The pipeline's picture is of all tenants and moves with the clock; reading content writes into the audit log.
MOVING = [one.id for one in OPERATIONS if one.found["tags"] == ["operating"]] + ["listAuditLog"]
MANY = 10_000
LARGE = 5 * 1024 * 1024
QUIET_S = 2  # a cancelled mail is counted a second after its answer


class Scene:
    """Tenant acme has what the document's examples make; tenant rival has a key with all scopes."""

    def __init__(self, pipeline):
        self.pipeline, self.port = pipeline, pipeline.api_port
        self.victim = Tryout(pipeline)
        for operation in openapi.in_order():
            if operation.method != "DELETE" and not removes(operation) and operation.id not in STREAMS:
                self.victim.run(operation)
        pipeline.cli("tenant", "put", HOSTILE, "--name", "Rival", "--sender", "hello@rival.test", tenant="platform")
        self.key = self.make_key(ALL_SCOPES, tenant=HOSTILE)
        self.inbox_token = self.ask("POST", "/v1/inbox/tokens", self.key, b'{"to": "user-17"}').body["token"]

    def make_key(self, scopes, tenant="acme", *words):
        key = json.loads(self.pipeline.cli("apikey", "create", "--name", "hostile", "--scopes", scopes, *words, "--json", tenant=tenant))["key"]
        for path in ("/v1/api-keys", "/v1/batches"):  # gateway, ingest
            wait_until(lambda path=path: self.ask("GET", path, key).status != 401, 20, "the key reaching both")
        return key

    def ask(self, method, path, key=None, body=None, **headers):
        shown = {"Authorization": f"Bearer {key}"} if key else {}
        return call(self.port, method, path, body, {**shown, **headers})

    def example(self, operation):
        """With the victim's ids, where one is needed."""
        return Example(operation, self.victim.values(operation))

    def send(self, operation, key, **headers):
        example = self.example(operation)
        return self.ask(operation.method, example.path(), key, example.body(), **{**example.headers(), **headers})

    def seen_by_victim(self):
        """Every read of the victim's, as it is now."""
        found = {}
        for operation in OPERATIONS:
            if operation.method == "GET" and operation.scope not in ("none", OPERATOR) and operation.id not in STREAMS + MOVING:
                found[operation.id] = OF_THE_ANSWER.sub(b"", self.victim.send(operation).raw)
        return found

    def settled(self):
        """The same when nothing goes on any more: deliveries have failed, what was cancelled is in history, totals are counted."""
        seen = [self.seen_by_victim()]
        since = [time.monotonic()]

        def same():
            seen.append(self.seen_by_victim())
            if seen[-1] != seen[-2]:
                since[0] = time.monotonic()
            return time.monotonic() - since[0] > QUIET_S

        try:
            wait_until(same, 10, "the reads staying the same")
        except AssertionError as error:
            changed = {name: (raw[:300], seen[-1][name][:300]) for name, raw in seen[-2].items() if raw != seen[-1][name]}
            raise AssertionError(f"these change for ever: {changed}") from error
        return seen[-1]


def removes(operation):
    return any(name.startswith(("delete", "revoke")) for name in openapi.needs(operation)) or operation.id.startswith("revoke")


@pytest.fixture(scope="module")
def scene():
    pipeline = started()
    yield Scene(pipeline)
    pipeline.stop()


def owned_elsewhere(operation):
    """Its path names a thing of the victim's: an id that was made for it, or a key that it chose."""
    return bool(operation.named("path")) and operation.method != "PUT"


def tell(answer):
    return f"{answer.status} {answer.raw[:200].decode(errors='replace')}"


# ---- another tenant ----

def test_a_tenant_gets_nothing_of_another_one_and_changes_nothing_of_it(scene):
    before = scene.settled()
    wrong = []
    for operation in sorted(KEYED, key=lambda one: not owned_elsewhere(one)):  # before it makes things of the same names
        if operation.id in STREAMS:
            continue
        example = scene.example(operation)
        answer = scene.send(operation, scene.key)
        if owned_elsewhere(operation) and answer.status not in REFUSED:
            wrong.append(f"{operation.id}: {tell(answer)}")
        asked = example.path() + str(example.body() or "")
        shown = {found for found in ID.findall(answer.raw.decode(errors="replace")) if found not in asked and not found.startswith("req_")}
        stolen = {found for found in shown if any(found.encode() in raw for raw in before.values())}
        if stolen or answer.status >= 500 and answer.body["type"] not in NO_STORAGE:
            wrong.append(f"{operation.id}: {stolen} in {tell(answer)}")
    assert not wrong, "\n".join(wrong)
    after = scene.settled()
    assert {name for name in before if before[name] != after[name]} == set()


NO_STORAGE = ("urn:stentor:problem:no-storage",)


def test_naming_the_other_tenant_is_refused_everywhere(scene):
    answers = {one.id: scene.send(one, scene.key, **{"Stentor-Tenant": "acme"}) for one in KEYED}
    wrong = {name: tell(answer) for name, answer in answers.items() if answer.status != 403 or not answer.body["type"].endswith("foreign-tenant")}
    assert wrong == {}


def test_a_token_of_another_tenant_s_inbox_opens_nothing_of_this_one(scene):
    for operation in INBOX:
        if operation.id in STREAMS:
            continue
        answer = scene.send(operation, scene.inbox_token)
        if operation.named("path"):
            assert answer.status == 404, f"{operation.id}: {tell(answer)}"
        else:
            none = answer.status == 404 and answer.body["type"].endswith("no-recipient")  # its own inbox is of no one's record
            shown = set(ID.findall(answer.raw.decode())) - {answer.headers["Stentor-Request-Id"]}
            assert (none or answer.status == 200) and not shown, f"{operation.id}: {tell(answer)}"


# ---- callers without the right key ----

def refusals(scene, operations, key, status, kind):
    answers = {one.id: scene.send(one, key) for one in operations}
    return {name: tell(answer) for name, answer in answers.items()
            if answer.status != status or answer.type != "application/problem+json" or kind not in answer.body["type"]}


def test_without_a_key_every_route_but_the_open_ones_is_401(scene):
    assert refusals(scene, KEYED + INBOX, None, 401, "unauthorized") == {}


def test_an_inbox_token_opens_no_other_route(scene):
    token = scene.victim.answers["createInboxToken"].body["token"]
    assert scene.send(openapi.BY_ID["listInbox"], token).status == 200
    assert refusals(scene, KEYED, token, 401, "unauthorized") == {}
    assert refusals(scene, INBOX, scene.key, 401, "unauthorized") == {}


def test_a_key_without_the_scope_is_403_and_the_answer_names_it(scene):
    scopes = sorted({one.scope for one in KEYED} - {OPERATOR, "any"})
    wrong = {}
    for scope in [*scopes, OPERATOR]:
        key = scene.make_key(",".join(other for other in scopes if other != scope))
        for operation in KEYED:
            if operation.scope == scope:
                answer = scene.send(operation, key)
                if answer.status != 403 or f"'{scope}'" not in answer.body["detail"]:
                    wrong[operation.id] = tell(answer)
    assert wrong == {}


def test_a_key_that_has_expired_or_was_revoked_is_401(scene):
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
    expired = scene.ask("POST", "/v1/api-keys", scene.victim.key, json.dumps({"name": "brief", "scopes": ["admin"], "expires_at": ends}).encode()).body["key"]
    revoked = scene.make_key("admin")
    assert scene.ask("DELETE", "/v1/api-keys/" + revoked[4:].split(".")[0], scene.victim.key).status == 200
    for path in ("/v1/templates", "/v1/batches"):
        wait_until(lambda path=path: b"key-revoked" in scene.ask("GET", path, revoked).raw, 20, "the revocation reaching both")
        wait_until(lambda path=path: b"key-expired" in scene.ask("GET", path, expired).raw, 20, "the key's end")
    assert refusals(scene, KEYED, expired, 401, "key-expired") == {}
    assert refusals(scene, KEYED, revoked, 401, "key-revoked") == {}


# ---- requests that make no sense ----

def rightful(scene, operation):
    """The headers of the caller who may."""
    return {**scene.example(operation).headers(), **scene.victim.headers(operation)}


def spoilt(scene, operation, query=None, body=None):
    example = scene.example(operation)
    path = example.path(query=False) + ("?" + query if query else example.path()[len(example.path(query=False)):])
    return call(scene.port, operation.method, path, body if body is not None else example.body(), rightful(scene, operation))


def test_an_unknown_query_parameter_is_refused_by_name(scene):
    wrong = {}
    for operation in KEYED + INBOX:
        answer = spoilt(scene, operation, "surprise=1")
        if answer.status != 400 or answer.body.get("field") != "surprise" or not answer.body["type"].endswith("invalid-parameter"):
            wrong[operation.id] = tell(answer)
    assert wrong == {}


def test_ten_thousand_parameters_are_refused(scene):
    query = "&".join(f"p{i}=1" for i in range(MANY))
    wrong = {}
    for operation in OPERATIONS:
        answer = spoilt(scene, operation, query)
        if answer.status not in (400, 414, 431):
            wrong[operation.id] = tell(answer)
    assert wrong == {}


def test_a_cursor_of_another_tenant_or_another_list_is_400(scene):
    lists = [one for one in KEYED if "cursor" in [parameter["name"] for parameter in one.named("query")] and one.id not in STREAMS]
    pages = {one.id: spoilt(scene, one, "limit=1") for one in lists}
    own = {name: page.body["next"] for name, page in pages.items() if page.status == 200 and page.type == "application/json" and page.body["next"]}
    assert len(own) >= 4, f"too few lists have two entries: {sorted(own)}"
    wrong = {}
    for operation in lists:
        key = scene.pipeline.operator_key if operation.scope == OPERATOR else scene.key
        headers = {"Stentor-Tenant": HOSTILE} if operation.scope == OPERATOR else {}
        for source in {operation.id, next(name for name in own if name != operation.id)} & set(own):
            answer = scene.ask("GET", f"{scene.example(operation).path(query=False)}?limit=1&cursor={own[source]}", key, **headers)
            refused = REFUSED if operation.named("path") else ()
            if answer.status not in (400, *refused):
                wrong[operation.id, source] = tell(answer)
    assert wrong == {}


def with_json(operations):
    return [one for one in operations if one.bodies() and one.bodies()[0][0] == "application/json"]


def test_a_body_that_is_no_json_is_refused(scene):
    wrong = {}
    for operation in with_json(KEYED + INBOX):
        answer = spoilt(scene, operation, body=b'{"name": ')
        if answer.status not in (400, 422) or answer.type != "application/problem+json":
            wrong[operation.id] = tell(answer)
    assert wrong == {}


def test_five_megabytes_are_refused(scene):
    wrong = {}
    for operation in KEYED + INBOX:
        if operation.method == "GET" or operation.bodies() and not openapi.is_json(operation.bodies()[0][0]):
            continue  # nothing is read; files have a limit of their own
        answer = spoilt(scene, operation, body=b'"' + b"x" * LARGE + b'"')
        if answer.status != 413:
            wrong[operation.id] = tell(answer)
    assert wrong == {}
