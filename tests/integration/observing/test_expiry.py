# SPDX-License-Identifier: Apache-2.0
"""API keys and certificates that expire soon: gauges for the alerts, and doctor, which names them."""
import hashlib
import http.server
import json
import ssl
import subprocess
import threading
import time

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.processes import wait_until
from tests.harness.protobuf import messages

DAY = 86400
EXPIRY = "stentor_tls_certificate_expiry_seconds"


def make_certificate(folder, days):
    certificate, key = folder / f"{days}.pem", folder / f"{days}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(days),
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    return certificate, key


def doctor_says(pipeline, **settings):
    """[(check, result, text)]"""
    report = json.loads(pipeline.run_cli("doctor", "--json", **settings).stdout)
    return [(check["check"], check["result"], check["text"]) for check in report["checks"]]


def put_key(pipeline, key_id, made_days_ago, days_left):
    """Into CONFIG itself: the API makes no key that was made before."""
    now = int(time.time() * 1e6)
    key = messages(pipeline).ApiKey(key_id=key_id, tenant="expiry", secret_hash=hashlib.sha256(f"stn_{key_id}.x".encode()).digest(), scopes=["send"],
                                    created_at_us=now - made_days_ago * DAY * 10**6, expires_at_us=now + days_left * DAY * 10**6)
    nats = NatsClient(pipeline.nats.port)
    nats.publish(f"cfg.apikey.expiry.{key_id}", key.SerializeToString())
    nats.close()


def test_an_api_key_that_expires_soon_is_a_figure_and_is_named_by_doctor(pipeline):
    gateway = pipeline.services["gateway"]
    assert gateway.metric("stentor_gateway_api_keys_expiring") == 0
    for tenant in ("expiry", "keys-one"):  # that of test_keys, which may have been here: keys without settings would be named before
        pipeline.cli("tenant", "put", tenant, "--name", tenant)
    put_key(pipeline, "aaaaaaaaaaaaaaa1", 60, 30)
    wait_until(lambda: 29 * DAY < gateway.metric("stentor_gateway_api_key_expiry_seconds") < 31 * DAY, 20, "the key that expires first")
    assert gateway.metric("stentor_gateway_api_keys_expiring") == 0, "in a month is not soon"
    put_key(pipeline, "aaaaaaaaaaaaaaa2", 60, 10)
    put_key(pipeline, "aaaaaaaaaaaaaaa3", 1, 5)  # made for a few days: who made it knows
    wait_until(lambda: gateway.metric("stentor_gateway_api_keys_expiring") == 1, 20, "the key that expires soon")
    assert 9 * DAY < gateway.metric("stentor_gateway_api_key_expiry_seconds") < 10 * DAY
    result, text = next((result, text) for check, result, text in doctor_says(pipeline) if check == "api keys")
    # Keys of other tests that expire may be named, too.
    assert result == "warn" and "stentor apikey rotate " in text and "expiry/aaaaaaaaaaaaaaa2" in text and "a1" not in text, text
    for key_id in ("aaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaa2", "aaaaaaaaaaaaaaa3"):
        pipeline.cli("apikey", "revoke", key_id, tenant="expiry")
    wait_until(lambda: gateway.metric("stentor_gateway_api_key_expiry_seconds") == float("inf"), 20, "no key that expires")


def test_a_process_has_a_figure_for_each_file_of_certificates_that_its_settings_name(pipeline, tmp_path):
    soon, _ = make_certificate(tmp_path, 3)
    late, _ = make_certificate(tmp_path, 300)
    (both := tmp_path / "both.pem").write_text(late.read_text() + soon.read_text())
    ingest = pipeline.service("ingest", instance="-expiry", STENTOR_INGEST_PORT=0, SSL_CERT_FILE=late,
                              STENTOR_DATABASE_URL=f"{pipeline.postgres.url('stentor_ingest')} sslrootcert={both}")
    try:
        ingest.start()
        assert 2 * DAY < ingest.metric(EXPIRY + '{setting="STENTOR_DATABASE_URL sslrootcert"}') <= 3 * DAY, "the first that ends"
        assert 299 * DAY < ingest.metric(EXPIRY + '{setting="SSL_CERT_FILE"}') <= 300 * DAY
    finally:
        assert ingest.stop() == 0
    assert EXPIRY not in pipeline.services["ingest"].get("/metrics")[1], "it reads no such file"


@pytest.fixture
def api(tmp_path):
    """An address over HTTPS whose certificate ends in three days."""
    certificate, key = make_certificate(tmp_path, 3)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}", certificate
    server.shutdown()
    server.server_close()


def test_doctor_names_certificates_that_end_soon(pipeline, api, tmp_path):
    url, certificate = api
    said = {(result, text.split(" expires in ")[0]) for check, result, text in doctor_says(pipeline, STENTOR_API_URL=url, STENTOR_API_CA_FILE=certificate)
            if check == "certificates"}
    assert said == {("warn", f"STENTOR_API_CA_FILE ({certificate})"), ("warn", f"that of {url}")}
    late, _ = make_certificate(tmp_path, 300)
    assert ("certificates", "ok", "1 looked at, none expires within 14 days") in doctor_says(pipeline, STENTOR_VENDOR_CA_FILE=late)
    (empty := tmp_path / "empty.pem").write_text("")
    said = [(result, text) for check, result, text in doctor_says(pipeline, STENTOR_VENDOR_CA_FILE=empty) if check == "certificates"]
    assert said == [("fail", f"STENTOR_VENDOR_CA_FILE: no certificates can be read from '{empty}'")]
