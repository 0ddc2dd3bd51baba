# SPDX-License-Identifier: Apache-2.0
"""Who may do what in Stentor's database and beside an application's outbox: migrations/privileges.tsv.
    /usr/bin/python3 -m tests.harness.privileges     writes the file again, from a fresh installation by the programs of STENTOR_BIN"""
import os
import subprocess
import tempfile
from pathlib import Path

from tests.harness.processes import BIN, HOME, Postgres

TABLE = HOME / "migrations" / "privileges.tsv"
QUERY = (HOME / "migrations" / "privileges.sql").read_text()


def stentor(postgres, *words, role="stentor_owner", database="stentor", home=HOME):
    """The command line without NATS."""
    words = [*words, "--skip-nats"] if words[0] == "migrate" else words
    return subprocess.run([BIN / "stentor", *map(str, words)], capture_output=True, text=True, timeout=90, env={
        "PATH": os.environ["PATH"], "STENTOR_HOME": str(home), "STENTOR_DATABASE_URL": postgres.url(role, database),
        "STENTOR_NATS_URL": "nats://127.0.0.1:1", "STENTOR_API_URL": "http://127.0.0.1:1"})


def stentor_ok(*words, **options):
    done = stentor(*words, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def table():
    """The rows of the file, without its head."""
    return [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]


def of_stentor(postgres, database="stentor"):
    return [row[0] for row in postgres.query(QUERY, database=database)]


def of_application(postgres):
    """What `stentor outbox install` leaves beside an application's table; the application's owner and relay are shop and shop_relay."""
    postgres.query("CREATE ROLE shop LOGIN; CREATE ROLE shop_relay LOGIN", database="postgres")
    postgres.query("CREATE DATABASE shop OWNER shop", database="postgres")
    postgres.query("SET ROLE shop;" + (HOME / "deploy/examples/outbox/recipes/memo.sql").read_text(), database="shop")
    stentor_ok(postgres, "outbox", "install", "--mapping", HOME / "deploy/examples/outbox/memo.json", "--role", "shop_relay", "--wake",
               role="shop", database="shop")
    return [line for line in of_stentor(postgres, "shop") if line.split("\t")[1].startswith("stentor_outbox")]


def install(postgres, database="stentor"):
    postgres.create_database(database)
    stentor_ok(postgres, "migrate", database=database)


def main():
    with tempfile.TemporaryDirectory(prefix="stentor-privileges-") as folder:
        os.chmod(folder, 0o755)
        postgres = Postgres(Path(folder) / "pg").start()
        try:
            install(postgres)
            head = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
            TABLE.write_text("\n".join(head + of_stentor(postgres) + of_application(postgres)) + "\n")
        finally:
            postgres.kill()


if __name__ == "__main__":
    main()
