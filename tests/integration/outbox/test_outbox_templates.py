# SPDX-License-Identifier: Apache-2.0
"""The words of mails that stand complete in an outbox row (deploy/examples/outbox/put)."""
import subprocess

from tests.harness.processes import BIN, HOME


def _put(pipeline, **more):
    environment = {**pipeline.cli_environment(), "STENTOR": str(BIN / "stentor"), **more}
    return subprocess.run([HOME / "deploy/examples/outbox/put"], env=environment, capture_output=True, text=True, timeout=60)


def test_the_rows_own_words_are_sent_as_they_stand(pipeline):
    done = _put(pipeline)
    assert done.returncode == 0, done.stderr
    assert _put(pipeline).returncode == 1  # these versions are there
    assert _put(pipeline, AGAIN="yes").returncode == 0
    words = {"subject": "Tom & \"Jerry\"", "body": "<p>Dear <b>reader</b> &amp; friends</p>"}
    html = pipeline.send(to="html@example.com", template="outbox-html", variables=words)
    text = pipeline.send(to="text@example.com", template="outbox-text", variables={**words, "body": "1 < 2 & 3"})
    for notification in (html, text):
        assert pipeline.status(notification, wait="sent")["status"] == "sent"
    mail = pipeline.mailbox.for_notification(html)[0]
    assert mail["Subject"] == "Tom & \"Jerry\""
    assert "<p>Dear <b>reader</b> &amp; friends</p>" in mail.get_body(("html",)).get_content()
    assert "Dear reader & friends" in mail.get_body(("plain",)).get_content()
    mail = pipeline.mailbox.for_notification(text)[0]
    assert mail.get_body(("plain",)).get_content().strip() == "1 < 2 & 3"
    assert mail.get_body(("html",)) is None
