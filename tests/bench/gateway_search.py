# SPDX-License-Identifier: Apache-2.0
"""An index of many entries, over a hundred days, as gateway's projector writes it: each recipient has a hundred. The recipients that are
asked for have rows of history, too."""
import hashlib
import hmac
import io
import random
import time

from tests.harness.pipeline import TENANT

DAYS = 100
EACH = 100      # entries of a recipient
ASKED = 1000    # recipients
CHUNK = 200_000
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def base32(number, length):
    return "".join(ALPHABET[number >> 5 * place & 31] for place in range(length - 1, -1, -1))


def ulid(prefix, at_ms, number):
    return prefix + base32(at_ms, 10) + base32(number, 16)


class SearchIndex:
    def __init__(self, pipeline, entries):
        self.pipeline, self.entries = pipeline, entries
        self.recipients = max(entries // EACH, 1)
        self.hash_key = bytes.fromhex(pipeline.master_keys()["hash"][-1])
        self.asked = [self.recipient(number) for number in random.sample(range(self.recipients), min(ASKED, self.recipients))]

    def recipient(self, number):
        return ulid("rcp_", 1_700_000_000_000, number)

    def key(self, recipient):
        digest = hmac.new(self.hash_key, f"find|1|{TENANT}|{recipient}".encode(), hashlib.sha256).digest()
        return int.from_bytes(digest[:8], "big", signed=True)

    def fill(self):
        postgres = self.pipeline.postgres
        postgres.query(f"SELECT find.ensure_days(now() - interval '{DAYS + 1} days', now() + interval '1 day')")
        names = [self.recipient(number) for number in range(self.recipients)]
        keys = [self.key(name) for name in names]
        asked, now_ms = set(self.asked), time.time_ns() // 1_000_000
        connection = postgres.connect("postgres", "stentor")
        try:
            for first in range(0, self.entries, CHUNK):
                self.copy(connection, range(first, min(first + CHUNK, self.entries)), names, keys, asked, now_ms)
            connection.cursor().execute("ANALYZE find.entries; ANALYZE archiver.notifications; CHECKPOINT")
        finally:
            connection.close()
        return self

    def copy(self, connection, numbers, names, keys, asked, now_ms):
        entries, rows = io.StringIO(), io.StringIO()
        span_ms = DAYS * 86_400_000
        for number in numbers:
            at = number * 7919 % self.recipients
            created_ms = now_ms - random.randrange(span_ms)
            name, created = ulid("ntf_", created_ms, number), f"{created_ms / 1000:.3f}"
            entries.write(f"{TENANT}\t1\t{keys[at]}\t{created}\t{name}\n")
            if names[at] in asked:
                rows.write(f"{created}\t{name}\t{names[at]}\n")
        cursor = connection.cursor()
        cursor.execute("CREATE TEMP TABLE IF NOT EXISTS e (tenant text, kind int2, key int8, at float8, id text);"
                       "CREATE TEMP TABLE IF NOT EXISTS n (at float8, id text, recipient text); TRUNCATE e, n")
        entries.seek(0)
        rows.seek(0)
        cursor.copy_expert("COPY e FROM STDIN", entries)
        cursor.copy_expert("COPY n FROM STDIN", rows)
        cursor.execute(
            "INSERT INTO find.entries SELECT tenant, kind, key, to_timestamp(at), id FROM e ORDER BY at;"
            "SELECT stentor.ensure_partitions('archiver.notifications', (SELECT to_timestamp(min(at)) FROM n), now()) WHERE EXISTS (SELECT FROM n);"
            "INSERT INTO archiver.notifications (created_at, retention_class, id, tenant_id, channel, category, priority, status, status_rank, template,"
            " recipient_id, queued_at, rendered_at, sent_at) SELECT to_timestamp(at), stentor.retention_class(id), id, %s, 'email', 'transactional',"
            " 'normal', 'sent', 5, 'welcome', recipient, to_timestamp(at), to_timestamp(at), to_timestamp(at) FROM n", (TENANT,))
        connection.commit()
