# SPDX-License-Identifier: Apache-2.0
"""The one address: nginx with the file that is shipped, in front of services that follow a script."""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tests.harness.cost import resident_mb
from tests.harness.pipeline import Pipeline
from tests.harness.processes import BIN, HOME, Nginx, free_port, wait_until
from tests.harness.upstream import Upstream

CONFIGURE = HOME / "deploy" / "nginx" / "configure"


class Edge:
    """nginx and the three services behind it; a script in place of one: Edge(folder, ingest=script)."""

    def __init__(self, folder, scripts=None, nginx=Nginx, **values):
        scripts = scripts or {}
        self.services = {name: Upstream(name, scripts.get(name)) for name in ("ingest", "gateway", "webhook")}
        behind = {name.upper(): service.address for name, service in self.services.items()}
        self.port = free_port()
        self.nginx = nginx(folder / "nginx", self.port, **{**behind, **values}).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.nginx.alive():
            self.nginx.kill()
        for service in self.services.values():
            service.stop()

    def ask(self, method, path, body=None, headers=None, timeout=10):
        """(status, headers, parsed body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, dict(answer.getheaders()), json.loads(text) if text else None
        finally:
            connection.close()

    def own_log(self):
        return (self.nginx.folder / "own.log").read_text()

    def worker(self):
        pids = subprocess.run(["pgrep", "-P", str(self.nginx.child.pid)], capture_output=True, text=True, check=True).stdout.split()
        assert len(pids) == 1, pids
        return int(pids[0])


@contextlib.contextmanager
def open_folder():
    """One that nginx's own user reaches, which pytest's are not."""
    made = Path(tempfile.mkdtemp(prefix="stentor-edge-"))
    os.chmod(made, 0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def edge():
    with open_folder() as made, Edge(made) as running:
        yield running


@pytest.fixture
def folder():
    with open_folder() as made:
        yield made


def check_problem(answer, status, slug):
    """A problem document as the services write it, by nginx."""
    got, headers, problem = answer
    assert (got, headers["Content-Type"]) == (status, "application/problem+json"), answer
    assert problem["type"] == f"urn:stentor:problem:{slug}" and problem["status"] == status and problem["title"] and problem["detail"]
    assert problem["instance"] == f"urn:stentor:request:{headers['Stentor-Request-Id']}"
    return problem


ROUTES = [
    ("POST", "/v1/notifications", "ingest"), ("GET", "/v1/notifications?limit=3", "gateway"), ("GET", "/v1/notifications/ntf_1", "gateway"),
    ("POST", "/v1/notifications/ntf_1/cancel", "gateway"),
    ("POST", "/v1/batches", "ingest"), ("GET", "/v1/batches?cursor=a", "ingest"), ("PUT", "/v1/batches/b1/members?part=1", "ingest"),
    ("GET", "/v1/batches/b1", "ingest"), ("POST", "/v1/batches/b1/start", "ingest"), ("GET", "/v1/batchesque", "gateway"),
    ("POST", "/v1/inbound/acme/sendgrid", "webhook"), ("GET", "/v1/opt-out/token", "webhook"), ("POST", "/v1/opt-out/token", "webhook"),
    ("GET", "/v1/templates/a%2Fb", "gateway"), ("PUT", "/v1/tenant", "gateway"), ("DELETE", "/v1/recipients/r1", "gateway"),
    ("GET", "/v1/suppressions/export", "gateway"), ("POST", "/v1/triggers/t/try", "gateway"), ("GET", "/v1/api-keys", "gateway"),
    ("PATCH", "/v1/anything-new", "gateway"), ("GET", "/v1/live/status", "gateway"),
]


@pytest.mark.parametrize("method,path,service", ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
def test_each_route_reaches_its_service(edge, method, path, service):
    status, headers, seen = edge.ask(method, path, b"{}" if method in ("POST", "PUT", "PATCH") else None)
    assert status == 200 and seen["service"] == service
    assert seen["line"] == f"{method} {path} HTTP/1.1", "as the client wrote it"
    assert headers["Stentor-Request-Id"] == f"req_of_{service}", "the service's own"


def test_nothing_but_v1_is_reached(edge):
    for path in ("/", "/metrics", "/readyz", "/v2/notifications", "/.own", "//v1/notifications", "/v1"):
        check_problem(edge.ask("GET", path), 404, "not-found")
    connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=5)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok\n"
    connection.close()


def test_the_clients_address_is_handed_on_and_its_own_word_is_not(edge):
    forged = {"X-Forwarded-For": "10.1.2.3, 127.0.0.2", "Forwarded": "for=10.1.2.3", "X-Forwarded-Proto": "https"}
    connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=5, source_address=("127.0.0.9", 0))
    connection.request("GET", "/v1/tenant", headers={**forged, "Authorization": "Bearer k", "Idempotency-Key": "i", "If-Match": '"7"'})
    seen = json.loads(connection.getresponse().read())["headers"]
    connection.close()
    assert seen["x-forwarded-for"] == "127.0.0.9" and seen["x-forwarded-proto"] == "http" and "forwarded" not in seen
    assert (seen["authorization"], seen["idempotency-key"], seen["if-match"]) == ("Bearer k", "i", '"7"')


def test_a_load_balancer_in_front_is_believed_when_it_is_named(folder):
    with Edge(folder, PROXIES="127.0.0.7,10.0.0.0/8") as edge:
        for source, client in (("127.0.0.7", "203.0.113.5"), ("127.0.0.8", "127.0.0.8")):
            connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=5, source_address=(source, 0))
            connection.request("GET", "/v1/tenant", headers={"X-Forwarded-For": "203.0.113.99, 203.0.113.5, 10.0.0.1"})
            assert json.loads(connection.getresponse().read())["headers"]["x-forwarded-for"] == client
            connection.close()


def test_connections_to_the_services_are_kept(edge):
    before = edge.services["gateway"].accepted
    for _ in range(20):
        assert edge.ask("GET", "/v1/tenant")[0] == 200
    assert edge.services["gateway"].accepted - before <= 1


# ---- what nginx answers itself ----------------------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_a_413_that_names_it(edge):
    for path, most in (("/v1/notifications", 4194304), ("/v1/inbound/acme/meta", 4194304), ("/v1/suppressions", 4194304)):
        asked = [len(service.requests) for service in edge.services.values()]
        problem = check_problem(edge.ask("POST", path, b"x" * (most + 1)), 413, "body-too-large")
        assert f"at most {most} bytes" in problem["detail"]
        assert asked == [len(service.requests) for service in edge.services.values()], "no service was asked"
        assert edge.ask("POST", path, b"x" * most)[2]["body"] == most


def test_a_chunked_body_over_the_limit_is_one_too(edge):
    answer = edge.ask("POST", "/v1/notifications", iter([b"x" * 65536] * 70))
    check_problem(answer, 413, "body-too-large")


def test_a_service_that_is_away_is_a_502_and_the_next_request_meets_it_again(folder):
    with Edge(folder) as edge:
        edge.services["ingest"].stop()
        status, headers, problem = answer = edge.ask("POST", "/v1/notifications", b"{}")
        check_problem(answer, 502, "no-answer")
        assert headers["Retry-After"] == "2" and "Idempotency-Key" in problem["hint"]
        assert edge.ask("GET", "/v1/tenant")[0] == 200, "the others go on"
        log = edge.own_log()
        assert headers["Stentor-Request-Id"] in log and "502 POST" in log and "connected_after=-" in log and "/v1/" not in log
        edge.services["ingest"].start()
        assert edge.ask("POST", "/v1/notifications", b"{}")[0] == 200


def test_a_service_that_is_slow_is_a_504(folder):
    def slow(request, client):
        list(request.body())
        time.sleep(3)

    with Edge(folder, {"ingest": slow}, ANSWER_S="1") as edge:
        problem = check_problem(edge.ask("POST", "/v1/notifications", b"{}"), 504, "late-answer")
        assert "within 1 seconds" in problem["detail"] and "Idempotency-Key" in problem["hint"]
        assert len(edge.services["ingest"].requests) == 1


def bad_requests(port):
    return {
        "a long head": (b"GET /v1/x HTTP/1.1\r\nHost: a\r\nX-A: " + b"x" * 40000 + b"\r\n\r\n", 400),
        "a long target": (b"GET /v1/" + b"x" * 40000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        "no host": (b"GET /v1/x HTTP/1.1\r\n\r\n", 400),
        "no request line": (b"GARBAGE\r\n\r\n", 400),
        "another coding": (b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        "a length beside chunks": (b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
        "two lengths": (b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
        "a trace": (b"TRACE /v1/x HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    }


@pytest.mark.parametrize("what", bad_requests(0))
def test_what_cannot_be_read_is_refused_as_a_problem_and_goes_no_further(edge, what):
    raw, status = bad_requests(edge.port)[what]
    asked = [len(service.requests) for service in edge.services.values()]
    with socket.create_connection(("127.0.0.1", edge.port), 5) as client:
        client.sendall(raw)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        assert answer.status == status and json.loads(answer.read())["status"] == status
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert asked == [len(service.requests) for service in edge.services.values()]


def test_what_clients_send_wrong_writes_no_line(folder):
    with Edge(folder, INGEST=f"127.0.0.1:{free_port()}") as edge:
        for raw, _ in bad_requests(edge.port).values():
            with socket.create_connection(("127.0.0.1", edge.port), 5) as client:
                client.sendall(raw)
                assert client.recv(1000)
        assert edge.ask("GET", "/nothing")[0] == 404 and edge.ask("POST", "/v1/inbound/a/b", b"x" * 4194305)[0] == 413
        assert edge.ask("POST", "/v1/notifications", b"{}")[0] == 502
        wait_until(edge.own_log, 20, "the line of the 502")
        assert [line.split()[2:4] for line in edge.own_log().splitlines()] == [["502", "POST"]]


def test_the_lines_may_go_to_standard_error(folder):
    with Edge(folder, INGEST=f"127.0.0.1:{free_port()}", LOG="/dev/stderr") as edge:
        request = edge.ask("POST", "/v1/notifications", b"{}")[1]["Stentor-Request-Id"]
        wait_until(lambda: request in edge.nginx.log.read_text(), 20, "the line")
        assert not (edge.nginx.folder / "own.log").exists()


# ---- slow clients ---------------------------------------------------------------------------------------------------------------


class Impatient(Nginx):
    """The shipped file with shorter times and fewer places, as a row of (what it says, what it is to say)."""

    TIMES = (("client_header_timeout 10s;", "client_header_timeout 1s;"), (" send_timeout 60s;", " send_timeout 1s;"),
             ("worker_connections 16384;", "worker_connections 32;"))

    def configured(self, text):
        for line, shorter in self.TIMES:
            assert text.count(line) == 1
            text = text.replace(line, shorter)
        return text


def ended(client):
    """The server has closed it."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_head_that_comes_byte_by_byte_ends_after_its_time(folder):
    with Edge(folder, nginx=Impatient) as edge, socket.create_connection(("127.0.0.1", edge.port), 5) as client:
        started = time.monotonic()
        client.settimeout(0.1)
        client.sendall(b"GET /v1/tenant HTTP/1.1\r\nX-A: ")
        while time.monotonic() - started < 10:
            try:
                client.sendall(b"b")
                if ended(client):
                    break
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                break
        assert 0.9 < time.monotonic() - started < 9 and edge.services["gateway"].requests == []


def test_a_client_in_every_place_keeps_no_other_out_for_long(folder):
    with Edge(folder, nginx=Impatient) as edge:
        idle = [socket.create_connection(("127.0.0.1", edge.port), 5) for _ in range(60)]
        assert edge.ask("GET", "/v1/tenant")[0] == 200, "one that sends nothing gives its place up"
        halves = [socket.create_connection(("127.0.0.1", edge.port), 5) for _ in range(60)]
        for client in halves:
            client.sendall(b"GET /v1/t")
        wait_until(lambda: edge.ask("GET", "/v1/tenant")[0] == 200, 10, "a place when the heads' time is over")
        for client in idle + halves:
            client.close()


def test_a_reader_that_takes_nothing_is_given_up_and_so_is_its_answer(folder):
    gone = threading.Event()

    def export(request, client):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 << 20))
        try:
            for _ in range(1024):
                client.sendall(b"y" * 65536)
        except OSError:
            gone.set()

    with Edge(folder, {"gateway": export}, nginx=Impatient) as edge, socket.create_connection(("127.0.0.1", edge.port), 30) as client:
        client.sendall(b"GET /v1/suppressions/export HTTP/1.1\r\nHost: a\r\n\r\n")
        assert gone.wait(10), "the service is let go"


# ---- nothing is sent twice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method,path", [("POST", "/v1/notifications"), ("PUT", "/v1/batches/b/members?part=1"), ("GET", "/v1/batches/b")])
def test_a_request_whose_service_dies_in_the_middle_is_not_sent_again(folder, method, path):
    seen = []

    def die(request, client):
        seen.append(sum(map(len, request.body())))

    other = Upstream("other", die)
    first = Upstream("first", die)
    with Edge(folder, INGEST=f"{first.address},{other.address}") as edge:
        check_problem(edge.ask(method, path, b"{}" * 50 if method != "GET" else None), 502, "no-answer")
        time.sleep(0.2)  # for a repeat that must not come
        assert seen == [100 if method != "GET" else 0]
    for service in (first, other):
        service.stop()


def test_a_service_that_dies_while_the_body_comes_gets_no_second_one(folder):
    started = []

    def die(request, client):
        started.append(next(request.body()))

    with Edge(folder, {"ingest": die}) as edge, socket.create_connection(("127.0.0.1", edge.port), 5) as client:
        client.sendall(b"POST /v1/notifications HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        assert answer.status == 502 and json.loads(answer.read())["type"].endswith("no-answer")
        assert len(started) == 1


# ---- streams ----------------------------------------------------------------------------------------------------------------


def test_a_big_upload_arrives_as_it_is_sent_and_takes_no_memory_and_no_file(folder):
    total, piece = 100 * 1024 * 1024, b"x" * 262144
    arrived = [0]

    def count(request, client):
        for part in request.body():
            arrived[0] += len(part)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with Edge(folder, {"ingest": count}, BODY_MAX=str(total)) as edge:
        assert edge.ask("GET", "/v1/tenant")[0] == 200
        before = resident_mb(edge.worker())
        connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=60)
        connection.putrequest("PUT", "/v1/batches/b/members?part=1")
        connection.putheader("Content-Length", str(total))
        connection.endheaders()
        for sent in range(0, total, len(piece)):
            connection.send(piece)
            if sent == total // 2 // len(piece) * len(piece):
                wait_until(lambda: arrived[0] > total // 4, 10, "a quarter arriving while the rest is not sent yet")
        assert connection.getresponse().status == 200
        connection.close()
        assert arrived[0] == total
        assert resident_mb(edge.worker()) - before < 4
        assert not any((edge.nginx.folder / "body").iterdir())


def test_an_answer_bigger_than_the_memory_goes_no_faster_than_its_reader(folder):
    total = 64 * 1024 * 1024
    given = [0]

    def export(request, client):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        for _ in range(total // 65536):
            client.sendall(b"y" * 65536)
            given[0] += 65536

    with Edge(folder, {"gateway": export}) as edge, socket.create_connection(("127.0.0.1", edge.port), 30) as client:
        client.sendall(b"GET /v1/suppressions/export HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        client.recv(1000)
        held = wait_until(lambda: (time.sleep(0.2), given[0])[1] == given[0] and given[0], 10, "the service waiting for the reader")
        assert held < total / 2 and not any((edge.nginx.folder / "proxy").iterdir())
        size = 1000
        while got := client.recv(1 << 20):
            size += len(got)
        assert size >= total
        assert resident_mb(edge.worker()) < 30


def test_server_sent_events_are_written_as_they_come(folder):
    next_one = threading.Event()

    def events(request, client):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(3):
            text = b"data: %d\n\n" % number
            client.sendall(b"%x\r\n%s\r\n" % (len(text), text))
            next_one.wait(5)
            next_one.clear()

    with Edge(folder, {"gateway": events}) as edge:
        connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=3)
        connection.request("GET", "/v1/live/status")
        answer = connection.getresponse()
        for number in range(3):
            assert answer.readline() == b"data: %d\n" % number, "before the service went on"
            answer.readline()
            next_one.set()
        connection.close()


# ---- its life ---------------------------------------------------------------------------------------------------------------


def test_it_is_there_at_once_lives_in_its_folder_and_ends_after_its_last_answer(folder):
    asked, go_on = threading.Event(), threading.Event()

    def wait(request, client):
        asked.set()
        go_on.wait(5)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    started = time.monotonic()
    with Edge(folder, {"gateway": wait}) as edge:
        assert time.monotonic() - started < 5
        assert int((edge.nginx.folder / "nginx.pid").read_text()) == edge.nginx.child.pid
        answers = []
        asker = threading.Thread(target=lambda: answers.append(edge.ask("GET", "/v1/tenant")[0]))
        asker.start()
        assert asked.wait(5)
        edge.nginx.child.send_signal(signal.SIGQUIT)
        wait_until(lambda: not edge.nginx.ready(), 20, "no new connections")
        go_on.set()
        asker.join()
        assert answers == [200] and edge.nginx.exit_status(5) == 0


def make_certificate(folder):
    certificate, key = folder / "tls.pem", folder / "tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    os.chmod(key, 0o644)
    return certificate, key


def test_it_ends_tls(folder):
    certificate, key = make_certificate(folder)
    with Edge(folder, TLS_CERTIFICATE=str(certificate), TLS_KEY=str(key)) as edge:
        context = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", edge.port, timeout=5, context=context)
        connection.request("GET", "/v1/tenant")
        assert json.loads(connection.getresponse().read())["headers"]["x-forwarded-proto"] == "https"
        assert connection.sock.version() == "TLSv1.3"
        connection.close()
        check_problem(edge.ask("GET", "/v1/tenant"), 400, "bad-request")


@pytest.mark.parametrize("trusted,status,says", [(True, 0, '"x-forwarded-proto":"https"'), (False, 1, "certificate")])
def test_the_command_line_asks_over_tls_whom_it_was_given(folder, trusted, status, says):
    """A certificate that no authority has signed is taken from the one file that names it."""
    certificate, key = make_certificate(folder)
    with Edge(folder, TLS_CERTIFICATE=str(certificate), TLS_KEY=str(key)) as edge:
        settings = {"PATH": os.environ["PATH"], "STENTOR_API_URL": f"https://127.0.0.1:{edge.port}", "STENTOR_API_KEY": "stn_a.b",
                    **({"STENTOR_API_CA_FILE": str(certificate)} if trusted else {})}
        done = subprocess.run([BIN / "stentor", "tenant", "show", "--json"], env=settings, capture_output=True, text=True, timeout=20)
        assert done.returncode == status and says in done.stdout + done.stderr, done


@pytest.mark.parametrize("words,says", [
    (["LISTEN="], "LISTEN is empty"),
    (["INGEST=127.0.0.1:1;deny"], "INGEST '127.0.0.1:1;deny'"),
    (["FOLDER=/tmp/$(id)"], "FOLDER '/tmp/$(id)'"),
    (["SOURCE=127.0.0.1 x"], "SOURCE '127.0.0.1 x'"),
    (["BODY_MAX=4m"], "BODY_MAX '4m' is no positive number"),
    (["ANSWER_S=0"], "ANSWER_S '0' is no positive number"),
    (["TLS_KEY=/k"], "TLS_CERTIFICATE and TLS_KEY belong together"),
    (["PORT=8080"], "'PORT=8080' is no NAME=VALUE (names: LISTEN INGEST"),
    (["8080"], "'8080' is no NAME=VALUE"),
])
def test_a_value_that_cannot_be_is_named(words, says):
    done = subprocess.run([CONFIGURE, *words], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "" and says in done.stderr


def test_the_values_may_come_from_the_environment_and_the_folder_may_have_a_space(folder):
    own = folder / "own folder"
    own.mkdir()
    environment = {"PATH": os.environ["PATH"], "STENTOR_NGINX_LISTEN": "127.0.0.1:1234", "STENTOR_NGINX_FOLDER": str(own)}
    text = subprocess.run([CONFIGURE, "INGEST=127.0.0.1:5,127.0.0.1:6"], env=environment, capture_output=True, text=True, check=True).stdout
    assert "listen 127.0.0.1:1234;" in text and "server 127.0.0.1:5 " in text and "server 127.0.0.1:6 " in text and "${" not in text
    (own / "nginx.conf").write_text(text)
    done = subprocess.run(["/usr/sbin/nginx", "-e", "stderr", "-t", "-c", own / "nginx.conf"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- with the real services -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real():
    running = Pipeline({"STENTOR_WEBHOOK_CLIENT_CONNECTIONS": 3, "STENTOR_INGEST_REQUEST_MS": 1500}).start(["ingest", "gateway", "webhook-receiver"])
    yield running
    running.stop()


def begin(pipeline, path, source="127.0.0.1", **headers):
    """A request whose body does not end."""
    client = socket.create_connection(("127.0.0.1", pipeline.api_port), 10, source_address=(source, 0))
    fields = {"Host": "a", "Content-Length": "500000", **headers}
    client.sendall(f"POST {path} HTTP/1.1\r\n".encode() + "".join(f"{n}: {v}\r\n" for n, v in fields.items()).encode() + b"\r\n[")
    return client


def answer_of(client):
    """(status, parsed body)"""
    with client:
        answer = http.client.HTTPResponse(client)
        answer.begin()
        return answer.status, json.loads(answer.read())


def is_full(client):
    client.settimeout(0.5)
    try:
        return answer_of(client)[0] == 429
    except TimeoutError:
        return False


def test_the_services_stand_behind_it(real):
    said = {path: real.post(b"{}", path=path, headers={"Authorization": ""})[0::2] for path in
            ("/v1/notifications", "/v1/batches", "/v1/templates", "/v1/inbound/acme/sendgrid", "/v1/opt-out/token")}
    assert [status for status, _ in said.values()] == [401, 401, 401, 401, 404], said
    assert all(problem["type"].startswith("urn:stentor:problem:") for _, problem in said.values())


def test_the_limit_of_an_address_counts_the_client_and_not_nginx(real):
    callback = "/v1/inbound/acme/sendgrid"
    signed = {f"X-Twilio-Email-Event-Webhook-{name}": value for name, value in (("Signature", "c2lnbmVk"), ("Timestamp", str(int(time.time()))))}
    slow = [begin(real, callback, "127.0.0.5", **signed) for _ in range(3)]
    try:
        wait_until(lambda: is_full(begin(real, callback, "127.0.0.5", **signed)), 10, "the limit")
        for forged in ("203.0.113.1", "127.0.0.2", "127.0.0.6"):
            got = answer_of(begin(real, callback, "127.0.0.5", **signed, **{"X-Forwarded-For": forged}))
            assert got[0] == 429, got
        assert real.post(b"[]", path=callback, headers=signed)[0] == 401, "another address has its own places"
        # A service's own port: the word of a caller that is not nginx is not believed either.
        connection = http.client.HTTPConnection("127.0.0.1", real.webhook_port, timeout=10)
        connection.request("POST", callback, b"[]", {**signed, "X-Forwarded-For": "127.0.0.5"})
        assert connection.getresponse().status == 401
        connection.close()
    finally:
        for client in slow:
            client.close()


def test_a_refusal_comes_before_the_body_is_sent_and_a_slow_body_ends(real):
    status, problem = answer_of(begin(real, "/v1/notifications", Authorization="Bearer stn_0000000000000000.00"))
    assert status == 401 and problem["type"] == "urn:stentor:problem:unauthorized"
    started = time.monotonic()
    status, problem = answer_of(begin(real, "/v1/notifications", Authorization=f"Bearer {real.key}"))
    assert status == 408 and problem["type"].startswith("urn:stentor:problem:") and time.monotonic() - started < 10


def test_a_full_part_of_a_batch_arrives(real):
    batch = real.post({"name": "spring", "template": "welcome"}, path="/v1/batches")[2]["id"]
    line = json.dumps({"to": "member@example.com", "variables": {"name": "N" * 330}})
    lines = "".join(line.replace("member@", f"member{i}@") + "\n" for i in range(10_000)).encode()
    assert 3_500_000 < len(lines) < 4_194_304
    status, _, answer = real.post(lines, path=f"/v1/batches/{batch}/members?part=1")
    assert status == 200 and answer["members"] == 10_000, answer


def test_doctor_names_what_does_not_answer(real):
    def says():
        report = json.loads(real.run_cli("doctor", "--json").stdout)
        return next(check["text"] for check in report["checks"] if check["check"] == "api" and check["result"] == "fail")

    assert real.services["gateway"].stop() == 0
    assert "answers, but stentor-gateway behind it does not" in says()
    real.services["gateway"].start()
    real.nginx.kill()
    assert "is nginx running there?" in says()
    real.nginx.start()


def test_a_service_that_starts_again_is_met_at_once(real):
    mail = {"to": "alice@example.com", "template": "welcome", "variables": {"name": "Alice"}}
    connection = http.client.HTTPConnection("127.0.0.1", real.api_port, timeout=30)

    def send():
        connection.request("POST", "/v1/notifications", json.dumps(mail), {"Authorization": f"Bearer {real.key}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    assert send()[0] == 202
    assert real.services["ingest"].stop() == 0
    status, problem = send()
    assert status == 502 and problem["type"] == "urn:stentor:problem:no-answer"
    assert connection.sock is None, "nginx says that it closes the connection; or the next request may be taken for the rest of this body"
    real.services["ingest"].start()
    assert send()[0] == 202
    connection.close()
