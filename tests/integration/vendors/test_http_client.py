# SPDX-License-Identifier: Apache-2.0
"""common/http/client against a server that misbehaves and a real DNS server: what it says about each request is what the server knows."""
import time

import pytest

from tests.harness.vendor_doubles.chaos import Chaos, Dns
from tests.harness.length import amount
from tests.harness.vendor_doubles.probe import HttpProbe


def new_probe(*options):
    return HttpProbe("http_probe", *options)


@pytest.fixture(scope="module", params=["plain", "tls"])
def chaos(request, tmp_path_factory):
    chaos = Chaos(tmp_path_factory.mktemp("chaos") if request.param == "tls" else None)
    yield chaos
    chaos.stop()


@pytest.fixture(scope="module")
def probe(chaos):
    probe = new_probe("guard=origin", "allow=loopback", *([f"ca={chaos.ca}"] if chaos.context else []))
    yield probe
    probe.stop()


@pytest.mark.parametrize("path,certainty,failure,status", [
    ("/ok", "answered", "", 200), ("/after", "unknown", "cut", 0), ("/middle", "answered", "cut", 200), ("/1xx", "answered", "", 200),
    ("/1xx-only", "unknown", "cut", 103), ("/garbage", "answered", "", 200), ("/redirect", "answered", "", 302), ("/gzip", "answered", "", 200),
    ("/not-http", "unknown", "invalid", 0), ("/long-head", "unknown", "invalid", 200), ("/in-head", "unknown", "cut", 200)])
def test_what_the_client_says_is_what_happened(chaos, probe, path, certainty, failure, status):
    before = len(chaos.taken)
    call = probe.one(chaos.url(path))
    assert (call["certainty"], call["failure"], call["status"]) == (certainty, failure, status), call
    assert len(chaos.taken) == before + 1 and call["kind"] != "config"


def test_a_second_status_line_is_no_second_answer(chaos, probe):
    call = probe.one(chaos.url("/two-status"))
    assert call["certainty"] in ("answered", "unknown") and call["status"] in (0, 200, 500), call
    assert probe.one(chaos.url("/ok"))["status"] == 200


def test_double_post_one_post_is_seen(chaos, probe):
    """curl-double-post: a kept connection that ends behind the whole body. libcurl would send it again by itself and say 200."""
    probe.one(chaos.url("/ok"))
    kept, before = chaos.kept, len(chaos.taken)
    first, second = probe.post(chaos.url("/after-second"), count=2)[0]
    assert {first["certainty"], second["certainty"]} <= {"answered", "unknown"} and "unknown" in (first["certainty"], second["certainty"])
    assert sorted(chaos.taken[before:]) == [first["id"], second["id"]] and chaos.kept > kept


def test_ten_megabytes_are_an_answer_of_64_kib(chaos, probe):
    call = probe.one(chaos.url("/big"))
    assert (call["certainty"], call["status"], call["stopped"], call["answer_bytes"]) == ("answered", 200, True, 65536)


def test_a_drip_and_silence_end(chaos, probe):
    from_s = time.monotonic()
    dripped = probe.one(chaos.url("/drip"), whole_ms=1500)
    silent = probe.one(chaos.url("/hang"), whole_ms=1000)
    assert (dripped["certainty"], dripped["failure"]) == ("answered", "timeout") and dripped["answer_bytes"] < 1000
    assert (silent["certainty"], silent["failure"]) == ("unknown", "timeout")
    assert time.monotonic() - from_s < 30  # the drip alone would take 50 s


def test_what_comes_behind_an_answer_is_not_the_next_ones(chaos, probe):
    assert probe.one(chaos.url("/late-garbage"))["status"] == 200
    time.sleep(0.3)  # it comes while the connection is idle
    assert probe.one(chaos.url("/ok"))["status"] == 200


def test_nothing_is_sent_where_nothing_can_be(chaos, probe):
    listener = Chaos()
    listener.stop()
    refused = probe.one(chaos.url("/ok").replace(str(chaos.port), str(listener.port)))
    assert (refused["certainty"], refused["failure"]) == ("unsent", "connect")
    if chaos.context:
        wrong = new_probe("guard=origin", "allow=loopback")  # the authority is not one of the system's
        call = wrong.one(chaos.url("/ok"))
        assert (call["certainty"], call["failure"], call["kind"]) == ("unsent", "tls", "config")
        wrong.stop()


def test_requests_unaccounted_is_0(chaos, probe):
    """A connection in 50 ends at a random byte. What the server took is known as sent or unknown, once; what is unsent it never saw."""
    before, count = len(chaos.taken), amount(3000, 30000)
    calls, total = probe.post(chaos.url("/one-in-50"), count=count, parallel=32, bytes=600)
    taken = chaos.taken[before:]
    by = {name: {call["id"] for call in calls if call["certainty"] == name} for name in ("unsent", "answered", "unknown")}
    assert len(calls) == count and len(set(taken)) == len(taken)
    assert set(taken) - by["answered"] - by["unknown"] == set()
    assert by["answered"] <= set(taken) and by["unknown"]
    assert chaos.kept > count / 2 and total["answered"] > count * 0.9


def test_a_body_that_was_not_handed_over_whole_is_unsent(chaos, probe):
    before = len(chaos.taken)
    calls, _ = probe.post(chaos.url("/one-in-2"), count=24, parallel=4, bytes=12_000_000, whole_ms=60000)
    unsent = {call["id"] for call in calls if call["certainty"] == "unsent"}
    assert unsent and not unsent & set(chaos.taken[before:])
    assert set(chaos.taken[before:]) <= {call["id"] for call in calls} - unsent


# ---- names ----

@pytest.fixture(scope="module")
def dns(tmp_path_factory):
    dns = Dns(tmp_path_factory.mktemp("dns"), {"one.vendor.test": ["127.0.0.1"], "mixed.vendor.test": ["127.0.0.1", "10.0.0.5"],
                                               "mixed6.vendor.test": ["127.0.0.1", "fe80::1"], "moves.vendor.test": ["127.0.0.1"],
                                               "dead.vendor.test": ["127.0.0.1", "127.0.0.77"]})
    yield dns
    dns.stop()


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    chaos = Chaos(tmp_path_factory.mktemp("named"))
    yield chaos
    chaos.stop()


def test_a_name_is_asked_once_however_many_wait(dns, tls):
    probe = new_probe("guard=tenant", "allow=loopback", f"dns={dns.address}", f"ca={tls.ca}")
    calls, _ = probe.post(tls.url("/ok", "one.vendor.test"), count=40, parallel=20)
    assert {call["certainty"] for call in calls} == {"answered"}
    assert dns.queries("one.vendor.test") == 1
    assert tls.connections <= 8  # a tenant's target has 8 calls on the way
    probe.stop()


def test_a_name_with_one_denied_address_is_refused(dns, tls):
    probe = new_probe("guard=tenant", "allow=loopback", f"dns={dns.address}", f"ca={tls.ca}")
    before = len(tls.taken)
    for name in ("mixed.vendor.test", "mixed6.vendor.test"):
        call = probe.one(tls.url("/ok", name))
        assert (call["certainty"], call["failure"], call["kind"]) == ("unsent", "blocked", "permanent"), call
    assert "private" in probe.one(tls.url("/ok", "mixed.vendor.test"))["text"]
    assert len(tls.taken) == before
    probe.stop()
    strict = new_probe("guard=tenant", f"dns={dns.address}", f"ca={tls.ca}")
    assert strict.one(tls.url("/ok", "one.vendor.test"))["failure"] == "blocked"
    strict.stop()


def test_an_address_that_changes_is_checked_again_and_the_connection_goes_where_the_check_was(dns, tls):
    probe = new_probe("guard=tenant", "allow=loopback", f"dns={dns.address}", f"ca={tls.ca}", "idle_s=1")
    url = tls.url("/ok", "moves.vendor.test")
    assert probe.one(url)["certainty"] == "answered"
    dns.set({"moves.vendor.test": ["10.0.0.5"]})
    connections = tls.connections
    time.sleep(2)  # the connection is too old; what is known of the name is not: 5 s at least
    assert probe.one(url)["certainty"] == "answered" and tls.connections == connections + 1
    time.sleep(4)
    call = probe.one(url)
    assert (call["certainty"], call["failure"]) == ("unsent", "blocked")
    probe.stop()


def test_a_name_that_is_not_there_or_is_slow_is_unsent(dns, tls):
    probe = new_probe("guard=origin", "allow=loopback", f"dns={dns.address}", f"ca={tls.ca}")
    none = probe.one(tls.url("/ok", "none.vendor.test"))
    assert (none["certainty"], none["failure"], none["kind"]) == ("unsent", "dns", "transient")
    probe.one(tls.url("/ok", "none.vendor.test"))
    assert dns.queries("none.vendor.test") == 1  # kept for 5 s
    slow = probe.one(tls.url("/ok", "a.slow.test"), whole_ms=1500)
    assert (slow["certainty"], slow["failure"]) == ("unsent", "timeout")
    probe.stop()


def test_the_next_address_is_tried_after_one_that_does_not_connect(dns, tls):
    dns.set({"dead.vendor.test": ["127.0.0.1", "127.0.0.77"]})
    probe = new_probe("guard=origin", "allow=loopback", f"dns={dns.address}", f"ca={tls.ca}", "idle_s=1")
    certainties = [probe.one(tls.url("/ok", "dead.vendor.test"))["certainty"] for _ in range(3)]
    assert certainties[-1] == "answered" and "unknown" not in certainties
    probe.stop()


def test_a_url_that_is_not_allowed_never_gets_to_dns(dns):
    probe = new_probe("guard=tenant", f"dns={dns.address}")
    for url in ("http://one.vendor.test/", "https://127.0.0.1/", "https://2130706433/", "https://user@one.vendor.test/", "https://localhost/"):
        call = probe.one(url)
        assert (call["certainty"], call["failure"]) == ("unsent", "blocked"), url
    probe.stop()
