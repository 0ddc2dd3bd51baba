# SPDX-License-Identifier: Apache-2.0
"""The mails that everyone sends who is compared: a subject, 4 KB of text, so many recipients."""
import json

RECIPIENTS = 1_000
PER_REQUEST = 100
TEMPLATE = "outbox-text"
SUBJECT, TEXT = "{{subject}}", "{{body}}"
BODY = "The quick brown fox jumps over the lazy dog while the pipeline hums along.\n" * 53  # about 4 KB


def mails(first, count):
    """As a caller of ingest asks for them."""
    return [{"to": f"memo{i % RECIPIENTS}@example.com", "template": TEMPLATE,
             "variables": {"subject": f"Memo {i} created", "body": BODY}} for i in range(first, first + count)]


def arrays(count, first=0):
    """Bodies of requests, as arrays."""
    return [json.dumps(mails(at, PER_REQUEST)).encode() for at in range(first, first + count, PER_REQUEST)]


def singles(count, first=0):
    """Bodies of requests, one mail each."""
    return [json.dumps(mails(at, 1)[0]).encode() for at in range(first, first + count)]
