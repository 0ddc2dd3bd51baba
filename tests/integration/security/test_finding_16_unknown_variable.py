# SPDX-License-Identifier: Apache-2.0
"""A variable or a line of the file that no program of the product knows ends every program with the nearest name."""
import os
import re
import subprocess

import pytest

from tests.harness.processes import BIN, HOME, NEIGHBOURS, SERVICES

ALL = [*SERVICES, *NEIGHBOURS]


def _start(name, words=(), **environment):
    """Runs a program with nothing but these variables; it lacks what it requires, so it ends by itself."""
    program = "stentor" if name == "cli" else f"stentor-{name}"
    words = ["doctor"] if name == "cli" else list(words)
    return subprocess.run([BIN / program, *words], capture_output=True, text=True, timeout=20,
                          env={"PATH": os.environ["PATH"], "STENTOR_NATS_URL": "nats://127.0.0.1:1", **environment})


def _rows(name):
    """(option, is it secret) of the table that a program prints."""
    words = ["stentor", "man", "--markdown"] if name == "cli" else [f"stentor-{name}", "--options-markdown"]
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, timeout=20)
    return [(option, "NAME_FILE" in row) for option, row in re.findall(r"^\| `(STENTOR_\w+)` \|(.*)$", done.stdout, re.M)]


@pytest.mark.parametrize("name", ["cli", *ALL])
def test_finding_16_an_unknown_variable_ends_a_program_with_the_nearest_name(name):
    done = _start(name, STENTOR_SMTP_PASWORD="geheim")
    assert done.returncode == 2, done
    said = done.stdout + done.stderr
    assert "no program of Stentor knows 'STENTOR_SMTP_PASWORD' (HINT: is STENTOR_SMTP_PASSWORD meant?)" in said
    assert "geheim" not in said


@pytest.mark.parametrize("name", ["cli", *ALL])
def test_finding_16_a_program_passes_over_every_name_of_the_others_and_of_kubernetes(name):
    own = {option for option, _ in _rows(name)}
    others = {option + ("_FILE" if secret else "") for other in ["cli", *ALL] for option, secret in _rows(other) if option not in own}
    kubernetes = {"STENTOR_RENDERER_SERVICE_HOST": "10.0.0.1", "STENTOR_RENDERER_SERVICE_PORT": "80", "STENTOR_RENDERER_PORT": "tcp://10.0.0.1:80",
                  "STENTOR_RENDERER_PORT_80_TCP_PROTO": "tcp", "STENTOR_INGEST_SERVICE_HOST": "10.0.0.1", "STENTOR_INGEST_PORT": "tcp://10.0.0.1:80"}
    assert len(others) > 35
    done = _start(name, **{**dict.fromkeys(others, "x"), **kubernetes})
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "no program of Stentor knows" not in said and "STENTOR_INGEST_PORT" not in said, said


def test_finding_16_an_unknown_line_of_a_file_is_refused(tmp_path):
    (tmp_path / "all.conf").write_text("STENTOR_OUTBOX_MAPPING=x\nSTENTOR_SMTP_TSL=off\n")
    done = _start("ingest", ["--config", tmp_path / "all.conf"])
    assert done.returncode == 2
    assert "line 2: no program of Stentor knows 'STENTOR_SMTP_TSL' (HINT: is STENTOR_SMTP_TLS meant?)" in done.stdout + done.stderr


def test_finding_16_the_list_is_that_of_the_programs():
    """Nothing stands in the list that no program reads any more, so that a name that went is refused."""
    rows = [row for name in ["cli", *ALL] for row in _rows(name)]
    read = {option for option, _ in rows} | {f"{option}_FILE" for option, secret in rows if secret}
    text = (HOME / "common/service/known_names.c").read_text()
    own = text.index("what is no row of a table")
    assert set(re.findall(r'"(STENTOR_\w+)"', text[:own])) == read
