# SPDX-License-Identifier: Apache-2.0
"""The five verbs, the same script for a folder, a real S3 server and the puppet; then what only the puppet does."""
import contextlib
import socket
import ssl
import subprocess
import threading
import time

import pytest

from tests.harness.length import amount

from tests.harness.objectstore import ceph, sigv4
from tests.harness.objectstore.puppet import Fault, Puppet
from tests.harness.processes import free_port
from tests.harness.storage import Storage

KEY = "units/tenant=acme/month=2026-10/part-0.parquet"
BODY = bytes(range(256)) * 5000  # 1.28 MB: more than libcurl sends without `Expect` by itself
QUICK = "&patience_s=20&timeout_s=2"


@pytest.fixture(params=["file", "ceph", "puppet", "google"])
def kind(request, tmp_path):
    """(environment, kind): an empty storage of its own."""
    if request.param == "file":
        yield {"STENTOR_STORAGE_URL": f"file://{tmp_path}/objects"}, "file"
    elif request.param == "ceph":
        yield ceph.new_bucket().environment("a/prefix"), "ceph"
    else:
        with Puppet() as puppet:
            puppet.generations = request.param == "google"
            yield {**puppet.environment("a/prefix"), **({"STENTOR_STORAGE_VENDOR": "gcs"} if puppet.generations else {})}, request.param


@pytest.fixture
def puppet():
    with Puppet() as running:
        yield running


def of(puppet, folder, more=QUICK):
    environment = puppet.environment("p")
    return Storage({**environment, "STENTOR_STORAGE_URL": environment["STENTOR_STORAGE_URL"] + more}, folder)


def test_the_five_verbs(kind, tmp_path):
    environment, name = kind
    with Storage(environment, tmp_path) as storage:
        assert storage.head(KEY)["outcome"] == "absent" and storage.get(KEY)["outcome"] == "absent"
        put = storage.put(KEY, BODY, "absent", installation="inst-1")
        assert (put["outcome"], put["bytes"]) == ("done", len(BODY)), put
        head = storage.head(KEY)
        assert (head["outcome"], head["bytes"], head["etag"], head["installation"]) == ("done", len(BODY), put["etag"], "inst-1")
        assert abs(head["modified_us"] / 1e6 - time.time()) < 60 and head["etag"]
        assert storage.gives(KEY, BODY)
        for offset, length, bytes_ in ((10, 20, 20), (len(BODY) - 5, 100, 5), (len(BODY) - 5, 0, 5), (len(BODY) + 10, 5, 0), (0, 1, 1)):
            got = storage.get(KEY, offset, length)
            assert (got["outcome"], got["bytes"]) == ("done", bytes_), (offset, length, got)
        assert storage.put(KEY, b"other", "absent")["outcome"] == "precondition"
        assert storage.put(KEY, b"other", "etag", "0123")["outcome"] == "precondition"
        assert storage.put("not/there", b"other", "etag", "0123")["outcome"] == "precondition"
        assert storage.gives(KEY, BODY)
        changed = storage.put(KEY, b"new", "etag", put["etag"], verb="put-memory")
        assert changed["outcome"] == "done" and changed["etag"] != put["etag"] and storage.gives(KEY, b"new")
        assert storage.put(KEY, b"always")["outcome"] == "done" and storage.gives(KEY, b"always")
        assert storage.put("empty", b"")["outcome"] == "done" and storage.gives("empty", b"")
        assert storage.list() == ["empty", KEY] and storage.list("units/tenant=acme/") == [KEY] and storage.list("x") == []
        assert storage.delete(KEY)["outcome"] == "done" and storage.delete(KEY)["outcome"] == "done"
        assert storage.head(KEY)["outcome"] == "absent" and storage.list() == ["empty"]


def test_many_at_once(kind, tmp_path):
    with Storage(kind[0], tmp_path) as storage:
        answer = storage.ask("flood", "many/", 120, 120)
        assert answer == {"freed": True, "closed": True, "done": 120, "failed": 0, "cancelled": 0}
        assert storage.list("many/") == [f"many/{number:05d}" for number in range(120)]


@pytest.mark.parametrize("end", [0, 1, 30])
def test_a_storage_is_freed_with_calls_open(tmp_path, puppet, end):
    """Some are on the way, some wait for their turn, some for their next attempt: each ends once, cancelled, and nothing of them is left."""
    puppet.chaos(0.3, seed=5)
    with of(puppet, tmp_path) as storage:
        answer = storage.ask("flood", "freed/", 60, end)
        assert answer["freed"] and answer["closed"] and answer["done"] + answer["failed"] == 60, answer
        assert answer["done"] >= end and answer["cancelled"] == answer["failed"] >= 20, answer


def test_other_bytes_than_announced_are_refused(kind, tmp_path):
    environment, _ = kind
    with Storage(environment, tmp_path) as storage:
        refused = storage.put(KEY, BODY, verb="put-other")
        assert (refused["outcome"], refused["kind"]) == ("failed", "permanent"), refused
        assert storage.head(KEY)["outcome"] == "absent"


def test_a_key_that_no_storage_may_have_is_refused(kind, tmp_path):
    environment, _ = kind
    with Storage(environment, tmp_path) as storage:
        for key in ("../x", "a//b", "a b", "/a", "a/", "é"):
            assert storage.head(key)["kind"] == "permanent"


def test_a_list_of_many_pages_ascends(tmp_path, puppet):
    puppet.page_max = 7
    names = sorted(f"list/{'a' if number % 3 else 'b'}={number:03d}" for number in range(60))
    for name in names:
        puppet.bucket().put(f"p/{name}", b"x")
    puppet.bucket().put("p/list/strange name+%2B&<é>", b"x")
    puppet.bucket().put("other/prefix", b"x")
    with of(puppet, tmp_path) as storage:
        puppet.next(Fault.CUT_IN_ANSWER, times=2, method="GET")
        assert storage.list("list/") == sorted([*names, "list/strange name+%2B&<é>"], key=str.encode)


def test_a_real_list_of_many_pages(tmp_path):
    bucket = ceph.new_bucket("pages")
    names = [f"n/{number:04d}" for number in range(1003)]
    for name in names:
        bucket.put(name, b"")
    with Storage(bucket.environment(), tmp_path) as storage:
        assert storage.list("n/") == names


@pytest.mark.parametrize("fault", [Fault.ERROR_AFTER_STORE, Fault.ERROR_BEFORE_STORE, Fault.CUT_AFTER_BODY, Fault.CUT_BEFORE_STORE,
                                   Fault.SLOW_DOWN, Fault.CONFLICT, Fault.SILENCE], ids=lambda fault: fault.name)
def test_a_put_if_absent_survives(tmp_path, puppet, fault):
    """Its answer is lost, or it is refused for a while: it is done in the end, and stored once."""
    with of(puppet, tmp_path) as storage:
        puppet.next(fault, times=1 if fault is Fault.SILENCE else 2, method="PUT")
        assert storage.put(KEY, BODY, "absent")["outcome"] == "done"
        assert puppet.orders_left() == 0 and len(puppet.store[f"p/{KEY}"]) == 1 and storage.gives(KEY, BODY)
        assert not [refused for refused in puppet.refused if refused.status == 403]


def test_a_lost_answer_does_not_claim_what_another_stored(tmp_path, puppet):
    """412 after a cut attempt that stored nothing: another's object of the same size is there."""
    with of(puppet, tmp_path) as storage:
        puppet.bucket().put(f"p/{KEY}", b"theirs")
        puppet.next(Fault.CUT_BEFORE_STORE, method="PUT")
        assert storage.put(KEY, b"ours!!", "absent")["outcome"] == "precondition" and storage.gives(KEY, b"theirs")


def test_a_412_without_a_lost_answer_is_a_precondition(tmp_path, puppet):
    with of(puppet, tmp_path) as storage:
        puppet.next(Fault.OWN_412, method="PUT")
        assert storage.put(KEY, BODY, "absent")["outcome"] == "precondition"


def test_a_get_goes_on_where_it_was_cut(tmp_path, puppet):
    puppet.bucket().put(f"p/{KEY}", BODY)
    with of(puppet, tmp_path) as storage:
        puppet.next(Fault.CUT_IN_ANSWER, times=3, method="GET")
        assert storage.gives(KEY, BODY)
        ranges = [request.headers.get("range") for request in puppet.requests if request.method == "GET"]
        assert ranges[0] is None and ranges[1] == f"bytes={len(BODY) // 2}-" and len(ranges) == 4


def test_a_get_does_not_mix_two_objects(tmp_path, puppet):
    puppet.bucket().put(f"p/{KEY}", BODY)
    with of(puppet, tmp_path, QUICK) as storage:
        puppet.delay_s = 0.3
        puppet.next(Fault.CUT_IN_ANSWER, method="GET")
        storage.send("get", KEY, 0, 0)
        time.sleep(0.45)  # the first half is there, the second one asked for
        puppet.bucket().put(f"p/{KEY}", BODY[::-1])
        answer = storage.answer()
        assert answer["outcome"] == "failed" or answer["bytes"] == len(BODY), answer
        assert answer["outcome"] == "failed" or storage.gives(KEY, BODY[::-1])


def test_wrong_and_short_bytes_are_for_the_hash_to_find(tmp_path, puppet):
    puppet.bucket().put(f"p/{KEY}", BODY)
    with of(puppet, tmp_path) as storage:
        for fault in (Fault.WRONG_BYTES, Fault.SHORT_BODY):
            puppet.next(fault, method="GET")
            assert not storage.gives(KEY, BODY)
        assert storage.gives(KEY, BODY)


def test_a_clock_that_is_off_is_taken_from_the_server(tmp_path, puppet):
    puppet.skew_s = 4000
    with of(puppet, tmp_path) as storage:
        assert storage.head(KEY)["outcome"] == "absent"  # a HEAD has no word for it
        assert storage.put(KEY, BODY)["outcome"] == "done" and storage.gives(KEY, BODY)
        assert len([refused for refused in puppet.refused if refused.code == "RequestTimeTooSkewed"]) == 1
        puppet.skew_s = -4000
        assert storage.put(KEY, b"2")["outcome"] == "done" and storage.list() == [KEY]


def refusal(environment, folder, *words):
    with Storage(environment, folder) as storage:
        answer = storage.ask(*words)
        assert answer["outcome"] == "failed", answer
        return answer["kind"], answer["error"]


def test_what_the_operator_must_mend_is_named(tmp_path, puppet):
    right = puppet.environment("p")
    (tmp_path / "body").write_bytes(b"x")
    put = ("put", KEY, tmp_path / "body", "always", "-", "-", "-")
    kind, text = refusal({**right, "STENTOR_STORAGE_SECRET": "wrong"}, tmp_path, *put)
    assert kind == "config" and "SignatureDoesNotMatch" in text and "STENTOR_STORAGE_SECRET" in text
    kind, text = refusal({**right, "STENTOR_STORAGE_KEY_ID": "unknown"}, tmp_path, *put)
    assert kind == "config" and "STENTOR_STORAGE_KEY_ID" in text
    kind, text = refusal({**right, "STENTOR_STORAGE_SESSION_TOKEN": "old"}, tmp_path, *put)
    assert kind == "config" and "STENTOR_STORAGE_SESSION_TOKEN" in text
    url = right["STENTOR_STORAGE_URL"]
    kind, text = refusal({**right, "STENTOR_STORAGE_URL": url.replace("s3://puppet", "s3://another")}, tmp_path, "list", "-")
    assert kind == "config" and "NoSuchBucket" in text and "STENTOR_STORAGE_URL" in text
    kind, text = refusal({**right, "STENTOR_STORAGE_URL": url.replace("eu-test-1", "eu-test-2")}, tmp_path, *put)
    assert kind == "config" and "region" in text
    kind, text = refusal(right, tmp_path, *put[:-1], "DEEP")
    assert kind == "config" and "InvalidStorageClass" in text
    puppet.read_only = True
    kind, text = refusal(right, tmp_path, *put)
    assert kind == "config" and "AccessDenied" in text and "PRODUCTION.md" in text
    puppet.read_only, puppet.full = False, True
    kind, text = refusal(right, tmp_path, *put)
    assert kind == "transient" and "QuotaExceeded" in text and "full" in text
    assert refusal({**right, "STENTOR_STORAGE_URL": url.replace(str(puppet.port), str(free_port())) + "&patience_s=1"}, tmp_path, *put)[0] == "transient"


def test_a_real_server_names_the_same(tmp_path):
    bucket = ceph.new_bucket("full")
    right = bucket.environment()
    (tmp_path / "body").write_bytes(b"x")
    put = ("put", KEY, tmp_path / "body", "always", "-", "-", "-")
    assert "SignatureDoesNotMatch" in refusal({**right, "STENTOR_STORAGE_SECRET": "wrong"}, tmp_path, *put)[1]
    assert "STENTOR_STORAGE_KEY_ID" in refusal({**right, "STENTOR_STORAGE_KEY_ID": "unknown"}, tmp_path, *put)[1]
    missing = {**right, "STENTOR_STORAGE_URL": right["STENTOR_STORAGE_URL"].replace(bucket.name, "missing-bucket")}
    assert "NoSuchBucket" in refusal(missing, tmp_path, "list", "-")[1]
    bucket.put("one", b"x")
    ceph.limit_bucket(bucket, objects=1)
    kind, text = refusal(right, tmp_path, *put)
    assert kind == "transient" and "QuotaExceeded" in text


def test_a_session_token_and_a_storage_class_are_sent(tmp_path):
    with Puppet(credentials=sigv4.Credentials("AKIASESSION", "s+/=", "token+/=")) as puppet, Storage(puppet.environment("p"), tmp_path) as storage:
        assert storage.put(KEY, b"cold", storage_class="GLACIER_IR", installation="inst-2")["outcome"] == "done"
        assert puppet.store[f"p/{KEY}"][0].headers["x-amz-storage-class"] == "GLACIER_IR"
        assert storage.head(KEY)["installation"] == "inst-2" and not puppet.refused


def certificate(folder, name):
    """(certificate and key, in one file) of a server with this name or address, signed by itself."""
    file = folder / f"{name.partition(':')[2]}.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", f"subjectAltName={name}", "-keyout", f"{file}.key", "-out", f"{file}.crt"], check=True, capture_output=True)
    file.write_bytes((folder / f"{file.name}.crt").read_bytes() + (folder / f"{file.name}.key").read_bytes())
    return file


def test_a_certificate_is_checked(tmp_path, puppet):
    right, other = certificate(tmp_path, "IP:127.0.0.1"), certificate(tmp_path, "DNS:another.test")
    (tmp_path / "body").write_bytes(b"x")
    put = ("put", KEY, tmp_path / "body", "always", "-", "-", "-")
    environment = puppet.environment("p")
    url = environment["STENTOR_STORAGE_URL"].replace("http://", "https://")
    for served, trusted, done in ((right, right, True), (right, None, False), (right, other, False), (other, other, False)):
        with Tls(puppet, served) as port:
            own = url.replace(str(puppet.port), str(port)) + (f"&ca_file={trusted}.crt" if trusted else "")
            with Storage({**environment, "STENTOR_STORAGE_URL": own}, tmp_path) as storage:
                answer = storage.ask(*put)
                assert answer["outcome"] == ("done" if done else "failed"), (served, trusted, answer)
                assert done or (answer["kind"] == "config" and "certificate" in answer["error"]), answer


class Tls:
    """Another port of the puppet, over TLS."""

    def __init__(self, puppet, file):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        self.server = type(puppet._server)(("127.0.0.1", 0), puppet._server.RequestHandlerClass)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self.server.server_address[1]

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_a_connection_that_ends_in_the_middle_of_a_body_is_tried_again(tmp_path):
    """Over TLS, by a program that does not ignore SIGPIPE, until patience ends."""
    file = certificate(tmp_path, "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    with context.wrap_socket(listener.accept()[0], server_side=True) as client:
                        client.recv(1000)
        threading.Thread(target=serve, daemon=True).start()
        url = f"s3://bucket?endpoint=https://127.0.0.1:{listener.getsockname()[1]}&ca_file={file}.crt&patience_s=1&timeout_s=2"
        with Storage({"STENTOR_STORAGE_URL": url, "STENTOR_STORAGE_KEY_ID": "k", "STENTOR_STORAGE_SECRET": "s"}, tmp_path) as storage:
            answer = storage.put(KEY, BODY * 20)
            assert (answer["outcome"], answer["kind"]) == ("failed", "transient"), answer
        listener.shutdown(socket.SHUT_RDWR)


def test_a_version_is_deleted_for_good(tmp_path, puppet):
    with of(puppet, tmp_path) as storage:
        first, second = storage.put(KEY, b"1"), storage.put(KEY, b"2")
        assert first["version"] and first["version"] != second["version"]
        assert storage.delete(KEY, first["version"])["outcome"] == "done"
        assert [version.id for version in puppet.store[f"p/{KEY}"]] == [second["version"]] and storage.gives(KEY, b"2")
        assert storage.delete(KEY, "v999999")["outcome"] == "done"


def test_a_server_without_conditions_is_looked_at_first(tmp_path, puppet):
    puppet.conditions = False
    with of(puppet, tmp_path, QUICK + "&condition=none") as storage:
        first = storage.put(KEY, b"1", "absent")
        assert first["outcome"] == "done" and storage.put(KEY, b"2", "absent")["outcome"] == "precondition"
        assert storage.put(KEY, b"3", "etag", "0123")["outcome"] == "precondition" and storage.gives(KEY, b"1")
        assert storage.put(KEY, b"4", "etag", first["etag"])["outcome"] == "done" and storage.gives(KEY, b"4")


def test_patience_ends(tmp_path, puppet):
    with of(puppet, tmp_path, "&patience_s=1") as storage:
        puppet.next(Fault.SLOW_DOWN, times=1000)
        began = time.monotonic()
        answer = storage.put(KEY, b"1", "absent")
        assert (answer["outcome"], answer["kind"]) == ("failed", "transient") and "SlowDown" in answer["error"] and "attempts" in answer["error"]
        assert 1 <= time.monotonic() - began < 5


def test_patience_is_for_what_gets_nowhere(tmp_path, puppet):
    """A large object over a slow line takes longer than patience, and is still tried again."""
    puppet.bucket().put(f"p/{KEY}", BODY)
    puppet.delay_s = 0.6
    with of(puppet, tmp_path, "&patience_s=1") as storage:
        puppet.next(Fault.CUT_IN_ANSWER, times=4, method="GET")
        assert storage.gives(KEY, BODY) and puppet.orders_left() == 0
        puppet.delay_s = 1.5
        puppet.next(Fault.ERROR_BEFORE_STORE, method="PUT")
        assert storage.put("slow", b"1", "absent")["outcome"] == "done"


@pytest.mark.parametrize("seed", [1, 2])
def test_objects_are_the_same_after_chaos(tmp_path, puppet, seed):
    """A fifth of all requests fails or loses its answer: each object is there once, none is another's."""
    puppet.chaos(0.2, seed=seed)
    bodies = {f"c/{number:03d}": b"%d" % number * 500 for number in range(amount(25, 200))}
    with of(puppet, tmp_path) as storage:
        for key, body in bodies.items():
            assert storage.put(key, body, "absent")["outcome"] == "done"
        assert storage.list("c/") == sorted(bodies)
        for key, body in bodies.items():
            assert storage.gives(key, body)
        for key in list(bodies)[::2]:
            assert storage.delete(key)["outcome"] == "done"
        puppet.calm()
        assert storage.list("c/") == sorted(bodies)[1::2]
    assert all(len(versions) == 1 for key, versions in puppet.store.items() if not versions[-1].deleted)
