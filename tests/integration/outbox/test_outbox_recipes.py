# SPDX-License-Identifier: Apache-2.0
"""The client recipes of deploy/examples/outbox/recipes: a memo and its e-mail in one transaction, in four languages. psql and C
are always here; Go and Node are run where they are installed."""
import os
import re
import shutil
import subprocess
import uuid

import pytest

from tests.harness import outbox
from tests.harness.processes import HOME, wait_until

RECIPES = HOME / "deploy" / "examples" / "outbox" / "recipes"
DEBIAN_GO = "/usr/share/gocode"  # where Debian's golang-github-lib-pq-dev puts its source
ALONE = "recipes_alone"
TITLE = "Server room's \"cold\" \\ Ümlaut"
BODY = "It is 4 °C.\nBring a coat; it's cold."


@pytest.fixture(scope="module")
def application(pipeline):
    """A database of the application's own, with its two tables; no relay looks at it."""
    pipeline.postgres.query(f"CREATE DATABASE {ALONE}", database="postgres")
    pipeline.postgres.query((RECIPES / "memo.sql").read_text(), database=ALONE)
    return pipeline.postgres


@pytest.fixture(scope="module")
def relayed(pipeline):
    """The same tables in a database that a relay drains."""
    text = pipeline.folder / "outbox.txt"
    text.write_text("{{body}}")
    pipeline.cli("tenant", "put", "memo", "--name", "Memo", "--sender", "memo@memo.test", "--sender-name", "Memo")
    pipeline.cli("template", "put", "outbox-text", "--subject", "{{subject}}", "--text", text, tenant="memo")
    application = outbox.Application(pipeline, "memo", database="app_recipes")
    relay = application.relay("-recipes").start()
    yield application
    assert relay.stop() == 0, relay.tail()


def url(server, database):
    return f"postgresql://postgres@127.0.0.1:{server.port}/{database}?sslmode=disable"


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
    done = create_memo(recipe, url(application, ALONE), recipient=recipient)
    assert done.returncode == 0, done.stderr
    memo = str(uuid.UUID(done.stdout.strip()))
    rows = application.query("SELECT status, event_type, notification_type, payload, retry_count, idempotency_key, title, department_code"
                             " FROM email_outbox JOIN memos ON memos.id = memo_id WHERE memo_id = %s AND recipient_email = %s",
                             memo, recipient, database=ALONE)
    assert len(rows) == 1
    status, event_type, notification_type, payload, retries, key, title, department = rows[0]
    assert (status, event_type, notification_type, retries) == ("PENDING", "memo.created", "MEMO_CREATED", 0)
    assert payload == {"subject": f"Memo {TITLE} created", "body": BODY}
    assert key.startswith(f"{memo}-memo.created-") and (title, department) == (TITLE, "IT")


@pytest.mark.parametrize("bad", [{"title": "t" * 501}, {"recipient": "r" * 256}], ids=["the memo fails", "the mail fails"])
def test_neither_is_there_when_one_fails(application, recipe, bad):
    counted = "SELECT (SELECT count(*) FROM memos), (SELECT count(*) FROM email_outbox)"
    before = application.query(counted, database=ALONE)
    done = create_memo(recipe, url(application, ALONE), **bad)
    assert done.returncode != 0 and "value too long" in done.stderr, (done.stdout, done.stderr)
    assert application.query(counted, database=ALONE) == before


def test_the_mail_comes_and_the_row_says_so(relayed, pipeline, recipe):
    recipient = f"{uuid.uuid4().hex}@example.com"
    done = create_memo(recipe, url(pipeline.postgres, relayed.database), recipient=recipient)
    assert done.returncode == 0, done.stderr
    status = "SELECT status, sent_at IS NOT NULL, error_message FROM email_outbox WHERE recipient_email = %s"
    wait_until(lambda: relayed.sql(status, recipient) == [("SENT", True, None)], 30, f"the row being SENT: {relayed.sql(status, recipient)}")
    mails = [mail for mail in pipeline.mailbox.mails() if recipient in str(mail["To"])]
    assert len(mails) == 1
    assert mails[0]["Subject"] == f"Memo {TITLE} created" and BODY in mails[0].get_content().replace("\r\n", "\n")


def test_the_tables_are_those_that_the_relay_is_tested_with():
    def statements(text):
        return [" ".join(part.split()) for part in re.sub(r"--.*", "", text).split(";")]
    assert statements((RECIPES / "memo.sql").read_text()) == statements(outbox.TABLES["memo"])


def test_every_recipe_writes_the_same_row(application):
    """What the README says once is true of all four: their statements name the same columns in the same order."""
    columns = set()
    for name in ("memo.psql", "memo.c", "memo.go", "memo.mjs"):
        text = re.sub(r'"\s*\n\s*"', "", (RECIPES / name).read_text())
        found = re.search(r"INSERT INTO email_outbox \(([^)]*)\)", text)
        assert found, name
        columns.add(re.sub(r"\s+", " ", found.group(1)))
    assert len(columns) == 1
