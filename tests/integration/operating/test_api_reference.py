# SPDX-License-Identifier: Apache-2.0
"""services/gateway/API.md is the routes of ingest and gateway: each with its scope, and what takes a precondition."""
import re

from tests.harness.processes import HOME

ROW = re.compile(r'\{"([A-Z]+)", "(/v1/[^"]+)",\s*SCOPE_(\w+),\s*\w+,\s*(?:NULL|"[^"]*"|LIST_QUERY),\s*(true|false)\}')
PARAMETER = re.compile(r"\{\w*\}")


def _served():
    """{(method, path): (scope, conditional)} of the tables of routes."""
    found = {}
    for folder in ("ingest", "gateway"):
        for path in (HOME / "services" / folder).rglob("*.c"):
            for method, route, scope, conditional in ROW.findall(path.read_text()):
                found[method, route] = scope.lower().replace("_", ":", 1), conditional == "true"
    return found


def _written():
    """The same of the tables in the document."""
    rows = re.findall(r"^\| `([A-Z]+) (/v1/[^`]+)` \| `([\w:]+)` \| (.*) \|$", (HOME / "services/gateway/API.md").read_text(), re.M)
    return {(method, PARAMETER.sub("{}", path)): (scope, "conditional" in what) for method, path, scope, what in rows}


def test_every_route_stands_in_the_reference_with_its_scope():
    served = _served()
    assert len(served) > 40 and served["POST", "/v1/notifications"] == ("notifications:send", False)
    assert _written() == served


def test_every_section_about_a_route_is_about_one_that_there_is_and_has_an_example():
    text = (HOME / "services/gateway/API.md").read_text()
    sections = re.split(r"^#+ ", text, flags=re.M)[1:]
    about = [section for section in sections if re.match(r"[A-Z]+ /v1/", section)]
    assert len(about) >= 15
    for section in about:
        method, path = section.split("\n", 1)[0].split()
        assert (method, PARAMETER.sub("{}", path)) in _served(), path
        assert "```sh\ncurl " in section, path
        assert len(section.splitlines()) <= 45, path
