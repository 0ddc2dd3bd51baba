# SPDX-License-Identifier: Apache-2.0
"""A collector of traces: an HTTP server that takes OTLP, and reads it by OpenTelemetry's own package (npm) or by our subset of the protocol."""
import base64
import fcntl
import gzip
import http.server
import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import pytest

from tests.harness.processes import HOME

HERE = pathlib.Path(__file__).parent


class Span:
    def __init__(self, service, span):
        value = lambda v: getattr(v, v.WhichOneof("value"))  # noqa: E731
        self.service, self.name, self.kind = service, span.name, span.kind
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = {pair.key: value(pair.value) for pair in span.attributes}
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
        self.failed, self.why = span.status.code == 2, span.status.message

    def __repr__(self):
        return f"<{self.service} {self.name} {self.trace[:8]}/{self.id} of {self.parent or 'none'}>"


class Collector:
    def __init__(self):
        self.bodies, self.answers, self.headers, self.released = [], [], [], threading.Event()
        self.silent = False
        self.folder = tempfile.TemporaryDirectory(prefix="stentor-collector-")
        subprocess.run(["protoc", f"-I{HOME / 'proto' / 'otlp'}", f"--python_out={self.folder.name}", "trace.proto"], check=True)
        sys.path.insert(0, self.folder.name)
        self.types = importlib.import_module("trace_pb2")
        sys.path.remove(self.folder.name)

    def start(self):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.silent:
                    collector.released.wait(30)
                    self.close_connection = True
                    return
                status = collector.answers.pop(0) if collector.answers else 200
                if status == 200:
                    assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
                    collector.headers.append(dict(self.headers))
                    collector.bodies.append(gzip.decompress(body))
                self.send_response(status)
                if status != 200:
                    self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def stop(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def spans(self, trace=None):
        """What has come so far, each span once: a repeat of work makes the same one."""
        found = {}
        for body in list(self.bodies):
            for of in self.types.TracesRequest.FromString(body).resource_spans:
                service = next(pair.value.string_value for pair in of.resource.attributes if pair.key == "service.name")
                for span in (Span(service, span) for scope in of.scope_spans for span in scope.spans):
                    if trace in (None, span.trace):
                        found.setdefault((span.trace, span.id), span)
        return list(found.values())

    def read_by_opentelemetry(self):
        """The same bodies as JSON objects, read by another's code."""
        if not shutil.which("node") or not shutil.which("npm"):
            pytest.skip("this machine has no node or no npm")
        with (HERE / "package.json").open() as lock:  # other workers fetch it, too
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (HERE / "node_modules").exists():
                done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
                if done.returncode != 0:
                    pytest.skip("the npm registry cannot be reached from here")
        lines = "\n".join(base64.b64encode(body).decode() for body in self.bodies)
        done = subprocess.run(["node", "read.mjs"], cwd=HERE, input=lines, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def ulid_hex(notification):
    """The 16 bytes of a notification's id."""
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    number = 0
    for letter in notification.removeprefix("ntf_"):
        number = number << 5 | digits.index(letter)
    return f"{number:032x}"
