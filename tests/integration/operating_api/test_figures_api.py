# SPDX-License-Identifier: Apache-2.0
"""Usage, limits, deliverability and how fast notifications are served: counted from history whenever they are asked for."""
import datetime
import urllib.parse
import uuid

import pytest

from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.operating_api.test_dead_letters_api import ask, slug


def get(pipeline, path, tenant=TENANT, key=None, **query):
    status, answer = ask(pipeline, "GET", path + "?" + urllib.parse.urlencode(query), tenant=tenant, key=key)
    assert status == 200, answer
    return answer


@pytest.fixture
def planted(pipeline):
    """A tenant of its own: plant(n, ...) puts so many notifications of noon two days ago into history, each with an attempt."""
    tenant = f"fig-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", tenant)
    noon = datetime.datetime.now(datetime.timezone.utc).replace(hour=12, minute=0, second=0, microsecond=0) - datetime.timedelta(days=2)

    def plant(count, status="sent", channel="email", category="marketing", provider=None, seconds=1.0, outcome="accepted", vendor="smtp", scheduled=False,
              segments=None):
        prefix = f"ntf_{uuid.uuid4().hex[:16].upper()}"
        ended = status in ("failed", "suppressed", "bounced", "complained")
        gone = status in ("sent", "delivered", "bounced", "complained")
        pipeline.postgres.query(
            "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, category, status, status_rank, queued_at, rendered_at, sent_at, ended_at,"
            " scheduled_for, from_domain, provider) SELECT %s + make_interval(secs => i * 0.001), %s || i, %s, %s, %s, %s, 5,"
            " %s + make_interval(secs => i * 0.001 + 0.01), %s + make_interval(secs => i * 0.001 + 0.02),"
            " CASE WHEN %s THEN %s + make_interval(secs => i * 0.001 + %s) END, CASE WHEN %s THEN %s + make_interval(secs => i * 0.001 + %s + 60) END,"
            " CASE WHEN %s THEN %s END, %s, %s FROM generate_series(1, %s) i",
            noon, prefix, tenant, channel, category, status, noon, noon, gone, noon, seconds, ended, noon, seconds, scheduled, noon,
            "acme.test" if provider else None, provider, count)
        if gone:
            pipeline.postgres.query(
                "INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, outcome, started_at, segments)"
                " SELECT created_at, id, 1, 'dat_' || id, tenant_id, channel, %s, %s, created_at, %s FROM archiver.notifications WHERE tenant_id = %s"
                " AND id LIKE %s", vendor, outcome, segments, tenant, prefix + "%")
    plant.tenant, plant.day = tenant, noon.strftime("%Y-%m-%d")
    return plant


# ---- usage ----


def test_usage_counts_what_became_of_notifications_and_what_they_cost(pipeline, planted):
    planted(5, "delivered", category="transactional", outcome="delivered")
    planted(2, "failed")
    planted(3, "sent", channel="sms", vendor="twilio", segments=2)
    planted(1, "suppressed", channel="sms")
    pipeline.cli("costs", "set", "sms", "twilio", "--price", "0.0075", "--currency", "EUR", "--unit", "segment", "--tenant", planted.tenant,
                 "--from", "2020-01-01T00:00:00Z")
    by_channel = {row["channel"]: row for row in get(pipeline, "/v1/usage", planted.tenant, by="channel")["data"]}
    assert set(by_channel) == {"email", "sms"}
    email, sms = by_channel["email"], by_channel["sms"]
    assert (email["notifications"], email["sent"], email["delivered"], email["failed"], email["messages"], email["costs"], email["unpriced"]) == (7, 5, 5, 2, 5, [], 5)
    assert (sms["notifications"], sms["sent"], sms["suppressed"], sms["messages"], sms["segments"], sms["unpriced"]) == (4, 3, 1, 3, 6, 0)
    assert sms["costs"] == [{"currency": "EUR", "cost": "0.045", "estimated": "0.045"}]
    by_category = {row["category"]: row for row in get(pipeline, "/v1/usage", planted.tenant, by="category")["data"]}
    assert by_category["marketing"]["notifications"] == 6 and by_category["marketing"]["costs"][0]["cost"] == "0.045"
    assert by_category["transactional"]["messages"] == 5
    day, = get(pipeline, "/v1/usage", planted.tenant)["data"]
    assert (day["day"], day["notifications"], day["messages"]) == (planted.day, 11, 8)
    assert get(pipeline, "/v1/usage", planted.tenant, **{"from": "2020-01-01T00:00:00Z", "to": "2020-02-01T00:00:00Z"})["data"] == []


def test_what_is_sent_now_is_in_the_usage_of_its_tenant_alone(pipeline):
    def counted(tenant):
        return sum(row["sent"] for row in get(pipeline, "/v1/usage", tenant)["data"])
    before = counted(TENANT)
    notification = pipeline.send()
    pipeline.status(notification, wait="sent")
    assert counted(TENANT) == before + 1
    other = f"fig-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", other)
    assert get(pipeline, "/v1/usage", other)["data"] == []


def test_limits_show_what_is_used_now(pipeline, tmp_path):
    tenant = f"lim-{uuid.uuid4().hex[:8]}"
    pipeline.cli("tenant", "put", tenant)
    assert get(pipeline, "/v1/limits", tenant) == {"tenant": None, "channels": {}, "recipient": None, "recipient_channels": {}, "over_limit": "defer"}
    limits = {"limits": {"per_day": 5, "channels": {"sms": {"per_day": 4}}}, "recipient_limits": {"per_day": 2}, "over_limit": "suppress"}
    assert ask(pipeline, "PATCH", "/v1/tenant", limits, tenant)[0] == 200
    words = tmp_path / "hello.txt"
    words.write_text("hello")
    pipeline.cli("template", "put", "hello", "--channel", "sms", "--text", words, tenant=tenant)
    key = ask(pipeline, "POST", "/v1/api-keys", {"scopes": ["send"]}, tenant)[1]["key"]
    body = [{"to": f"+4366012345{i}0", "template": "hello", "channel": "sms"} for i in range(3)]
    wait_until(lambda: ask(pipeline, "POST", "/v1/notifications", body, key=key)[0] == 202, 20, "the key and the template being known")
    shown = get(pipeline, "/v1/limits", tenant)
    assert shown["tenant"] == {"per_day": {"limit": 5, "used": 3, "left": 2}}
    assert shown["channels"] == {"sms": {"per_day": {"limit": 4, "used": 3, "left": 1}}}
    assert shown["recipient"] == {"per_minute": 0, "per_day": 2} and shown["over_limit"] == "suppress"


# ---- deliverability ----


def test_deliverability_is_held_against_what_mailbox_providers_ask(pipeline, planted):
    planted(995, "delivered", provider="gmail.com", outcome="delivered")
    planted(5, "complained", provider="gmail.com", outcome="complaint")
    planted(97, "sent", provider="other")
    planted(3, "bounced", provider="other", outcome="bounce")
    planted(60, "sent", provider="yahoo.com", vendor="postmark")
    planted(2, "bounced", provider="icloud.com", outcome="bounce")
    answer = get(pipeline, "/v1/ops/deliverability", planted.tenant, **{"from": f"{planted.day}T00:00:00Z"})
    rows = {row["provider"]: row for row in answer["data"]}
    assert {name: row["level"] for name, row in rows.items()} == {"gmail.com": "over", "other": "warn", "yahoo.com": "good", "icloud.com": "few"}
    assert (rows["gmail.com"]["complaint_rate"], rows["other"]["bounce_rate"], rows["gmail.com"]["from_domain"]) == (0.005, 0.03, "acme.test")
    assert answer["limits"]["complaint_rate_over"] == 0.003 and answer["limits"]["complaint_rate_warn"] == 0.001
    by_vendor = {row["vendor"]: row for row in get(pipeline, "/v1/ops/deliverability", planted.tenant, by="vendor", **{"from": f"{planted.day}T00:00:00Z"})["data"]}
    assert (by_vendor["smtp"]["sent"], by_vendor["smtp"]["complained"], by_vendor["smtp"]["bounced"], by_vendor["postmark"]["sent"]) == (1102, 5, 5, 60)
    everyones = get(pipeline, "/v1/ops/deliverability", "platform", **{"from": f"{planted.day}T00:00:00Z"})
    assert next(row for row in everyones["data"] if row["provider"] == "gmail.com" and row["from_domain"] == "acme.test")["complained"] >= 5


# ---- how fast ----


def test_the_error_budget_is_what_was_not_served_in_time(pipeline, planted):
    planted(1995, "sent", seconds=2)
    planted(5, "sent", seconds=90)
    planted(50, "sent", seconds=9000, scheduled=True)
    slo = get(pipeline, "/v1/ops/slo", planted.tenant, **{"from": f"{planted.day}T00:00:00Z"})
    assert (slo["notifications"], slo["served"], slo["target_s"], slo["whole"]) == (2000, 1995, 30, True)
    assert slo["budget"]["missed"] == 5 and slo["budget"]["allowed"] == pytest.approx(2) and slo["budget"]["left"] == pytest.approx(-1.5)
    assert slo["accepted_to_sent"] == {"p50_ms": 2000, "p95_ms": 2000, "p99_ms": 2000} and slo["accepted_to_queued"]["p99_ms"] == 10
    assert slo["rendered_to_sent"]["p50_ms"] == 1980
    slow = get(pipeline, "/v1/ops/slo", planted.tenant, target_s=120, **{"from": f"{planted.day}T00:00:00Z"})
    assert slow["served"] == 2000 and slow["budget"]["left"] == pytest.approx(1)
    nothing = get(pipeline, "/v1/ops/slo", planted.tenant, **{"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"})
    assert nothing["notifications"] == 0 and nothing["budget"]["left"] is None and nothing["accepted_to_sent"]["p99_ms"] is None


# ---- bad input, scopes ----


@pytest.mark.parametrize("path, field", [
    ("/v1/usage?by=recipient", "by"), ("/v1/usage?from=yesterday", "from"), ("/v1/usage?to=1", "to"),
    ("/v1/usage?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"), ("/v1/usage?from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "from"),
    ("/v1/ops/deliverability?by=recipient", "by"), ("/v1/ops/slo?target_s=0", "target_s"), ("/v1/ops/slo?target_s=1d", "target_s"),
])
def test_what_does_not_fit_names_the_field(pipeline, path, field):
    status, answer = ask(pipeline, "GET", path)
    assert (status, answer["field"]) == (422, field), answer


def test_ops_need_a_scope_of_their_own(pipeline):
    for path in ("/v1/ops/slo", "/v1/ops/deliverability"):
        refused = ask(pipeline, "GET", path, key=pipeline.key)
        assert slug(refused) == (403, "missing-scope") and "ops:read" in refused[1]["detail"]
    assert slug(ask(pipeline, "GET", "/v1/usage?tenant=other", key=pipeline.key)) == (400, "invalid-parameter")
    assert ask(pipeline, "GET", "/v1/limits", key=pipeline.key)[0] == 200
