# SPDX-License-Identifier: Apache-2.0
"""The READMEs tell what is: the options that the binaries print, the two commands, and links that lead somewhere."""
import re
import subprocess

import pytest

from tests.harness.processes import BIN, HOME, SERVICES

FIRST_COMMON = "STENTOR_NATS_URL"  # a service prints its own options first, then those that every service has


def _printed(program, *words):
    """The rows of the option table that a program prints, without its head."""
    done = subprocess.run([BIN / program, *words], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    assert rows, done.stdout
    return rows


def _split(rows):
    at = next(i for i, row in enumerate(rows) if row.startswith(f"| `{FIRST_COMMON}`"))
    return rows[:at], rows[at:]


def _written(readme, kind):
    """The rows between the markers `<!-- options: KIND ... -->` and `<!-- end -->`."""
    blocks = re.findall(rf"^<!-- options: {kind}\b[^\n]*-->\n(.*?)^<!-- end -->$", (HOME / readme).read_text(), re.S | re.M)
    assert len(blocks) == 1, f"{readme} has {len(blocks)} tables of {kind} options"
    head, rule, *rows = blocks[0].splitlines()
    assert (head, rule) == ("| name | default | meaning |", "|---|---|---|")
    return rows


def test_the_readme_has_the_options_that_every_service_has():
    assert _written("services/README.md", "common") == _split(_printed("stentor-ingest", "--options-markdown"))[1]


@pytest.mark.parametrize("name", [*SERVICES, "order-saga"])
def test_a_services_readme_has_its_own_options(name):
    own, common = _split(_printed(f"stentor-{name}", "--options-markdown"))
    assert _written(f"services/{name}/README.md", "own") == own
    known = _written("services/README.md", "common")
    assert [row for row in known if row in common] == common


def test_the_readme_names_the_common_options_that_a_service_lacks():
    """'NAME has no `OPTION`; ...' below the table is what the binaries say."""
    known = _written("services/README.md", "common")
    text = (HOME / "services/README.md").read_text().split("<!-- end -->", 1)[1].split("\n\n")[1]
    said = set()
    for names, option in re.findall(r"([\w ,-]+?) ha(?:s|ve) no `(\w+\*?)`", text):
        rows = [row for row in known if re.match(rf"\| `{option.replace('*', '.*')}`", row)]
        assert rows, option
        said |= {(name, row) for name in re.findall(r"[\w-]+", names.replace(" and ", " ")) for row in rows}
    lacking = {(name, row) for name in SERVICES for row in known if row not in _printed(f"stentor-{name}", "--options-markdown")}
    assert said == lacking


def test_the_commands_readme_has_its_settings():
    assert _written("services/cli/README.md", "own") == _printed("stentor", "help")


def test_the_commands_readme_names_every_command():
    text = (HOME / "services/cli/README.md").read_text()
    helped = subprocess.run([BIN / "stentor", "help"], capture_output=True, text=True, timeout=20).stdout
    commands = re.findall(r"^  ([a-z]+(?:-[a-z]+| [a-z]+)?)  +\S", helped, re.M)
    assert "send" in commands and "template put" in commands and "nats-config" in commands
    for command in commands:
        assert re.search(rf"`{command}[ `]", text), command


def test_the_readme_names_the_two_commands_and_they_can_be_run():
    text = (HOME / "README.md").read_text()
    for command in ("deploy/local/up", "tests/run"):
        assert re.search(rf"^{command}\b", text, re.M), command
        assert (HOME / command).stat().st_mode & 0o111, command


def _readmes():
    """Found without git, which a fresh machine does not have."""
    found = (path.relative_to(HOME) for path in HOME.rglob("README.md"))
    return sorted(str(path) for path in found if not any(part in ("build", "node_modules") or part[0] == "." for part in path.parts))


def _anchors(text):
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


@pytest.mark.parametrize("name", _readmes())
def test_every_relative_link_of_a_readme_leads_somewhere(name):
    readme = HOME / name
    text = re.sub(r"^```.*?^```", "", readme.read_text(), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        aim = (readme.parent / path).resolve() if path else readme
        assert aim.is_relative_to(HOME.resolve()) and aim.exists(), f"{name}: {target}"
        if anchor:
            page = aim / "README.md" if aim.is_dir() else aim
            assert anchor in _anchors(page.read_text()), f"{name}: {target}"


def test_every_folder_of_services_and_common_has_a_readme():
    for top in ("services", "common"):
        for folder in (HOME / top).iterdir():
            assert not folder.is_dir() or (folder / "README.md").exists(), folder
            assert not folder.is_dir() or f"({folder.name}/README.md)" in (HOME / top / "README.md").read_text(), folder


def test_the_threat_model_names_tests_that_exist_and_every_finding():
    text = (HOME / "deploy/THREATS.md").read_text()
    tests = [p for p in (HOME / "tests").rglob("*_test.c")] + list((HOME / "tests/integration").rglob("test_*.py"))
    defined = set()
    for path in tests:
        defined.add(path.name)
        defined |= set(re.findall(r"\b(?:test_)?(finding_\w+)\(", path.read_text()))
    named = set(re.findall(r"`(finding_\w+|test_\w+\.py)`", text))
    assert named - defined == set()
    assert {int(re.match(r"finding_(\d+)", name).group(1)) for name in defined if re.match(r"finding_\d", name)} == set(range(1, 17))
    assert {int(re.match(r"finding_(\d+)", name).group(1)) for name in named if name.startswith("finding_")} == set(range(1, 17))
