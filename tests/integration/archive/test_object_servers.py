# SPDX-License-Identifier: Apache-2.0
"""The puppet answers as the real S3 server does where both can (one list of questions, two servers), and injects what it says it does."""
import http.client

import pytest

from tests.harness.objectstore import ceph, sigv4
from tests.harness.objectstore.client import Bucket
from tests.harness.objectstore.puppet import Fault, Puppet

KEY = "archive/tenant=a/b c+d~ä/part-0.bin"  # what Hive paths and tenants have


@pytest.fixture(scope="module", params=["ceph", "puppet"])
def bucket(request):
    if request.param == "ceph":
        yield ceph.new_bucket()
        return
    with Puppet() as puppet:
        yield puppet.bucket()


@pytest.fixture
def puppet():
    with Puppet() as running:
        yield running


def test_an_object_is_put_read_in_ranges_and_deleted(bucket):
    body = bytes(range(256)) * 400
    put = bucket.put(KEY, body)
    head = bucket.must("HEAD", KEY)
    assert head.headers["content-length"] == str(len(body)) and head.headers["etag"] == put.headers["etag"]
    assert bucket.get(KEY) == body
    part = bucket.must("GET", KEY, headers={"range": "bytes=1000-1999"})
    assert (part.status, part.body) == (206, body[1000:2000]) and part.headers["content-range"] == f"bytes 1000-1999/{len(body)}"
    assert bucket.must("GET", KEY, headers={"range": "bytes=-8"}).body == body[-8:]
    assert bucket.ask("GET", KEY, headers={"range": "bytes=200000-"}).status == 416
    bucket.delete(KEY)
    assert (bucket.ask("GET", KEY).status, bucket.ask("GET", KEY).code) == (404, "NoSuchKey")
    assert bucket.ask("DELETE", KEY).status == 204


def test_conditions_hold(bucket):
    first = bucket.put("once", b"1", if_none_match="*")
    assert bucket.ask("PUT", "once", body=b"2", headers={"if-none-match": "*"}).status == 412
    assert bucket.ask("PUT", "once", body=b"2", headers={"if-match": '"0123"'}).status == 412
    assert bucket.get("once") == b"1"
    bucket.put("once", b"2", if_match=first.headers["etag"].strip(chr(34)))  # Ceph 16 knows it without quotes only, S3 either way
    assert bucket.get("once") == b"2"


def test_a_list_comes_in_pages(bucket):
    names = [f"list/tenant=a/{number:02d} +&<é" for number in range(7)]
    for name in names:
        bucket.put(name, b"x")
    found, token, pages = [], None, 0
    while token or not pages:
        query = [("list-type", "2"), ("prefix", "list/"), ("max-keys", "3")] + ([("continuation-token", token)] if token else [])
        page = bucket.must("GET", query=query)
        found, pages = found + page.texts("Key"), pages + 1
        token = (page.texts("NextContinuationToken") or [None])[0]
    assert (found, pages) == (names, 3)
    after = bucket.must("GET", query=[("list-type", "2"), ("prefix", "list/"), ("start-after", names[4])])
    assert after.texts("Key") == names[5:]


def test_who_signs_wrongly_is_refused(bucket):
    stranger = Bucket(bucket.endpoint, bucket.name, sigv4.Credentials(bucket.credentials.key_id, "wrong"), bucket.region)
    assert (stranger.ask("GET", "x").status, stranger.ask("GET", "x").code) == (403, "SignatureDoesNotMatch")
    signed = sigv4.sign("PUT", f"/{bucket.name}/altered", (), {"host": bucket.host}, b"good", bucket.credentials, bucket.region)
    connection = http.client.HTTPConnection(bucket.host, timeout=30)
    connection.request("PUT", f"/{bucket.name}/altered", body=b"evil", headers=signed)
    assert connection.getresponse().status in (400, 403)
    connection.close()
    assert not bucket.exists("altered")


def test_a_real_bucket_that_is_full_refuses():
    bucket = ceph.new_bucket("full")
    bucket.put("one", b"x")
    ceph.limit_bucket(bucket, objects=1)
    refused = bucket.ask("PUT", "two", body=b"x")
    assert (refused.status, refused.code) == (403, "QuotaExceeded")


@pytest.mark.parametrize("fault, status, stored", [
    (Fault.ERROR_AFTER_STORE, 500, True), (Fault.ERROR_BEFORE_STORE, 500, False), (Fault.CUT_AFTER_BODY, None, True),
    (Fault.CUT_BEFORE_STORE, None, False), (Fault.SLOW_DOWN, 503, False), (Fault.CONFLICT, 409, False), (Fault.OWN_412, 412, True),
    (Fault.LOST, 200, False)], ids=lambda value: getattr(value, "name", None))
def test_a_put_meets_a_fault_once(puppet, fault, status, stored):
    puppet.next(fault, method="PUT")
    bucket = puppet.bucket()
    if status is None:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            bucket.ask("PUT", "x", body=b"body")
    else:
        assert bucket.ask("PUT", "x", body=b"body").status == status
    assert puppet.keys() == (["x"] if stored else [])
    assert bucket.ask("PUT", "y", body=b"body").status == 200 and puppet.orders_left() == 0


def test_a_get_meets_a_fault(puppet):
    bucket = puppet.bucket()
    bucket.put("x", b"0123456789")
    for fault, body in ((Fault.SHORT_BODY, b"01234"), (Fault.WRONG_BYTES, b"012344" + b"6789")):
        puppet.next(fault, method="GET", key="x")
        assert bucket.get("x") == body
    puppet.next(Fault.CUT_IN_ANSWER)
    with pytest.raises(http.client.IncompleteRead):
        bucket.get("x")
    assert bucket.get("x") == b"0123456789"


def test_states_of_the_puppet(puppet):
    bucket = puppet.bucket()
    bucket.put("x", b"1")
    puppet.full = True
    assert bucket.ask("PUT", "y", body=b"2").code == "QuotaExceeded"
    puppet.full, puppet.read_only = False, True
    assert (bucket.ask("PUT", "y", body=b"2").code, bucket.ask("DELETE", "x").code) == ("AccessDenied", "AccessDenied")
    puppet.read_only, puppet.conditions = False, False
    assert bucket.ask("PUT", "x", body=b"2", headers={"if-none-match": "*"}).status == 200
    puppet.skew_s = 1200
    skewed = bucket.ask("GET", "x")
    assert skewed.code == "RequestTimeTooSkewed" and skewed.headers["date"].endswith("GMT")
    puppet.skew_s, puppet.list_stale_s = 0, 60
    assert bucket.keys() == [] and puppet.keys() == ["x"]
    puppet.change("x", lambda body: body + b"!")
    assert bucket.get("x") == b"2!"
    bucket.delete("x")
    versions = bucket.must("GET", query=[("versions", "")])
    assert len(versions.texts("VersionId")) == 3 and not bucket.exists("x")
