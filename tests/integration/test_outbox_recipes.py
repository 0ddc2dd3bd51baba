# SPDX-License-Identifier: Apache-2.0
"""The client recipes of deploy/examples/outbox/recipes: a memo and its e-mail in one transaction, in four languages. psql and C
are always here; Go and Node are run where they are installed."""
import os
import re
import shutil
import subprocess
import uuid

import pytest

from tests.harness.processes import HOME, Postgres

RECIPES = HOME / "deploy" / "examples" / "outbox" / "recipes"
DEBIAN_GO = "/usr/share/gocode"  # where Debian's golang-github-lib-pq-dev puts its source
TITLE = "Server room's \"cold\" \\ Ümlaut"
BODY = "It is 4 °C.\nBring a coat; it's cold."


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """A Postgres of the application's own, with its two tables."""
    folder = tmp_path_factory.mktemp("application")
    folder.chmod(0o755)
    for parent in folder.parents[:2]:
        parent.chmod(0o755)  # Postgres runs as a user of its own
    server = Postgres(folder / "pg").start()
    server.query("CREATE DATABASE memo", database="postgres")
    server.query((RECIPES / "memo.sql").read_text(), database="memo")
    yield server
    server.stop()


def url(server):
    return f"postgresql://postgres@127.0.0.1:{server.port}/memo?sslmode=disable"


# ---- the four programs: each gives the words that run it, with DEPARTMENT TITLE RECIPIENT BODY ----------------------------------


def psql(_):
    def words(department, title, recipient, body):
        values = {"department": department, "title": title, "recipient": recipient, "body": body}
        given = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
        return ["psql", "DATABASE_URL", "-X", "-q", *given, "-f", str(RECIPES / "memo.psql")]
    return words


def c(folder):
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libpq"], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-o", folder / "memo", RECIPES / "memo.c", *flags], check=True)
    return lambda *values: [str(folder / "memo"), *values]


def go(folder):
    if not shutil.which("go") or not os.path.isdir(f"{DEBIAN_GO}/src/github.com/lib/pq"):
        pytest.skip("no Go with lib/pq here: apt-get install golang-go golang-github-lib-pq-dev")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GOPATH": DEBIAN_GO, "GO111MODULE": "off",
                   "GOCACHE": str(folder / "cache"), "GOFLAGS": "-p=1"}
    subprocess.run(["go", "build", "-o", folder / "memo", RECIPES / "memo.go"], env=environment, check=True, timeout=400)
    return lambda *values: [str(folder / "memo"), *values]


def node(_):
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js here: apt-get install nodejs npm")
    if not (RECIPES / "node_modules").exists():
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=RECIPES, capture_output=True, text=True, timeout=300)
        if re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|CERT_IN_CHAIN", done.stderr):
            pytest.skip("the npm registry cannot be reached from here")
        assert done.returncode == 0, done.stderr
    return lambda *values: ["node", str(RECIPES / "memo.mjs"), *values]


@pytest.fixture(scope="module", params=[psql, c, go, node], ids=lambda recipe: recipe.__name__)
def recipe(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp(request.param.__name__))


def create_memo(recipe, database_url, title=TITLE, recipient="alice@example.com"):
    words = [database_url if word == "DATABASE_URL" else word for word in recipe("IT", title, recipient, BODY)]
    return subprocess.run(words, env={"PATH": os.environ["PATH"], "DATABASE_URL": database_url}, capture_output=True, text=True, timeout=60)


# ---- what they do --------------------------------------------------------------------------------------------------------------


def test_a_memo_and_its_mail_are_there(application, recipe):
    recipient = f"{uuid.uuid4().hex}@example.com"
    done = create_memo(recipe, url(application), recipient=recipient)
    assert done.returncode == 0, done.stderr
    memo = str(uuid.UUID(done.stdout.strip()))
    rows = application.query("SELECT status, event_type, notification_type, payload, retry_count, idempotency_key, title, department_code"
                             " FROM email_outbox JOIN memos ON memos.id = memo_id WHERE memo_id = %s AND recipient_email = %s",
                             memo, recipient, database="memo")
    assert len(rows) == 1
    status, event_type, notification_type, payload, retries, key, title, department = rows[0]
    assert (status, event_type, notification_type, retries) == ("PENDING", "memo.created", "MEMO_CREATED", 0)
    assert payload == {"subject": f"Memo {TITLE} created", "body": BODY}
    assert key.startswith(f"{memo}-memo.created-") and (title, department) == (TITLE, "IT")


@pytest.mark.parametrize("bad", [{"title": "t" * 501}, {"recipient": "r" * 256}], ids=["the memo fails", "the mail fails"])
def test_neither_is_there_when_one_fails(application, recipe, bad):
    counted = "SELECT (SELECT count(*) FROM memos), (SELECT count(*) FROM email_outbox)"
    before = application.query(counted, database="memo")
    done = create_memo(recipe, url(application), **bad)
    assert done.returncode != 0 and "value too long" in done.stderr, (done.stdout, done.stderr)
    assert application.query(counted, database="memo") == before


def test_every_recipe_writes_the_same_row(application):
    """What is told once in the README is true of all four: their statements name the same columns in the same order."""
    columns = set()
    for name in ("memo.psql", "memo.c", "memo.go", "memo.mjs"):
        text = re.sub(r'"\s*\n\s*"', "", (RECIPES / name).read_text())
        found = re.search(r"INSERT INTO email_outbox \(([^)]*)\)", text)
        assert found, name
        columns.add(re.sub(r"\s+", " ", found.group(1)))
    assert len(columns) == 1
