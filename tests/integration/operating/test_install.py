# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` puts somewhere works there without the source tree and the build."""
import json
import os
import shutil
import subprocess

import pytest

from tests.harness import clusters, pipeline, processes
from tests.harness.processes import BIN, HOME

BUILD = BIN.parent
SHARED = ["migrations", "deploy/examples", "deploy/nginx", "deploy/prometheus", "deploy/grafana", "deploy/local/demo", "deploy/local/platform"]


def _install(*words, **environment):
    done = subprocess.run(["cmake", "--install", BUILD, *words], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="tree", scope="module")
def _tree(tmp_path_factory):
    """Installed below DESTDIR, and then moved: no path of the build or of the installation leads to it."""
    staged = tmp_path_factory.mktemp("staged")
    _install("--prefix", "/opt/stentor", DESTDIR=str(staged))
    assert os.listdir(staged) == ["opt"]
    tree = staged.parent / "moved"
    shutil.move(staged / "opt/stentor", tree)
    yield tree
    shutil.rmtree(tree)


def test_every_program_and_what_belongs_to_it_is_there(tree):
    assert set(os.listdir(tree / "bin")) == {name for name in os.listdir(BIN) if name.startswith("stentor")}
    for path in ("share/man/man1/stentor.1", "share/bash-completion/completions/stentor", "share/zsh/vendor-completions/_stentor",
                 "share/fish/vendor_completions.d/stentor.fish"):
        assert "stentor" in (tree / path).read_text()
    for folder in SHARED:
        ours = {str(path.relative_to(HOME)): path for path in (HOME / folder).rglob("*") if path.is_file() and "node_modules" not in path.parts}
        assert ours, folder
        for name, path in ours.items():
            installed = tree / "share/stentor" / name
            assert installed.read_bytes() == path.read_bytes() and os.access(installed, os.X_OK) == os.access(path, os.X_OK), name


def test_a_mail_is_sent_from_an_installed_tree(tree, monkeypatch):
    """Nothing says where the migrations are."""
    monkeypatch.delenv(clusters.FOLDER, raising=False)  # no database that the build's program has made
    for module in (processes, pipeline):
        monkeypatch.setattr(module, "BIN", tree / "bin")
    monkeypatch.setattr(processes, "HOME", tree / "share/stentor")
    monkeypatch.setattr(pipeline, "HOME", "")
    monkeypatch.chdir(tree)
    running = pipeline.Pipeline()
    try:
        running.start()
        files = len(list((HOME / "migrations").glob("*/*.sql"))) - len(list((HOME / "migrations/stentor_outbox").glob("*.sql")))
        steps = [json.loads(line) for line in running.cli("migrate", "--skip-nats", "--json", admin=True).splitlines()]
        assert {"what": "database", "result": f"0 applied, {files} were there"} in steps
        running.status(running.send(to="installed@example.com"), wait="sent")
        assert running.mailbox.mails("installed@example.com")
    finally:
        running.stop()


def test_a_program_elsewhere_says_that_it_lacks_the_migrations(tree, tmp_path):
    program = shutil.copy(tree / "bin/stentor", tmp_path)
    done = subprocess.run([program, "down"], env={}, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "cannot run './deploy/local/down'" in done.stderr and "STENTOR_HOME" in done.stderr
    done = subprocess.run([tree / "bin/stentor", "down"], env={}, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert f"cannot run '{tree}/bin/../share/stentor/deploy/local/down'" in done.stderr
