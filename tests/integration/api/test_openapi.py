# SPDX-License-Identifier: Apache-2.0
"""The API's document: it is the routes of ingest and gateway, a linter has nothing to say, its examples are as its schemas say, and a client can be made of it."""
import json
import os
import re
import shutil
import subprocess

from tests.harness import openapi
from tests.harness.openapi import DOCUMENT, OPERATIONS
from tests.harness.processes import HOME, wait_until

CONDITIONS = ["If-Match", "If-None-Match"]


def mounted(service):
    """{(method, pattern): (scope, query parameters, conditional)} as the running process says."""
    asked = subprocess.run([*service.argv(), "--routes"], env=service.environment(), capture_output=True, text=True, timeout=20)
    assert asked.returncode == 0, asked.stderr
    rows = [line.split("\t") for line in asked.stdout.splitlines()]
    found = {(row[0], row[1]): (row[2], tuple(sorted(row[4].split())) if len(row) > 4 else (), row[3] == "conditional") for row in rows}
    assert len(found) == len(rows), "a route is there twice"
    return found


def test_the_document_is_the_routes_of_both_programs_in_both_directions(pipeline):
    routes = {**mounted(pipeline.services["ingest"]), **mounted(pipeline.services["gateway"])}
    described = {(one.method, one.pattern): (one.scope, tuple(sorted(parameter["name"] for parameter in one.named("query"))),
                                             [parameter["name"] for parameter in one.named("header")][-2:] == CONDITIONS) for one in OPERATIONS}
    assert len(routes) > 100
    assert described == routes


def test_the_gateway_serves_the_document_to_anybody_and_says_when_it_is_the_same(pipeline):
    served = openapi.call(pipeline.api_port, "GET", "/v1/openapi.json")
    assert (served.status, served.type) == (200, "application/openapi+json")
    assert served.body == openapi.join.join() and "x-try" not in served.raw.decode()
    again = openapi.call(pipeline.api_port, "GET", "/v1/openapi.json", headers={"If-None-Match": served.headers["ETag"]})
    assert (again.status, again.raw) == (304, b"")
    other = openapi.call(pipeline.api_port, "GET", "/v1/openapi.json", headers={"If-None-Match": '"another"'})
    assert other.raw == served.raw


def test_every_operation_has_what_the_convention_asks_for():
    groups = {tag["name"] for tag in DOCUMENT["tags"]}
    for one in OPERATIONS:
        place = f"{one.method} {one.path}"
        assert set(one.found["tags"]) <= groups and len(one.found["tags"]) == 1, place
        assert one.found["summary"].endswith("."), place
        security = {"none": [], "inbox": [{"inboxToken": []}]}.get(one.scope)
        assert one.found.get("security") == security, place
        assert one.found["responses"]["default"] == {"$ref": "#/components/responses/Problem"}, place
        assert [parameter["name"] for parameter in one.named("path")] == [part[1:-1] for part in one.path.split("/") if part.startswith("{")], place
        assert all("example" in parameter for parameter in one.named("path")), place
        assert not one.bodies() or "example" in one.bodies()[0][1], place
        for name in openapi.needs(one):
            assert name in openapi.BY_ID, f"{place}: x-try names {name}"


def test_every_example_is_as_its_schema_says():
    wrong = []
    for one in OPERATIONS:
        contents = [*one.bodies(), *(pair for status in one.found["responses"] for pair in one.response(status).get("content", {}).items())]
        for content_type, content in contents:
            if "example" in content:
                wrong += [f"{one.id} {content_type}: {fault}" for fault in openapi.faults(content["schema"], content["example"])]
        for parameter in one.parameters:
            if "example" in parameter:
                wrong += [f"{one.id} {parameter['name']}: {fault}" for fault in openapi.faults(parameter["schema"], parameter["example"])]
    assert not wrong, "\n".join(wrong)


def test_a_linter_has_nothing_to_say_of_it(tmp_path):
    folder = openapi.packages()
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(openapi.join.join()))
    done = subprocess.run(["node_modules/.bin/redocly", "lint", "--config", "redocly.yaml", "--format", "stylish", str(document)], cwd=folder,
                          capture_output=True, text=True, timeout=120, env={"PATH": os.environ["PATH"], "REDOCLY_TELEMETRY": "off",
                                                                            "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "HOME": str(tmp_path)})
    assert done.returncode == 0 and "is valid" in done.stderr, done.stdout + done.stderr  # recommended-strict: a warning is an error


def test_a_client_with_types_from_it_compiles_and_works(pipeline, tmp_path):
    folder = openapi.packages()
    for name in ("package.json", "client.ts"):
        shutil.copy(folder / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(folder / "node_modules")
    (tmp_path / "openapi.json").write_text(json.dumps(openapi.join.join()))

    def run(*words, **environment):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=180,
                              env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("node_modules/.bin/openapi-typescript", "openapi.json", "-o", "generated/api.d.ts")
    run("node_modules/.bin/tsc", "--strict", "--noEmitOnError", "--target", "es2022", "--module", "nodenext", "--outDir", "built", "client.ts")
    said = json.loads(run("node", "built/client.js", API=f"http://127.0.0.1:{pipeline.api_port}", KEY=pipeline.key))
    assert said["status"] in ("queued", "sending", "sent") and said["refused"] == "urn:stentor:problem:invalid-field"
    wait_until(lambda: pipeline.status(said["id"])["status"] == "sent", 20, "the client's notification")


TITLED = re.compile(r'"([a-z]+(?:-[a-z]+)*)",\s*"[A-Z][^"]*"')  # a problem's last part, and its title
SET = re.compile(r'slug = "([a-z-]+)"')
FOLDERS = ("services/gateway", "services/ingest", "common/api", "common/http")


def test_every_kind_of_problem_in_the_code_has_its_page_and_every_page_its_problem(pipeline):
    texts = [path.read_text() for folder in FOLDERS for path in (HOME / folder).rglob("*.c")]
    known = set(DOCUMENT["x-problems"])
    assert {name for text in texts for name in SET.findall(text)} <= known
    # Others may stand before a text with a capital letter; what a problem's call has is the status before it.
    called = {name for text in texts for name in re.findall(r'\b[45]\d\d,\s*' + TITLED.pattern, text)}
    assert len(called) > 25 and called <= known, called - known
    assert {name for name in known if not any(f'"{name}"' in text for text in texts)} == set()
    listed = openapi.call(pipeline.api_port, "GET", "/v1/problems").body["data"]
    assert [one["type"] for one in listed] == [f"urn:stentor:problem:{name}" for name in sorted(known)]
    refused = openapi.call(pipeline.api_port, "GET", "/v1/tenant").body
    page = openapi.call(pipeline.api_port, "GET", f"/v1/problems/{refused['type']}", headers={"Accept": "text/html,*/*"})
    assert (page.status, page.type) == (200, "text/html") and "stn_&lt;key id&gt;" in page.raw.decode()
    assert openapi.call(pipeline.api_port, "GET", "/v1/problems/no-such").status == 404


def test_a_problem_names_the_trace_of_its_request(pipeline):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for service in ("v1/batches", "v1/tenant"):  # ingest, gateway
        for sent, shown in ((f"00-{trace}-00f067aa0ba902b7-01", trace), (f"00-{trace.upper()}-00f067aa0ba902b7-01", None), ("00-x", None)):
            refused = openapi.call(pipeline.api_port, "GET", f"/{service}", headers={"traceparent": sent})
            assert refused.status == 401 and refused.body.get("trace_id") == shown
            assert refused.body["instance"] == "urn:stentor:request:" + refused.headers["Stentor-Request-Id"]
