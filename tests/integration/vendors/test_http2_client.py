# SPDX-License-Identifier: Apache-2.0
"""common/http2 against a real server (node): what the client says about each request is what the server knows."""
import json
import socket
import ssl
import time

import pytest

from tests.harness.length import amount
from tests.harness.vendor_doubles.probe import HttpProbe
from tests.harness.processes import free_port
from tests.harness.vendor_doubles.chaos import Chaos, Dns
from tests.harness.vendor_doubles.h2 import H2


def new_probe(server, *options, allow="allow=loopback"):
    return HttpProbe("http2_probe", allow, f"ca={server.ca}", *options, first=1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = H2(tmp_path_factory.mktemp("h2"))
    yield server
    server.stop()


@pytest.fixture
def probe(server):
    server.forget()
    probe = new_probe(server)
    yield probe
    probe.stop()


def by_certainty(calls):
    return {name: {call["id"] for call in calls if call["certainty"] == name} for name in ("unsent", "answered", "unknown")}


def accounted(server, calls):
    """Nothing is taken twice, nothing unsent is taken, nothing answered is not taken."""
    taken, by = server.seen()["taken"], by_certainty(calls)
    assert len(set(taken)) == len(taken)
    assert not set(taken) & by["unsent"]
    assert by["answered"] <= set(taken) <= by["answered"] | by["unknown"]
    return by


@pytest.mark.parametrize("path,certainty,failure,status", [
    ("/ok", "answered", "", 200), ("/status/410", "answered", "", 410), ("/status/503", "answered", "", 503), ("/1xx", "answered", "", 200),
    ("/trailers", "answered", "", 200), ("/half", "answered", "cut", 200), ("/reset", "unknown", "cut", 0), ("/cut", "unknown", "cut", 0),
    ("/long-head", "unknown", "invalid", 200)])
def test_what_the_client_says_is_what_happened(server, probe, path, certainty, failure, status):
    call = probe.one(server.url(path))
    assert (call["certainty"], call["failure"], call["status"]) == (certainty, failure, status), call
    assert server.seen()["taken"] == [call["id"]] and call["kind"] != "config"


def test_calls_of_one_pool_share_connections_and_no_others(server, probe):
    ended, _ = probe.post(server.url("/ok"), count=12, parallel=1, pools=3)
    assert by_certainty(ended)["unsent"] == set() and server.seen()["connections"] == 3
    probe.post(server.url("/ok"), count=2, parallel=1)
    assert server.seen()["connections"] == 4, "those of none"


def test_a_request_arrives_as_it_was_written(server, probe):
    call = probe.one(server.url("/ok?q=1+2%2F#part"))
    headers = server.seen()["headers"]
    assert headers[":path"] == "/ok?q=1+2%2F" and headers[":authority"] == f"127.0.0.1:{server.port}" and headers[":method"] == "POST"
    assert (headers["authorization"], headers["content-length"], headers["user-agent"]) == ("Bearer probe", "100", "stentor")
    assert call["content_type"] == "text/plain" and call["answer_bytes"] == 2


def test_one_stream_until_the_first_answer_then_many_on_a_few_connections(server, probe):
    calls, total = probe.post(server.url("/slow"), count=300, parallel=300)
    seen = server.seen()
    assert total["answered"] == 300 and len(seen["taken"]) == 300
    assert seen["before_first"] == 1 and 50 < seen["together"] <= 100 and 1 <= seen["connections"] <= 4


def test_the_servers_limit_is_obeyed(server, tmp_path_factory):
    narrow = H2(tmp_path_factory.mktemp("narrow"), max_streams=7)
    probe = new_probe(narrow, "connections=2")
    calls, total = probe.post(narrow.url("/slow"), count=40, parallel=40)
    seen = narrow.seen()
    assert total["answered"] == 40 and seen["together"] <= 7 and seen["connections"] <= 2 and seen["refused"] == 0
    probe.stop()
    narrow.stop()


def test_of_those_that_wait_the_lowest_lane_goes_first(server):
    server.forget()
    probe = new_probe(server, "streams=1", "connections=1")
    calls, _ = probe.post(server.url("/ok"), count=12, parallel=12, lanes=4)  # of id N: N % 4
    assert server.seen()["taken"] == [4, 8, 12, 1, 5, 9, 2, 6, 10, 3, 7, 11] and len(calls) == 12
    probe.stop()


def test_goaway_in_the_middle_of_1000_streams(server, probe):
    """What the server did not look at is unsent, and the rest is answered; other calls go on over new connections."""
    calls, _ = probe.post(server.url("/goaway"), count=1000, parallel=1000)
    by = accounted(server, calls)
    assert len(calls) == 1000 and by["unknown"] == set() and len(by["answered"]) > 400
    assert server.seen()["connections"] >= 2
    again, total = probe.post(server.url("/ok"), count=len(by["unsent"]) or 1, parallel=100)
    assert total["answered"] == len(again)


def test_a_connection_that_ends_behind_its_goaway_leaves_unknown_ones(server, probe):
    calls, _ = probe.post(server.url("/goaway-cut"), count=200, parallel=100)
    by = accounted(server, calls)
    assert by["unknown"] and any("InternalError" in call["text"] for call in calls if call["certainty"] == "unknown")


def test_a_refused_stream_is_unsent(server, probe):
    calls, _ = probe.post(server.url("/refuse-some"), count=90, parallel=30)
    by = accounted(server, calls)
    assert by["unsent"] == {call["id"] for call in calls if call["id"] % 3 == 0} and by["unknown"] == set()


def test_requests_unaccounted_is_0(server, probe):
    """A connection ends after one request in 50. What the server took is known as sent or unknown, once; what is unsent it never saw."""
    calls, total = probe.post(server.url("/one-in-50"), count=amount(1000, 20000), parallel=64, bytes=600, whole_ms=60000)
    by = accounted(server, calls)
    assert by["unknown"] and total["answered"] > len(calls) * 0.3 and server.seen()["cut"] > 3


def test_a_large_body_waits_for_the_servers_window(server, probe):
    calls, total = probe.post(server.url("/ok"), count=8, parallel=8, bytes=3_000_000, whole_ms=60000)
    assert total["answered"] == 8 and sorted(server.seen()["taken"]) == [call["id"] for call in calls]


def test_an_answer_before_the_bodys_end_is_an_answer(server, probe):
    call = probe.one(server.url("/early"), bytes=20_000_000)
    assert (call["certainty"], call["status"]) == ("answered", 413)
    assert probe.one(server.url("/ok"))["status"] == 200


def test_ten_megabytes_are_an_answer_of_64_kib(server, probe):
    call = probe.one(server.url("/big"))
    assert (call["certainty"], call["status"], call["stopped"], call["answer_bytes"]) == ("answered", 200, True, 65536)
    assert probe.one(server.url("/ok"))["status"] == 200
    assert server.seen()["connections"] == 1


def test_a_drip_and_silence_end_and_the_connection_goes_on(server, probe):
    from_s = time.monotonic()
    dripped = probe.one(server.url("/drip"), whole_ms=1500)
    silent = probe.one(server.url("/hang"), whole_ms=1000)
    assert (dripped["certainty"], dripped["failure"]) == ("answered", "timeout") and dripped["answer_bytes"] < 1000
    assert (silent["certainty"], silent["failure"]) == ("unknown", "timeout")
    assert probe.one(server.url("/ok"))["status"] == 200
    assert server.seen()["connections"] == 1 and time.monotonic() - from_s < 30


def test_cancelled_calls_end_and_the_others_are_answered(server, probe):
    calls, _ = probe.post(server.url("/ok"), count=30, parallel=30, cancel_after=3)
    assert {call["id"] for call in calls if call["kind"] == "cancelled"} == {call["id"] for call in calls if call["id"] % 3 == 0}
    assert all(call["status"] == 200 for call in calls if call["id"] % 3)


def test_a_server_that_falls_silent_is_found_by_a_ping(server):
    probe = new_probe(server, "ping_ms=300", "pong_ms=500")
    assert probe.one(server.url("/ok"))["status"] == 200
    server.freeze()
    try:
        call = probe.one(server.url("/ok"), whole_ms=60000)
    finally:
        server.thaw()
    assert (call["certainty"], call["failure"]) == ("unknown", "timeout") and "does not answer" in call["text"]
    assert probe.one(server.url("/ok"), whole_ms=20000)["status"] == 200
    probe.stop()


def test_an_old_connection_is_left(server):
    server.forget()
    probe = new_probe(server, "life_s=1")
    probe.one(server.url("/ok"))
    time.sleep(2)
    assert probe.one(server.url("/ok"))["status"] == 200 and server.seen()["connections"] == 2
    probe.stop()


# ---- where nothing is sent ----

@pytest.mark.parametrize("options,url,failure,kind,text", [
    ({}, "http://127.0.0.1:1/x", "blocked", "config", "https"), ({"allow": "allow=none"}, "https://127.0.0.1/x", "blocked", "config", "loopback"),
    ({}, "https://169.254.169.254/x", "blocked", "config", "metadata"), ({}, "https://user@127.0.0.1/x", "blocked", "config", "user")])
def test_the_guard_is_asked(server, options, url, failure, kind, text):
    probe = new_probe(server, **options)
    call = probe.one(url)
    assert (call["certainty"], call["failure"], call["kind"]) == ("unsent", failure, kind) and text in call["text"], call
    probe.stop()


def test_nothing_listens(server, probe):
    calls, total = probe.post(f"https://127.0.0.1:{free_port()}/x", count=20, parallel=20)
    assert total["unsent"] == 20 and {call["failure"] for call in calls} == {"connect"}


def test_a_server_that_does_not_speak_http2(server, probe, tmp_path_factory):
    old = Chaos(tmp_path_factory.mktemp("old"))
    other = new_probe(old)
    call = other.one(old.url("/ok"))
    assert (call["certainty"], call["failure"], call["kind"]) == ("unsent", "tls", "config") and "HTTP/2" in call["text"], call
    assert old.taken == []
    wrong = probe.one(old.url("/ok"))  # signed by another authority than the probe's
    assert (wrong["certainty"], wrong["failure"], wrong["kind"]) == ("unsent", "tls", "config"), wrong
    other.stop()
    old.stop()


def test_a_server_that_says_no_settings(server, tmp_path_factory):
    """TLS with ALPN h2, and then nothing: no byte of a request goes out."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = tmp_path_factory.mktemp("silent")
    silent = H2(folder)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", 0))
    probe = new_probe(silent, "connect_ms=500")
    probe.child.stdin.write(json.dumps({"url": f"https://127.0.0.1:{listener.getsockname()[1]}/x", "count": 1, "first": 1, "whole_ms": 2000}) + "\n")
    probe.child.stdin.flush()
    connection = context.wrap_socket(listener.accept()[0], server_side=True)
    call = json.loads(probe.child.stdout.readline())
    assert (call["certainty"], call["failure"]) == ("unsent", "timeout"), call
    connection.settimeout(5)
    read = connection.recv(65536)
    assert read.startswith(b"PRI * HTTP/2.0") and b"id=1;" not in read
    assert json.loads(probe.child.stdout.readline())["done"]
    probe.stop()
    connection.close()
    listener.close()
    silent.stop()


def test_names_are_resolved_checked_and_pinned(server, tmp_path_factory):
    dns = Dns(tmp_path_factory.mktemp("dns"), {"one.vendor.test": ["127.0.0.1"], "mixed.vendor.test": ["127.0.0.1", "10.0.0.5"],
                                               "dead.vendor.test": ["127.0.0.77", "127.0.0.1"]})
    server.forget()
    probe = new_probe(server, f"dns={dns.address}")
    assert probe.one(server.url("/ok", "one.vendor.test"))["status"] == 200
    assert server.seen()["headers"][":authority"] == f"one.vendor.test:{server.port}"
    mixed = probe.one(server.url("/ok", "mixed.vendor.test"))
    assert (mixed["certainty"], mixed["failure"]) == ("unsent", "blocked") and "private" in mixed["text"]
    missing = probe.one(server.url("/ok", "none.vendor.test"))
    assert (missing["certainty"], missing["failure"]) == ("unsent", "dns")
    answers = [probe.one(server.url("/ok", "dead.vendor.test"))["status"] for _ in range(2)]
    assert answers[-1] == 200  # the address that does not answer is the last to be tried again
    probe.stop()
    dns.stop()
