# SPDX-License-Identifier: Apache-2.0
"""Story 5, a memo service (document E): its email_outbox as it stands, drained to the letter, with the document's own UPDATE as the way back."""
import json
import subprocess

import psycopg2
import pytest

from tests.harness.outbox import MAPPINGS, ROLE, Application, prepare
from tests.harness.processes import BIN, HOME, wait_until
from tests.harness.stories import LATER, new_address, story
from tests.integration.outbox.test_memo_exact import states

RESET = "UPDATE email_outbox SET status = 'PENDING', retry_count = 0, error_message = NULL, meta_updated_at = now() WHERE id = %s"


def mapping_of(pipeline):
    """memo-exact.json with a second in the place of five, as an operator changes it."""
    mapping = json.loads((MAPPINGS / "memo-exact.json").read_text())
    mapping["retries"]["waits"] = ["1s"]
    path = pipeline.folder / "memo.json"
    path.write_text(json.dumps(mapping))
    return path


def outbox(app, word):
    environment = {"PATH": "/usr/bin:/bin", "STENTOR_HOME": str(HOME), "STENTOR_DATABASE_URL": app.postgres.url(ROLE, app.database)}
    return subprocess.run([BIN / "stentor", "outbox", word, "--mapping", app.mapping], env=environment, capture_output=True, text=True, timeout=60)


def ends(app, row_id, status):
    wait_until(lambda: app.mail_row(row_id)["status"] in ("SENT", "FAILED"), 30, "the row's end")
    row = app.mail_row(row_id)
    assert row["status"] == status, dict(row)
    return row


def a_memo_is_mailed(user, app):
    """E01, E07, E16, E23."""
    to = new_address("reader")
    row = ends(app, app.memo(to, f"memo-1-memo.created-{to}", "Memo Budget Created", "Please read."), "SENT")
    assert row["sent_at"] is not None and (row["error_message"], row["retry_count"]) == (None, 0)
    assert user.mail(to)["Subject"] == "Memo Budget Created"
    with pytest.raises(psycopg2.errors.UniqueViolation):
        app.memo(to, f"memo-1-memo.created-{to}")
    app.sql(RESET, row["id"])  # E31: sends again
    wait_until(lambda: len(user.mails(to)) == 2, 30, "the second mail")


def it_is_pending_between_retries_and_failed_at_the_fifth(user, app):
    """E09, E10, E29, E30, finding 11: what an operator sees of a mail that is put off, and mends."""
    user.pipeline.mailbox.answer(LATER, times=5)
    wrong, right = new_address("wrong"), new_address("right")
    row_id = app.memo(wrong, "memo-2", "Memo Vote Created", "Please vote.")
    seen = states(app, row_id, ("FAILED", "SENT"))
    assert [state for state in seen if state[1] > 0] == [*(("PENDING", count) for count in range(1, 5)), ("FAILED", 5)]
    assert "later please" in app.mail_row(row_id)["error_message"]
    shown = outbox(app, "show")
    assert shown.returncode == 0 and row_id in shown.stdout, shown.stdout + shown.stderr
    app.sql("UPDATE email_outbox SET recipient_email = %s WHERE id = %s", right, row_id)
    app.sql(RESET, row_id)
    ends(app, row_id, "SENT")
    assert user.mail(right)["Subject"] == "Memo Vote Created" and user.mails(wrong) == []


def a_payload_without_a_body_says_so(app):
    """E44, finding 11."""
    row = ends(app, app.memo(new_address("bodyless"), "memo-3", payload={"subject": "x"}), "FAILED")
    assert row["error_message"] == "fields.template (column 'payload') has no member 'body'"


def test_a_memo_service():
    with story("digest-flusher", STENTOR_RETRY_LADDER="3600") as user:
        prepare(user.pipeline)
        app = Application(user.pipeline, "memo", mapping=mapping_of(user.pipeline))
        checked = outbox(app, "check")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        relay = app.relay(STENTOR_NATS_USER="memo-app", STENTOR_OUTBOX_TENANTS="memo").start()  # the application's own user
        user.pipeline.services[relay.name] = relay
        a_memo_is_mailed(user, app)
        it_is_pending_between_retries_and_failed_at_the_fifth(user, app)
        a_payload_without_a_body_says_so(app)
        app.memos(200)
        wait_until(lambda: app.counts() == {"SENT": 202, "FAILED": 1}, 60, "all of many")
