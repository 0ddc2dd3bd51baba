# SPDX-License-Identifier: Apache-2.0
"""The console's health in a real browser: the audit as a job, the service level, deliverability against its limits, machines, usage, limits, keys."""
import datetime
import time
import uuid

import pytest

from tests.harness.browser import need
from tests.harness.browser.console import HOSTILE, REFUSED, Console
from tests.harness.length import amount
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.operating_api.test_dead_letters_api import ask
from tests.integration.operating_api.test_figures_api import planted  # noqa: F401 (a fixture)

MANY = amount(4_000, 100_000)
AUDIT = "section[aria-labelledby=audit]"
SLO = "section[aria-labelledby=slo]"


@pytest.fixture(scope="module")
def console(pipeline):
    need()
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "olga").tenant(TENANT)


def health(console, tenant, query="?days=7"):
    console.go("#/live", "Live")
    console.tenant(tenant)
    console.go(f"#/health{query}", "Health")


def words(console, selector):
    return " ".join(" ".join(console.texts(selector)).split())


# ---- figures --------------------------------------------------------------------------------------------------------


def test_of_a_tenant_that_has_sent_nothing_each_part_says_so(console, pipeline):
    empty = f"well-{uuid.uuid4().hex[:6]}"
    pipeline.cli("tenant", "put", empty, tenant=empty)
    health(console, empty)
    console.find(AUDIT, "No audit was made")
    console.find(SLO, "no budget was used")
    console.find(".empty", "Nothing was sent in this time.")
    console.find(".empty", "Nothing was accepted in this time.")
    console.find("section[aria-labelledby=limits]", "The tenant has no limit.")
    console.find(".empty", "No key ends within 30 days.")
    console.sound()


def test_the_service_level_and_deliverability_are_what_the_api_counts(console, pipeline, planted):  # noqa: F811
    planted(995, "delivered", provider="gmail.com", outcome="delivered")
    planted(5, "complained", provider="gmail.com", outcome="complaint", seconds=90)
    planted(97, "sent", provider=HOSTILE)
    planted(3, "bounced", provider=HOSTILE, outcome="bounce", vendor=HOSTILE)
    health(console, planted.tenant)
    console.find(SLO, "overdrawn")
    slo = ask(pipeline, "GET", "/v1/ops/slo?from=2026-01-01T00:00:00Z".replace("2026-01-01", planted.day), tenant=planted.tenant)[1]
    assert slo["budget"]["missed"] == 5 and slo["budget"]["left"] < 0
    assert "Of 1.1 that may be missed 5 were: the error budget is overdrawn by" in words(console, SLO) and "99.55% served within 30 s" in words(console, SLO)
    assert [text.split()[-2:] for text in console.texts("[aria-label='How long it takes'] tbody tr")][-1] == ["1", "s"]
    rows = {row.split("\n")[0]: row for row in console.texts("[aria-label=Rates] tbody tr")}
    text = "\n".join(console.texts("[aria-label=Rates] tbody tr"))
    assert "gmail.com" in text and "over" in text and "0.5%" in text and "warn" in text and "3%" in text and "<img src=x" in text, rows
    assert "below 0.1% is good, 0.3% is over" in words(console, "section[aria-labelledby=deliverability] .quiet")
    console.sound()
    console.button("By vendor").click()
    console.find("[aria-label=Rates] tbody tr", "smtp")
    assert "by=vendor" in console.run("return location.hash") and "<img src=x" in "\n".join(console.texts("[aria-label=Rates] tbody tr"))
    console.driver.set_window_size(700, 900)
    assert console.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "wider than a small window"
    console.driver.set_window_size(1300, 900)
    console.fill("Figures of the last", "1")
    console.find(SLO, "no budget was used")  # they are of two days ago


# ---- the audit ------------------------------------------------------------------------------------------------------


def test_an_audit_is_begun_here_watched_and_its_last_result_stays(console, pipeline):
    sent = pipeline.send("audited@example.com")
    pipeline.status(sent, wait="sent")
    health(console, TENANT)
    console.find(AUDIT, "Audit now")
    before = len(ask(pipeline, "GET", "/v1/ops/audits")[1]["data"])
    console.button("Audit now").click()
    console.find(f"{AUDIT} .sum", "accepted =", 60)
    done = ask(pipeline, "GET", "/v1/ops/audits")[1]["data"]
    result = done[0]["result"]
    assert len(done) == before + 1 and result["accepted"] > 0 and (result["lost"], result["doubled"]) == (0, 0)
    said = words(console, f"{AUDIT} .sum").replace(",", "")
    assert said == (f"{result['accepted']} accepted = {result['sent']} sent + {result['failed']} failed + {result['suppressed']} suppressed"
                    f" + {result['in_flight']} in flight + {result['unsettled']} unsettled")
    assert "lost 0" in words(console, AUDIT) and "doubled 0" in words(console, AUDIT)
    health(console, TENANT)
    console.find(f"{AUDIT} .sum", "accepted =")
    console.find("summary", "The last").click()
    row = console.find("[aria-label=Audits] tbody tr", "done")
    assert "user olga" in row.text or "API key" in row.text
    console.sound()


def test_an_audit_that_failed_says_why_and_one_that_waits_is_watched(console, pipeline):
    tenant = f"fail-{uuid.uuid4().hex[:6]}"
    pipeline.cli("tenant", "put", tenant, tenant=tenant)
    job = ask(pipeline, "POST", "/v1/ops/audits", {}, tenant=tenant)[1]["id"]
    wait_until(lambda: ask(pipeline, "GET", f"/v1/ops/audits/{job}", tenant=tenant)[1]["state"] == "done", 60, "the audit")
    set_to = "UPDATE gateway.jobs SET state = %s, error = %s, result = NULL, lease_until = now() + interval '1 hour' WHERE id = %s RETURNING 1"
    pipeline.postgres.query(set_to, "running", None, job)
    health(console, tenant)
    console.find(f"{AUDIT} [role=status]", "running")
    assert not console.button("Audit now").is_enabled()
    pipeline.postgres.query(set_to, "failed", f"NATS is away {HOSTILE}", job)
    console.find(f"{AUDIT} [role=alert]", "NATS is away <img src=x")
    assert console.button("Audit now").is_enabled()


# ---- machines -------------------------------------------------------------------------------------------------------


def test_streams_consumers_and_processes_are_reached_by_keys(console, pipeline):
    health(console, TENANT)
    row = console.find("[aria-label=Streams] tbody tr", "STATUS")
    assert "MiB" in row.text and console.run("return document.querySelectorAll('[aria-label=Streams] progress').length") > 10
    console.run("[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'Streams').focus()")
    console.press("ARROW_RIGHT")
    console.find("[aria-label=Consumers] tbody tr", "renderer")
    assert console.focused().text == "Consumers"
    console.press("ARROW_RIGHT")
    assert {"gateway", "ingest", "dispatcher"} <= {text.split()[0] for text in wait_until(
        lambda: len(console.texts("[aria-label=Processes] tbody tr")) >= 3 and console.texts("[aria-label=Processes] tbody tr"), 20, "the processes")}
    assert "view=processes" in console.run("return location.hash")
    console.sound()


# ---- the tenant -----------------------------------------------------------------------------------------------------


def test_usage_limits_and_keys_of_the_tenant(console, pipeline, planted):  # noqa: F811
    planted(20, "delivered", category="transactional", outcome="delivered")
    planted(3, "sent", channel="sms", vendor="twilio", segments=2)
    limits = {"limits": {"per_day": 5, "channels": {"sms": {"per_minute": 4}}}, "recipient_limits": {"per_day": 2}, "over_limit": "suppress"}
    assert ask(pipeline, "PATCH", "/v1/tenant", limits, planted.tenant)[0] == 200
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=9)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name, expires in ((HOSTILE[:40], soon), ("stays", None)):
        made = {"name": name, "scopes": ["send"], **({"expires_at": expires} if expires else {})}
        assert ask(pipeline, "POST", "/v1/api-keys", made, planted.tenant)[0] == 201
    wait_until(lambda: len(ask(pipeline, "GET", "/v1/api-keys", tenant=planted.tenant)[1]["data"]) == 2, 20, "the keys being known")
    health(console, planted.tenant)
    day = console.find("[aria-label='Usage by day'] tbody tr", planted.day)
    assert day.text.split()[:2] == [planted.day, "23"]
    console.find("section[aria-labelledby=usage] canvas")
    console.find("section[aria-labelledby=usage] button", "By channel").click()
    console.find("[aria-label='Usage by channel'] tbody tr", "sms")
    assert "All channels, a day: 0 of 5, 5 left" in words(console, "section[aria-labelledby=limits]")
    assert "sms, a minute: 0 of 4" in words(console, "section[aria-labelledby=limits]") and "is suppressed" in words(console, "section[aria-labelledby=limits]")
    console.find("[aria-label=Keys] tbody tr", "<img src=x")
    assert len(console.texts("[aria-label=Keys] tbody tr")) == 1, "the other one does not end"
    console.sound()


# ---- who, and what goes wrong ---------------------------------------------------------------------------------------


VENDORS = "[aria-label=Vendors] tbody tr"


def test_a_vendor_is_suspended_with_a_reason_and_resumed_by_keys_alone(console, pipeline):
    health(console, TENANT)
    row = console.find(VENDORS, "smtp")
    assert "platform" in row.text and "active" in row.text and "mailgun" in console.find("section[aria-labelledby=channels] .quiet", "Without a credential").text
    assert not console.all("[aria-label='Suspend smtp']"), "the installation's, and not this tenant's to stop"
    health(console, "platform")
    try:
        console.find("[aria-label='Suspend smtp']").send_keys("\n")
        console.find("dialog h2", "Suspend smtp?")
        assert not console.button("Suspend it").is_enabled(), "without a reason"
        console.sound()
        console.field("Why").send_keys(HOSTILE)
        console.button("Suspend it").send_keys("\n")
        row = console.find(VENDORS, "suspended")
        assert "smtp" in row.text and "it is resumed" in row.text and "user olga" in row.text and HOSTILE in row.text
        stands = {each["vendor"]: each for each in ask(pipeline, "GET", "/v1/channels", key=pipeline.operator_key)[1]["data"]}["smtp"]
        assert stands["status"] == "disabled" and stands["reason"] == HOSTILE
        console.sound()
        console.find("[aria-label='Resume smtp']").send_keys("\n")
        console.button("Resume it").send_keys("\n")
        console.find("[aria-label='Suspend smtp']")
    finally:
        pipeline.run_cli("channel", "resume", "smtp", tenant="platform")
    with console.without("*/v1/channels*"):
        console.go("#/live", "Live")
        console.go("#/health", "Health")
        console.alert("No connection")
        console.go("#/live", "Live")


def test_an_act_that_comes_too_late_says_why(console, pipeline):
    pipeline.cli("channel", "suspend", "smtp", "--reason", "stops", tenant="platform")
    try:
        health(console, "platform")
        with console.refused():
            console.find("[aria-label='Resume smtp']").click()
            assert pipeline.run_cli("channel", "resume", "smtp", tenant="platform").returncode == 0
            console.button("Resume it").click()
            assert "not suspended" in console.find("dialog [role=alert]").text
            console.press("ESCAPE")
    finally:
        pipeline.run_cli("channel", "resume", "smtp", tenant="platform")


def test_a_role_without_the_scope_is_not_offered_the_screen(pipeline):
    with Console(pipeline) as owner:
        owner.sign_in("--role", "owner", "--tenant", TENANT)
        owner.find("nav[aria-label=Screens] a", "Dead letters")
        assert "Health" not in owner.texts("nav[aria-label=Screens] a")
        owner.run("location.hash = '#/health'")
        owner.find("h1", "Not here")


def test_what_does_not_answer_says_so_alone(console, pipeline):
    console.go("#/live", "Live")
    console.tenant(TENANT)
    with console.without("*/v1/ops/slo*", "*/v1/ops/audits*"):
        console.go("#/health", "Health")
        console.find(f"{SLO} [role=alert]", "No connection")
        console.find(f"{AUDIT} [role=alert]", "No connection")
        console.find("[aria-label=Streams] tbody tr", "STATUS")
    console.find(f"{SLO} button", "Try again").click()
    console.find(SLO, "Half of them")


def test_too_many_audits_are_refused_with_the_reason(console, pipeline):
    tenant = f"busy-{uuid.uuid4().hex[:6]}"
    pipeline.cli("tenant", "put", tenant, tenant=tenant)
    health(console, tenant)
    console.find(AUDIT, "No audit was made")
    pipeline.postgres.query(
        "INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, state, asked_by, lease_until) SELECT 'job_' || %s || i, %s, 'audit', '{}', 'running', 'x',"
        " now() + interval '1 hour' FROM generate_series(1, 5) i RETURNING 1", tenant, tenant)
    console.expected.append(REFUSED)
    try:
        console.button("Audit now").click()
        console.find(f"{AUDIT} [role=alert]", "Too many jobs")
    finally:
        pipeline.postgres.query("DELETE FROM gateway.jobs WHERE tenant_id = %s RETURNING 1", tenant)
    console.errors()
    console.expected.remove(REFUSED)


# ---- a hundred thousand ---------------------------------------------------------------------------------------------


def test_figures_of_a_hundred_thousand_come_at_once(console, pipeline, planted):  # noqa: F811
    planted(MANY, "delivered", provider="gmail.com", outcome="delivered")
    console.go("#/live", "Live")
    console.tenant(planted.tenant)
    console.find("h1", "Live")
    took = console.run_until_shown("#/health?days=7", "[aria-label='How long it takes']")
    began = time.monotonic()
    console.find("[aria-label=Rates] tbody tr", f"{MANY:,}")
    console.find("[aria-label='Usage by day'] tbody tr", f"{MANY:,}")
    print(f"the service level of {MANY:,} is there after {took:.0f} ms, all of it {time.monotonic() - began:.1f} s later")
    assert "Of the newest" in words(console, SLO) or f"{MANY:,}" in words(console, SLO)
    assert took < 30_000
