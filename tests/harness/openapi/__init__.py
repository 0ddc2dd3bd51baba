# SPDX-License-Identifier: Apache-2.0
"""The API's document (services/gateway/openapi): its operations, how each one's example is sent, and whether an answer is one that it describes."""
import copy
import fcntl
import http.client
import importlib.machinery
import importlib.util
import itertools
import json
import re
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import jsonschema
import pytest

from tests.harness.processes import HOME

HERE = Path(__file__).parent
FOLDER = HOME / "services" / "gateway" / "openapi"
CACHE_GONE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|CERT_IN_CHAIN")
NUMBERS = itertools.count()
OPERATOR = "tenants:operate"  # this scope alone needs a key of tenant `platform`


def _load_join():
    loader = importlib.machinery.SourceFileLoader("openapi_join", str(FOLDER / "join"))
    spec = importlib.util.spec_from_loader("openapi_join", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


join = _load_join()
DOCUMENT = join.join(for_tests=True)


def packages():
    """The folder with node_modules; fetched once."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js here: apt-get install nodejs npm")
    with (HERE / "package.json").open() as lock:  # other workers fetch it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules" / "typescript").exists():
            done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=HERE, capture_output=True,
                                  text=True, timeout=300)
            if CACHE_GONE.search(done.stderr):
                pytest.skip("the npm registry cannot be reached from here")
            assert done.returncode == 0, done.stderr
    return HERE


# ---- the document ----

class Operation:
    def __init__(self, path, method, found):
        item = DOCUMENT["paths"][path]
        self.path, self.method, self.found = path, method.upper(), found
        self.id = found["operationId"]
        self.scope = found["x-scope"]
        self.parameters = [resolve(one) for one in item.get("parameters", []) + found.get("parameters", [])]
        self.try_ = found.get("x-try")

    def __repr__(self):
        return self.id

    @property
    def pattern(self):
        return re.sub(r"\{\w*\}", "{}", self.path)

    def named(self, place):
        """The parameters of 'path', 'query' or 'header'."""
        return [one for one in self.parameters if one["in"] == place]

    def bodies(self):
        """(content type, its description); the first is the one whose example is sent."""
        return list(resolve(self.found.get("requestBody", {})).get("content", {}).items())

    def response(self, status):
        return resolve(self.found["responses"].get(str(status)) or self.found["responses"]["default"])

    def good_status(self):
        return next(int(status) for status in self.found["responses"] if status.startswith("2"))


def resolve(value):
    return join.lookup(DOCUMENT, value["$ref"]) if "$ref" in value else value


OPERATIONS = [Operation(*found) for found in join.operations(DOCUMENT)]
BY_ID = {operation.id: operation for operation in OPERATIONS}


# ---- schemas ----

def _close(schema, inside=False):
    """An object with named members has no others: an answer may not have what its schema does not name."""
    if isinstance(schema, list):
        for member in schema:
            _close(member)
        return
    if not isinstance(schema, dict):
        return
    if "allOf" in schema:
        schema.setdefault("unevaluatedProperties", False)
    elif "properties" in schema and not inside:
        schema.setdefault("additionalProperties", False)
    for name, member in schema.items():
        if name == "allOf":
            for part in member:
                _close(part, inside=True)
        elif name == "properties":
            for one in member.values():
                _close(one)
        elif name != "example":
            _close(member)


def _closed_components():
    schemas = copy.deepcopy(DOCUMENT["components"]["schemas"])
    schemas["Problem"]["properties"]["type"] = {"enum": [problem["type"] for problem in DOCUMENT["x-problems"].values()]}
    for name, schema in schemas.items():
        _close(schema, inside=name == "Page")
    return {"schemas": schemas}


COMPONENTS = _closed_components()
FORMATS = jsonschema.FormatChecker(formats=[])
FORMATS.checks("date-time")(lambda value: not isinstance(value, str) or bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value)))


def faults(schema, value):
    """What of the value is not as the schema says, a text each."""
    own = copy.deepcopy(schema)
    _close(own)
    validator = jsonschema.Draft202012Validator({**own, "components": COMPONENTS}, format_checker=FORMATS)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator.iter_errors(value)]


# ---- sending ----

def is_json(content_type):
    return content_type == "application/json" or content_type.endswith("+json")


class Answer:
    def __init__(self, response, raw):
        self.status, self.headers, self.raw = response.status, dict(response.getheaders()), raw
        self.type = self.headers.get("Content-Type", "").split(";")[0]
        self.body = json.loads(raw) if raw and is_json(self.type) else None


def call(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return Answer(answer, answer.read())
    finally:
        connection.close()


def member(value, way):
    """'data.0.id' of an answer; None: not there."""
    for step in way.split("."):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def in_order():
    """All operations, each behind those that its x-try names."""
    done, order = set(), []

    def add(operation, behind=()):
        assert operation.id not in behind, f"x-try goes in a circle: {[*behind, operation.id]}"
        if operation.id in done:
            return
        for name in needs(operation):
            add(BY_ID[name], (*behind, operation.id))
        done.add(operation.id)
        order.append(operation)

    for operation in OPERATIONS:
        add(operation)
    return order


def needs(operation):
    found = operation.try_ or {}
    return [*found.get("after", []), *(way.split(".")[0] for way in found.get("from", {}).values())]


class Example:
    """One operation's example as a request. values: what stands in the place of examples, as x-try names it."""

    def __init__(self, operation, values=None):
        self.operation = operation
        self.values = values or {}

    def path(self, query=True):
        path = self.operation.path
        for one in self.operation.named("path"):
            value = self.values.get(one["name"], one.get("example"))
            path = path.replace("{%s}" % one["name"], urllib.parse.quote(str(value), safe="*"))
        pairs = {}
        for one in self.operation.named("query"):
            value = self.values.get("query." + one["name"], one.get("example"))
            if value is not None:
                pairs[one["name"]] = str(value).lower() if isinstance(value, bool) else value
        return path + ("?" + urllib.parse.urlencode(pairs) if pairs and query else "")

    def headers(self):
        found = {one["name"]: str(one["example"]) for one in self.operation.named("header") if "example" in one}
        if "Idempotency-Key" in found:
            found["Idempotency-Key"] += f"-{next(NUMBERS)}"  # each request is one of its own
        if self.operation.bodies():
            found["Content-Type"] = self.operation.bodies()[0][0]
        return found

    def body(self):
        if not self.operation.bodies():
            return None
        content_type, content = self.operation.bodies()[0]
        body = copy.deepcopy(content["example"])
        for name, value in self.values.items():
            if name.startswith("body."):
                body[name.removeprefix("body.")] = value
        return json.dumps(body).encode() if is_json(content_type) else body.encode()
