# SPDX-License-Identifier: Apache-2.0
"""Many notifications for a screen to show, put into history and the search index by SQL: what no pipeline makes in a test's time."""
import hashlib
import hmac
import time

END = 7  # a kind of the index's entries, common/find/find_key.h
SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
OF_PREFIX = 100  # that differ in the end of their ids only
AT_ONCE = 50_000  # rows of one statement


def find_key(pipeline, kind, tenant, value):
    """As common/find/find_key makes it."""
    digest = hmac.new(bytes.fromhex(pipeline.master_keys()["hash"][-1]), f"find|{kind}|{tenant}|{value}".encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def prefix(ms):
    """How a notification's id of that time begins; R: kept in the regular class."""
    return "ntf_" + "".join(SIGNS[ms >> 5 * place & 31] for place in range(9, -1, -1)) + "R"


def plant_failed(pipeline, tenant, count, hours=1):
    """So many failed mails of the last hours, a hundred at each moment."""
    now, step = int(time.time() * 1000), hours * 3_600_000 * OF_PREFIX / count
    at, name = "to_timestamp(t.ms / 1000.0)", "t.prefix || lpad(n::text, 15, '0')"
    rows = f"unnest(%s::bigint[], %s::text[]) AS t (ms, prefix), generate_series(1, {OF_PREFIX}) AS n"
    times = [int(now - step * i) for i in range(count // OF_PREFIX)]
    for first in range(0, len(times), AT_ONCE // OF_PREFIX):
        some = times[first:first + AT_ONCE // OF_PREFIX]
        values = (some, [prefix(ms) for ms in some])
        pipeline.postgres.query(
            "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, category, priority, status, status_rank, reason_code, template,"
            f" template_version, correlation_id, queued_at, ended_at) SELECT {at}, {name}, %s, 'email', 'transactional', 'normal', 'failed', 8, 'rejected',"
            f" 'welcome', '1.0.0', 'crowded', {at}, {at} FROM {rows}", tenant, *values)
        pipeline.postgres.query(f"INSERT INTO find.entries (tenant_id, kind, key, created_at, notification_id) SELECT %s, %s, %s, {at}, {name} FROM {rows}",
                                tenant, END, find_key(pipeline, END, tenant, "failed"), *values)
