# SPDX-License-Identifier: Apache-2.0
"""The documents are true: option tables are what the binaries print, the root README's commands run, links lead somewhere."""
import re
import shutil
import signal
import subprocess

import pytest

from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, HOME, SERVICES, wait_until

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
    page = "OPTIONS.md" if (HOME / "services" / name / "OPTIONS.md").exists() else "README.md"
    assert _written(f"services/{name}/{page}", "own") == own
    known = _written("services/README.md", "common")
    assert [row for row in known if row in common] == common


def test_the_webhooks_page_has_the_options_of_that_composition():
    own, _ = _split(_printed("stentor-webhook", "--options-markdown"))
    assert _written("services/dispatcher/WEBHOOKS.md", "own") == own


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
    assert _written("services/cli/README.md", "own") == _printed("stentor", "man", "--markdown")


def test_the_reference_of_the_commands_is_what_the_program_prints():
    printed = subprocess.run([BIN / "stentor", "man", "--markdown"], capture_output=True, text=True, timeout=20).stdout
    assert "### template put" in printed and "### nats-config" in printed
    assert (HOME / "services/cli/COMMANDS.md").read_text() == printed, "stentor man --markdown > services/cli/COMMANDS.md"


def test_the_readme_names_the_two_commands_and_they_can_be_run():
    text = (HOME / "README.md").read_text()
    for command in ("deploy/local/up", "tests/run"):
        assert re.search(rf"^{command}\b", text, re.M), command
        assert (HOME / command).stat().st_mode & 0o111, command


# ---- the root README's commands --------------------------------------------------------------------------------------------

# Not run here: these install packages. Debian has no `nats`.
NOT_RUN = ("deploy/local/up", "tests/run", "nats ")


def _commands():
    """The lines of the root README's code blocks that are commands, without their comments; a line that ends in a backslash goes on."""
    blocks = re.findall(r"^```\n(.*?)^```$", (HOME / "README.md").read_text(), re.S | re.M)
    lines = re.sub(r"\\\n *", "", "\n".join(blocks)).splitlines()
    return [re.sub(r" +# .*", "", line) for line in lines if re.match(r"(stentor|curl|nats|deploy/|tests/)", line)]


@pytest.fixture(name="installed", scope="module")
def _installed():
    pipeline = Pipeline().start()
    yield pipeline
    pipeline.stop()


def _start(pipeline, command, folder, stdout=None):
    """The command as it stands there, but for address, id and key."""
    environment = pipeline.cli_environment(admin="admin.conf" in command, key=pipeline.key)
    environment |= {"PATH": f"{BIN}:{environment['PATH']}", "KEY": pipeline.key}
    command = command.replace("127.0.0.1:8080", f"127.0.0.1:{pipeline.api_port}").replace("--config /var/lib/stentor/etc/admin.conf ", "")
    output = stdout.open("w") if stdout else subprocess.PIPE
    return subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=environment, text=True, stdout=output, stderr=subprocess.STDOUT)


def _run(pipeline, command, folder):
    with _start(pipeline, command, folder) as process:
        output = process.communicate(timeout=90)[0]
    assert process.returncode == 0, f"{command}: {process.returncode}\n{output}"
    return output


def _watch(pipeline, command, folder):
    """A command that goes on until it is ended: it shows a notification that is sent meanwhile."""
    with _start(pipeline, command, folder, stdout=folder / "tail") as process:
        wait_until(lambda: (pipeline.send(to="tail@example.com"), "sent" in (folder / "tail").read_text())[1], 30, "a status")
        process.send_signal(signal.SIGINT)
        process.wait(20)


def test_every_command_of_the_root_readme_runs(installed, tmp_path):
    shutil.copy(HOME / "deploy/local/demo/welcome.html", tmp_path / "welcome.hbs")
    commands = [command for command in _commands() if not command.startswith(NOT_RUN)]
    assert len(commands) >= 9 and commands[0].startswith("stentor send"), commands
    sent = _run(installed, commands[0], tmp_path)
    notification = re.search(r"ntf_\w+", sent)[0]
    for command in commands[1:]:
        if command == "stentor tail":
            _watch(installed, command, tmp_path)
            continue
        output = _run(installed, command.replace("ntf_01K...", notification), tmp_path)
        if command.startswith("curl"):
            assert re.search(r'"id": ?"ntf_', output), output


# ---- every document --------------------------------------------------------------------------------------------------------


def _documents():
    """Found without git, which a fresh machine does not have."""
    found = (path.relative_to(HOME) for path in HOME.rglob("*.md"))
    return sorted(str(path) for path in found if not {"build", "node_modules", ".git", ".pytest_cache"} & set(path.parts))


def _anchors(text):
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


@pytest.mark.parametrize("name", _documents())
def test_every_relative_link_of_a_document_leads_somewhere(name):
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


# Settings of the build, of compose and of the scripts.
OTHER_SETTINGS = ("CMakeLists.txt", "CMakePresets.json", "deploy/docker/compose.yaml", "deploy/docker/serve", "deploy/nginx/configure", "deploy/deb/package.cmake",
                  "deploy/local/lib.sh", "common/base/crash.h", "common/base/crash.c")


def test_every_setting_that_a_document_names_exists():
    known = set(re.findall(r'"(STENTOR_\w+)"', (HOME / "common/service/known_names.c").read_text()))
    for path in OTHER_SETTINGS:
        known |= set(re.findall(r"STENTOR_\w+", (HOME / path).read_text()))
    unknown = {}
    for name in _documents():
        if "DECISIONS" in name or "CHANGELOG" in name:
            continue  # what was
        named = set(re.findall(r"\b(STENTOR_[A-Z0-9_]*[A-Z0-9])\b(?!\*)(?!_)", (HOME / name).read_text()))
        missing = {one for one in named if one not in known and one.removesuffix("_FILE") not in known and not one.startswith("STENTOR_NGINX_")}
        if missing:
            unknown[name] = missing
    assert unknown == {}, "settings that no program has"


def test_the_sizes_of_the_streams_are_the_programs():
    """deploy/SIZING.md: name, age in days and GiB of each stream, as in common/bus/topology/topology.c."""
    source = (HOME / "common/bus/topology/topology.c").read_text()
    days = {"0": "for ever", "DAY_S": "1 day"}
    made = {name: (days.get(age) or age.split()[0] + " days", float(eval(size.replace("GIB", "1"))))  # noqa: S307 (our own table)
            for name, age, size in re.findall(r'^    \{"([A-Z_]+)", +"[^"]*", +([^,"]+), ([^,]+), \d', source, re.M)}
    page = (HOME / "deploy/SIZING.md").read_text()
    written = {}
    for names, age, sizes in re.findall(r"^\| (`[A-Z_`, ]+`) \| ([^|]+) \| ([0-9., ]+) \|$", page, re.M):
        written |= {name: (age, float(size)) for name, size in zip(re.findall(r"[A-Z_]+", names), sizes.split(", "), strict=True)}
    assert written == made and len(made) > 10
    total = sum(size for _, size in made.values())
    assert f"{int(total)} GiB as shipped" in page
    assert f"mb / 2 / {int(total * 1024)} " in (HOME / "deploy/local/up").read_text(), "half of the free disk, in percent of all streams"


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
