# SPDX-License-Identifier: Apache-2.0
"""Every alert fires on the series that it is for, and is silent on those of a good day: `promtool test rules`."""
import re
from pathlib import Path

import pytest

from tests.harness import promtool
from tests.harness.processes import HOME

RULES = sorted((HOME / "deploy" / "prometheus").glob("*.rules.yml"))
ALERTS = [name for path in RULES for name in re.findall(r"- alert: (\w+)", path.read_text())]
DAY = 86400


def steady(value):
    return f"{value}xMINUTES"


def growing(step, start=0):
    return f"{start}+{step}xMINUTES"


def histogram(name, bounds, labels="", **steps):
    """Series of a histogram that grows by so many a minute in the bucket of that bound, cumulated by the caller."""
    return {f'{name}_bucket{{{labels}le="{bound}"}}': growing(step) for bound, step in zip(bounds, steps["each"])}


# The alert: (series that it fires on, series of a good day, minutes until it fires).
CASES = {
    "SmtpDown": ({"stentor_dispatcher_smtp_up": steady(0)}, {"stentor_dispatcher_smtp_up": steady(1)}, 5),
    "VendorDown": ({"stentor_dispatcher_vendors_down": steady(1)}, {"stentor_dispatcher_vendors_down": steady(0)}, 5),
    "MailsPending": ({"stentor_digest_flusher_mails_pending": steady(1001)}, {"stentor_digest_flusher_mails_pending": steady(1000)}, 10),
    "OldestMail": ({"stentor_digest_flusher_mails_oldest_seconds": steady(3601)}, {"stentor_digest_flusher_mails_oldest_seconds": steady(3600)}, 1),
    "NothingSent": ({'stentor_dispatcher_mails_total{result="sent"}': steady(5), "stentor_digest_flusher_mails_pending": steady(1)},
                    {'stentor_dispatcher_mails_total{result="sent"}': growing(1), "stentor_digest_flusher_mails_pending": steady(1)}, 20),
    "NoDispatcher": ({"stentor_digest_flusher_mails_pending": steady(1)},
                     {"stentor_digest_flusher_mails_pending": steady(1), "stentor_dispatcher_smtp_up": steady(1)}, 20),
    "MarketingPaused": ({'stentor_archiver_guard_scopes{level="pause"}': steady(1)},
                        {'stentor_archiver_guard_scopes{level="pause"}': steady(0), 'stentor_archiver_guard_scopes{level="warn"}': steady(3)}, 5),
    "MailsFail": ({'stentor_dispatcher_mails_total{result="sent"}': growing(8), 'stentor_dispatcher_mails_total{result="failed"}': growing(1),
                   "stentor_renderer_failed_total": growing(1)},
                  {'stentor_dispatcher_mails_total{result="sent"}': growing(98), 'stentor_dispatcher_mails_total{result="failed"}': growing(1),
                   "stentor_renderer_failed_total": growing(1)}, 40),
    "MailsSlow": (histogram("stentor_dispatcher_delivery_seconds", (60, 600, "+Inf"), each=(80, 100, 100)),
                  histogram("stentor_dispatcher_delivery_seconds", (60, 600, "+Inf"), each=(99, 100, 100)), 40),
    # promtool's clock begins at 0.
    "CanaryLost": ({"stentor_ingest_canary_period_seconds": steady(10), "stentor_archiver_canary_timestamp_seconds": steady(5)},
                   {"stentor_ingest_canary_period_seconds": steady(10), "stentor_archiver_canary_timestamp_seconds": growing(60)}, 5),
    "UnknownOutcomes": ({'stentor_dispatcher_unknown_open{state="parked"}': steady(1), 'stentor_dispatcher_unknown_open{state="claimed"}': steady(0)},
                        {'stentor_dispatcher_unknown_open{state="parked"}': steady(0), 'stentor_dispatcher_unknown_open{state="claimed"}': steady(0)}, 70),
    "DeadLetters": ({"stentor_bus_dead_letters_total": growing(10)}, {"stentor_bus_dead_letters_total": growing(1)}, 30),
    "TracesDropped": ({'stentor_trace_spans_total{job="a",result="full"}': growing(1)},
                      {'stentor_trace_spans_total{job="a",result="full"}': steady(7), 'stentor_trace_spans_total{job="a",result="exported"}': growing(9)}, 70),
    "ConsumerLag": ({'stentor_digest_flusher_consumer_waiting{consumer="renderer",stream="REQUEST_LOW"}': steady(20001)},
                    {'stentor_digest_flusher_consumer_waiting{consumer="renderer",stream="REQUEST_LOW"}': steady(20000),
                     'stentor_digest_flusher_consumer_waiting{consumer="webhook",stream="HOOK"}': steady(90000)}, 15),
    "StreamFull": ({'stentor_digest_flusher_stream_fill{stream="STATUS"}': steady(0.81)}, {'stentor_digest_flusher_stream_fill{stream="STATUS"}': steady(0.8)}, 10),
    "BusAway": ({'stentor_bus_connected{job="a"}': steady(0)}, {'stentor_bus_connected{job="a"}': steady(1)}, 5),
    "HistoryStandsStill": ({"stentor_archiver_active": steady(1), "stentor_archiver_oldest_unwritten_seconds": steady(301)},
                           {'stentor_archiver_active{pod="1"}': steady(1), 'stentor_archiver_active{pod="2"}': steady(0)}, 10),
    "PeopleStandStill": ({"stentor_ingest_people_active": steady(0)}, {"stentor_ingest_people_active": steady(1), "stentor_ingest_people_stalled": steady(0)}, 10),
    "DatabaseConnectionsUsedUp": ({'stentor_db_waiting{job="a"}': steady(1)}, {'stentor_db_waiting{job="a"}': "0 4 0 4 0 4 0 4 0 4 0 4 0 4 0 4 0 4 0 4"}, 10),
    "DatabaseSlow": (histogram("stentor_db_transaction_seconds", (2.5, 5, "+Inf"), 'job="a",', each=(90, 100, 100)),
                     histogram("stentor_db_transaction_seconds", (2.5, 5, "+Inf"), 'job="a",', each=(999, 1000, 1000)), 30),
    "MonthsRunOut": ({"stentor_digest_flusher_months_runway_seconds": steady(7 * DAY - 1)}, {"stentor_digest_flusher_months_runway_seconds": steady(7 * DAY)}, 70),
    "ConfigUnreadable": ({"stentor_config_unreadable": steady(1)}, {"stentor_config_unreadable": steady(0)}, 1),
    "PoisonMessage": ({"stentor_bus_poisoned_total": growing(1)}, {"stentor_bus_poisoned_total": steady(3)}, 5),
    "KeyWorkFailing": ({"stentor_ingest_key_work_failing": steady(1)}, {"stentor_ingest_key_work_failing": steady(0)}, 40),
    "EpochTooOld": ({"stentor_ingest_epoch_age_seconds": steady(14 * DAY + 1)}, {"stentor_ingest_epoch_age_seconds": steady(14 * DAY)}, 70),
    "KeysDumpTooOld": ({"stentor_ingest_keys_dump_age_seconds": steady(2 * DAY + 1)}, {"stentor_ingest_keys_dump_age_seconds": steady(2 * DAY)}, 70),
    "ErasureWaits": ({"stentor_ingest_erasure_waiting_seconds": steady(DAY + 1)}, {"stentor_ingest_erasure_waiting_seconds": steady(DAY)}, 70),
    "KeysLeftBehind": ({"stentor_ingest_keys_left": steady(1)}, {"stentor_ingest_keys_left": steady(0)}, 370),
    "ApiKeysExpire": ({"stentor_gateway_api_keys_expiring": steady(1)}, {"stentor_gateway_api_keys_expiring": steady(0)}, 70),
    "ApiKeyExpiresNow": ({"stentor_gateway_api_key_expiry_seconds": steady(2 * DAY - 1)}, {"stentor_gateway_api_key_expiry_seconds": steady(2 * DAY)}, 5),
    "CertificateExpires": ({'stentor_tls_certificate_expiry_seconds{job="a",setting="STENTOR_SMTP_CA_FILE"}': steady(14 * DAY - 1)},
                           {'stentor_tls_certificate_expiry_seconds{job="a",setting="STENTOR_SMTP_CA_FILE"}': steady(14 * DAY)}, 70),
    "CertificateExpiresNow": ({'stentor_tls_certificate_expiry_seconds{job="a",setting="SSL_CERT_FILE"}': steady(2 * DAY - 1)},
                              {'stentor_tls_certificate_expiry_seconds{job="a",setting="SSL_CERT_FILE"}': steady(2 * DAY)}, 5),
    "LogNotStored": ({"stentor_archiver_log_unstored_seconds": steady(2 * DAY + 1)}, {"stentor_archiver_log_unstored_seconds": steady(2 * DAY)}, 1),
    "LogHole": ({"stentor_archiver_log_holes_total": growing(1)}, {"stentor_archiver_log_holes_total": steady(1)}, 10),
    "InboxesStandStill": ({"stentor_gateway_feed_active": steady(0)}, {"stentor_gateway_feed_active": steady(1), "stentor_gateway_feed_stalled": steady(0)}, 5),
    "WebhooksWait": ({'stentor_digest_flusher_consumer_waiting{consumer="webhook"}': steady(10001)},
                     {'stentor_digest_flusher_consumer_waiting{consumer="webhook"}': steady(10000)}, 15),
    "WebhookTurnedOff": ({"stentor_webhook_disabled_total": growing(1)}, {"stentor_webhook_disabled_total": steady(2)}, 10),
    "ArchiveStandsStill": ({"stentor_archiver_standing_still": steady(1)}, {"stentor_archiver_standing_still": steady(0)}, 15),
    "ArchiveClocksDisagree": ({"stentor_archiver_clocks_disagree": steady(1)}, {"stentor_archiver_clocks_disagree": steady(0)}, 70),
    "UnitsFailed": ({"stentor_archiver_units_failed": steady(1)}, {"stentor_archiver_units_failed": steady(0)}, 370),
    "UnitsWait": ({"stentor_archiver_unit_waiting_seconds": steady(2 * DAY + 1)}, {"stentor_archiver_unit_waiting_seconds": steady(2 * DAY)}, 1),
    "OutboxBacklog": ({'stentor_outbox_relay_backlog{job="a"}': steady(1001)}, {'stentor_outbox_relay_backlog{job="a"}': steady(1000)}, 5),
    "OutboxOldest": ({'stentor_outbox_relay_oldest_seconds{job="a"}': steady(3601)}, {'stentor_outbox_relay_oldest_seconds{job="a"}': steady(3600)}, 1),
    "OutboxRefuses": ({"stentor_outbox_relay_refused_total": growing(1)}, {"stentor_outbox_relay_refused_total": steady(4)}, 5),
    "OutboxFailures": ({'stentor_outbox_relay_feedback_total{moment="failed"}': growing(1)}, {'stentor_outbox_relay_feedback_total{moment="sent"}': growing(9)}, 30),
    "OutboxFeedbackStopped": ({'stentor_outbox_relay_feedback_active{job="a"}': steady(0)},
                              {'stentor_outbox_relay_feedback_active{job="a",pod="1"}': steady(0), 'stentor_outbox_relay_feedback_active{job="a",pod="2"}': steady(1)}, 10),
    "SagaStalled": ({"stentor_order_saga_stalled": steady(1)}, {"stentor_order_saga_stalled": steady(0)}, 10),
    "SagaFailures": ({'stentor_order_saga_finished_total{state="Failed"}': growing(2), 'stentor_order_saga_finished_total{state="Completed"}': growing(8)},
                     {'stentor_order_saga_finished_total{state="Failed"}': growing(1), 'stentor_order_saga_finished_total{state="Completed"}': growing(9)}, 70),
    "SagaOutboxBacklog": ({"stentor_order_saga_outbox_backlog": steady(1001)}, {"stentor_order_saga_outbox_backlog": steady(1000)}, 5),
    "SagaDuplicates": ({'stentor_order_saga_messages_total{verdict="duplicate"}': growing(6), 'stentor_order_saga_messages_total{verdict="applied"}': growing(94)},
                       {'stentor_order_saga_messages_total{verdict="duplicate"}': growing(5), 'stentor_order_saga_messages_total{verdict="applied"}': growing(95)}, 40),
    "SagaUnmatched": ({"stentor_order_saga_unmatched": steady(1)}, {"stentor_order_saga_unmatched": steady(0)}, 70),
}


def test_there_is_a_case_for_every_alert():
    assert sorted(CASES) == sorted(ALERTS)


def _groups():
    """Alerts that share no metric, together: promtool begins each of its tests with a store of its own, which takes longer than all rules."""
    text = "\n".join(path.read_text() for path in RULES)
    reads = {alert: set(re.findall(r"\bstentor_[a-z_]+", part)) for alert, part in re.findall(r"- alert: (\w+)\n(.*?)(?=\n +labels:)", text, re.S)}
    groups = []
    for alert in CASES:
        for group in groups:
            if not any(reads[alert] & reads[other] for other in group):
                group.append(alert)
                break
        else:
            groups.append([alert])
    return groups


def _test(cases, fires):
    """cases: {alert: (series, minutes)}; fires: whether each does."""
    last = max(minutes for _, minutes in cases.values())
    series = {name: values.replace("MINUTES", str(last + 1)) for given, _ in cases.values() for name, values in given.items()}
    rows = "".join(f"      - {{series: '{name}', values: '{values}'}}\n" for name, values in series.items())
    samples = "[{labels: '{}', value: 1}]" if fires else "[]"
    asked = "".join(f"""      - expr: count(count by (alertname) (ALERTS{{alertname="{alert}",alertstate="firing"}}))
        eval_time: {minutes}m
        exp_samples: {samples}
""" for alert, (_, minutes) in cases.items())
    return f"  - interval: 1m\n    input_series:\n{rows}    promql_expr_test:\n{asked}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    for path in RULES:
        (folder / path.name).write_text(path.read_text())
    return folder


def _run(folder, tests):
    files = ", ".join(path.name for path in RULES)
    Path(folder, "all.test.yml").write_text(f"rule_files: [{files}]\nevaluation_interval: 1m\ntests:\n" + "".join(tests))
    return promtool.run("test", "rules", "all.test.yml", cwd=folder)


def test_alerts_fire_when_they_should_and_not_before(folder):
    bad = [_test({alert: (CASES[alert][0], CASES[alert][2]) for alert in group}, True) for group in _groups()]
    good = [_test({alert: (CASES[alert][1], CASES[alert][2]) for alert in group}, False) for group in _groups()]
    done = _run(folder, bad + good)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_that_does_not_hold_is_found(folder):
    """Or the test above could not fail."""
    assert _run(folder, [_test({"SmtpDown": (CASES["SmtpDown"][1], 5)}, True)]).returncode != 0


def test_the_rules_pass_promtools_check():
    done = promtool.run("check", "rules", *RULES)
    assert done.returncode == 0, done.stdout + done.stderr
