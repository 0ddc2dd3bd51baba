# SPDX-License-Identifier: Apache-2.0
"""Moving to another vendor: two vendors of SMS at weights 90 and 10, their callbacks, and the comparison; then all of it goes to the new one."""
import json
import re
import subprocess

import pytest

from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import Double
from tests.integration.sending.test_sms import World

COUNT = 60
LATER = "'{0}'::timestamptz + n * interval '1 ms'"


@pytest.fixture(scope="module", name="world")
def _world():
    made = World()
    try:
        words = made.pipeline.folder / "code.txt"
        words.write_text("{{name}}, your code is 4711.")
        made.cli("template", "put", "code", "--channel", "sms", "--text", words)
        made.doubles = {name: made.vendor(name) for name in ("twilio", "vonage")}
        made.cli("costs", "set", "sms", "twilio", "--price", "0.0079", "--currency", "USD", "--unit", "segment", "--from", "2026-01-01T00:00:00Z")
        made.accepted()  # ingest knows the credentials
        yield made
    finally:
        made.close()


def route(world, *vendors):
    answer = json.loads(world.cli("route", "put", "codes", "--channel", "sms", *[word for vendor in vendors for word in ("--vendor", vendor)], "--json"))
    entry = world.pipeline.services["dispatcher"]
    wait_until(lambda: entry.metric("stentor_dispatcher_routes") >= 1, 20, "the route in the dispatcher")
    return answer


def send(world, count):
    """The ids, once all were taken by a vendor."""
    status, _, answer = world.pipeline.post([{"to": world.number(), "channel": "sms", "template": "code", "variables": {"name": "Alice"}} for _ in range(count)])
    assert status == 202, answer
    ids = [one["id"] for one in answer["notifications"]]
    known = f"SELECT count(*) FROM archiver.notifications WHERE id = ANY (ARRAY{ids}) AND sent_at IS NOT NULL"
    wait_until(lambda: world.pipeline.postgres.query(known) == [(count,)], 60, f"{count} SMS being sent")
    return ids


def compared(world, *words):
    return {row["vendor"]: row for row in json.loads(world.cli("route", "compare", "codes", "--json", *words))}


def test_ten_percent_move_and_the_figures_show_how_the_new_vendor_does(world):
    route(world, "twilio=90", "vonage=10")
    before = compared(world)
    assert before["vonage"] == {"vendor": "vonage", "weight": "10", "attempts": 0, "sent": 0, "refused": 0, "unknown": 0, "delivered": 0, "bounced": 0,
                                "blocked": 0, "unpriced": 0}, "nothing is said of what is not known"
    counts = {name: len(double.mails) for name, double in world.doubles.items()}
    send(world, COUNT)
    made = {name: double.mails[counts[name]:] for name, double in world.doubles.items()}
    assert sum(len(mails) for mails in made.values()) == COUNT and 0 < len(made["vonage"]) < COUNT / 3, "by weight"
    kinds = {"twilio": ["bounced", "blocked"], "vonage": []}  # the others are delivered
    for name, mails in made.items():
        for mail, kind in zip(mails, kinds[name] + ["delivered"] * len(mails)):
            world.reported(world.doubles[name], mail, kind)

    def counted():
        rows = compared(world)
        return all(rows[name]["delivered"] + rows[name]["bounced"] + rows[name]["blocked"] - before[name]["delivered"] == len(made[name]) for name in made)
    wait_until(counted, 30, "the reports in history")
    rows = compared(world)
    for name, mails in made.items():
        row, sent = rows[name], before[name]["sent"] + len(mails)
        assert (row["sent"], row["bounced"], row["blocked"]) == (sent, *((1, 1) if name == "twilio" else (0, 0)))
        assert row["delivered"] == len(mails) - row["bounced"] - row["blocked"] and row["delivered_rate"] == round(row["delivered"] / sent, 4)
        assert 0 <= row["delivered_p50_ms"] <= row["delivered_p95_ms"] < 120_000
    assert (rows["twilio"]["weight"], rows["vonage"]["weight"]) == ("90", "10")
    assert [rows["twilio"][name] for name in ("cost_per_1000", "currency", "cost_estimated", "unpriced")] == ["7.9", "USD", True, 0]
    assert [rows["vonage"][name] for name in ("cost_per_1000", "currency", "cost_estimated", "unpriced")] == ["33.3", "EUR", False, 0]
    said = world.cli("route", "compare", "codes")
    assert said.startswith("vendor       weight          sent delivered  bounced  blocked  refused  unknown "), said
    assert re.search(r"\ntwilio +90 +\d+ +\d+\.\d % +\d\.\d % +\d\.\d % +0 +0 +\d+\.\d s +\d+\.\d s  7\.9 USD \(estimated\)\n", said), said
    assert re.search(r"\nvonage +10 +\d+ +100\.0 % +0\.0 % +0\.0 % +0 +0 +\d+\.\d s +\d+\.\d s  33\.3 EUR\n", said), said


def test_then_all_of_it_goes_to_the_new_vendor(world):
    route(world, "vonage=100")
    counts = {name: len(double.mails) for name, double in world.doubles.items()}

    def moved():
        send(world, 1)
        return len(world.doubles["vonage"].mails) > counts["vonage"]
    wait_until(moved, 20, "the route's new weights in the dispatcher")
    counts = {name: len(double.mails) for name, double in world.doubles.items()}
    send(world, 10)
    assert len(world.doubles["twilio"].mails) == counts["twilio"] and len(world.doubles["vonage"].mails) == counts["vonage"] + 10
    assert list(compared(world)) == ["vonage"] and compared(world)["vonage"]["weight"] == "100"


def test_bounds_of_the_comparison(world):
    done = world.pipeline.run_cli("route", "compare", "codes", "--limit", "3", "--json")
    assert [row["attempts"] for row in json.loads(done.stdout)] == [3] and "these are the newest 3 attempts since then" in done.stderr
    assert compared(world, "--since", "2099-01-01T00:00:00Z")["vonage"]["attempts"] == 0
    assert "--since is at most 31d ago" in world.pipeline.run_cli("route", "compare", "codes", "--since", "60d").stderr
    assert world.pipeline.run_cli("route", "compare", "none").returncode == 3
    other = world.pipeline.run_cli("route", "put", "codes", "--channel", "sms", "--vendor", "vonage", tenant="rival")
    assert other.returncode == 0, other.stderr
    assert json.loads(world.pipeline.cli("route", "compare", "codes", "--json", tenant="rival"))[0]["attempts"] == 0, "of the tenant's own messages"


def test_the_comparison_reads_the_partitions_of_its_time_by_their_keys(world):
    """20,000 attempts in each of two months; of one the plan of the function's query has the partitions, and indexes alone."""
    query = world.pipeline.postgres.query
    query("SELECT stentor.ensure_partitions(t::regclass, '2026-05-01', '2026-07-01') FROM unnest(ARRAY['archiver.notifications', 'archiver.delivery_attempts']) t")
    for month in ("2026-05-03T10:00:00Z", "2026-06-03T10:00:00Z"):
        at, id = LATER.format(month), f"'ntf_{month[5:7]}' || lpad(n::text, 24, '0')"
        query(f"""INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status, status_rank, sent_at, delivered_at)
            SELECT {at}, {id}, 'plans', 'sms', 'delivered', 7, {at}, {at} + n % 100 * interval '1 s' FROM generate_series(0, 19999) n""")
        query(f"""INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, outcome, finished_at)
            SELECT {at}, {id}, 1, 'dat', 'plans', 'sms', CASE WHEN n % 10 = 0 THEN 'vonage' ELSE 'twilio' END,
                CASE n % 50 WHEN 1 THEN 'rejected_terminal' WHEN 2 THEN 'timeout' ELSE 'accepted' END, {at}
            FROM generate_series(0, 19999) n""")
    query("ANALYZE archiver.notifications; ANALYZE archiver.delivery_attempts")
    done = subprocess.run(
        ["psql", world.pipeline.postgres.url("postgres"), "-qAtc", "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
         " SET auto_explain.log_nested_statements = on; SET client_min_messages = log; SELECT vendor, sent, refused, unknown, delivered, p50_ms, p95_ms FROM"
         " stentor.vendor_outcomes('plans', 'sms', '{twilio,vonage}', '2026-06-01', '2026-06-30', 5000) ORDER BY 1"],
        capture_output=True, text=True, timeout=60, check=True)
    took = sorted(n % 100 * 1000 for n in range(15_000, 20_000) if n % 10 and n % 50 not in (1, 2))
    assert done.stdout.splitlines() == [f"twilio|4300|100|100|4300|{took[2149]}|{took[4084]}", "vonage|500|0|0|500|40000|90000"], "the newest 5,000"
    plan = done.stderr[done.stderr.index("unnest"):] if "unnest" in done.stderr else done.stderr
    read = set(re.findall(r"Scan.* on ((?:notifications|delivery_attempts)\w*)", plan))
    assert read and all(name.endswith("y2026m06") for name in read), plan
    assert not re.search(r"Seq Scan on (notifications|delivery_attempts)_record", plan), plan  # the other classes' tables are empty
    assert re.search(r"Index Scan using notifications_record_y2026m06_pkey on notifications_record_y2026m06", plan), plan
    assert re.search(r"Index Scan Backward using delivery_attempts_record_y2026m06\w*", plan), plan


# ---- before the first mail: tried without sending ----

def mail_vendor(world, name):
    """A vendor of mail with a credential that the command line can read."""
    double = Double(name).start()
    world.routing.doubles.append(double)
    secret = world.pipeline.folder / "credentials" / f"{name}-next"
    secret.write_text(double.secret)
    words = [word for setting in ({**double.settings, "base_url": double.base_url}).items() for word in ("--set", "=".join(setting))]
    world.cli("credential", "put", name, "next", "--reference", f"file:{secret}", *words)
    double.secret_file = secret
    return double


def shadow(world, *words, **settings):
    return world.pipeline.run_cli(
        "shadow", "--route", "next", "--send", "--lane", "normal", "--ground", "moving to another vendor", *words, STENTOR_VENDOR_ADDRESSES="loopback",
        STENTOR_CREDENTIAL_DIRS=str(world.pipeline.folder / "credentials"), **settings)


@pytest.fixture(scope="module", name="tried")
def _tried(world):
    """Four mails that went over SMTP, and a route that none has taken yet."""
    doubles = {name: mail_vendor(world, name) for name in ("sendgrid", "mailgun", "postmark", "resend")}
    vendors = [word for n, name in enumerate(doubles) for word in ("--fallback" if n else "--vendor", f"{name}/next")]
    world.cli("route", "put", "next", *vendors, "--disabled")
    status, _, answer = world.pipeline.post([{"to": f"guest{n}@moved.example", "template": "welcome", "variables": {"name": "Alice"}} for n in range(4)])
    assert status == 202, answer
    for one in answer["notifications"]:
        world.pipeline.status(one["id"], wait="sent")
    doubles["ids"] = [one["id"] for one in answer["notifications"]]
    return doubles


def test_a_vendor_judges_the_last_mails_without_sending_one(world, tried):
    tried["sendgrid"].rejected.add("guest2@moved.example")
    done = shadow(world, "--last", "4", "--json")
    assert done.returncode == 0, done.stderr
    found = {one["vendor"]: one for one in json.loads(done.stdout)["vendors"]}
    assert [one["built"] for one in found.values()] == [4, 4, 4, 4]
    said = found["sendgrid"]["rehearsed"]
    assert said["answers"] == {"accepted -> accepted": 3, "accepted -> refused": 1}
    assert [(one["id"], one["was"], one["is"]) for one in said["differences"]] == [(tried["ids"][2], "accepted", "refused")]
    assert "Does not contain a valid address" in said["differences"][0]["answer"] and "guest2" not in done.stdout
    for name in ("mailgun", "postmark"):
        assert found[name]["rehearsed"] == {"mails": 4, "answers": {"accepted -> accepted": 4}, "differences": []}, name
    assert "rehearsed" not in found["resend"], "it has no way that sends nothing"
    assert [(len(tried[name].rehearsed), tried[name].mails) for name in ("sendgrid", "mailgun", "postmark")] == [(3, []), (4, []), (4, [])]
    assert tried["resend"].requests == []
    mail = tried["mailgun"].rehearsed[0]
    assert (mail.to, mail.subject) == (["guest0@moved.example"], "Welcome, Alice!") and mail.html
    assert "content.rehearsed" in world.cli("audit-log", "list", "--json")
    everything = json.loads(shadow(world, "--last", "1000", "--json").stdout)
    assert (everything["mails"], everything["not_opened"], everything["with_attachments"]) == (4, 0, 0), "the SMS of the same lane are passed over"
    refused = world.pipeline.run_cli("shadow", "--route", "codes", "--ground", "moving to another vendor")
    assert refused.returncode == 1 and "vonage is of channel sms; shadow builds e-mails alone" in refused.stderr
    text = shadow(world, "--last", "4", "--show", "0").stdout
    assert "sendgrid: 4 built, 0 that it cannot carry\n  rehearsed 4, which sent nothing" in text and "       1  accepted -> refused\n" in text
    assert "resend: 4 built, 0 that it cannot carry\n  it has no way that sends nothing: built only\n" in text and "4 mails of RENDERED_NORMAL" in text


def test_a_refused_credential_ends_the_trial_of_its_vendor(world, tried):
    before = len(tried["sendgrid"].requests)
    tried["sendgrid"].secret_file.write_text("another secret")
    said = {one["vendor"]: one.get("rehearsed") for one in json.loads(shadow(world, "--last", "4", "--json").stdout)["vendors"]}
    assert said["sendgrid"]["answers"] == {"accepted -> config": 1} and said["sendgrid"]["stopped"].startswith("401 ")
    assert len(tried["sendgrid"].requests) == before + 1 and said["mailgun"]["mails"] == 4
    tried["mailgun"].stop()
    said = {one["vendor"]: one.get("rehearsed") for one in json.loads(shadow(world, "--last", "1", "--json").stdout)["vendors"]}
    assert said["mailgun"]["answers"] == {"accepted -> unsent": 1} and said["postmark"]["mails"] == 1
    tried["sendgrid"].secret_file.unlink()
    failed = shadow(world, "--last", "4")
    assert failed.returncode == 1 and "the secret of sendgrid" in failed.stderr and len(tried["sendgrid"].requests) == before + 2
