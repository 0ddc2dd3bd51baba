# SPDX-License-Identifier: Apache-2.0
"""An S3 server that does on demand what no real one does on demand (README.md lists the faults).

It checks every signature (sigv4.py), keeps objects in memory with all their versions, and answers PUT, GET, HEAD, DELETE and LIST v2 as S3
does. Faults are either states (`puppet.full = True`) or orders for the next requests (`puppet.next(Fault.CUT_AFTER_BODY, method="PUT")`)."""
import datetime
import enum
import hashlib
import itertools
import random
import re
import socket
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

from tests.harness.objectstore import sigv4
from tests.harness.objectstore.client import Bucket
from tests.harness.processes import free_port

BODY_MAX = 300 << 20
STORAGE_CLASSES = ("STANDARD", "STANDARD_IA", "GLACIER_IR")


class Fault(enum.Enum):
    ERROR_AFTER_STORE = "stores, answers 500"
    ERROR_BEFORE_STORE = "answers 500, stores nothing"
    CUT_AFTER_BODY = "stores, cuts the connection without an answer"
    CUT_BEFORE_STORE = "reads the body, cuts the connection, stores nothing"
    CUT_IN_ANSWER = "cuts the connection in the middle of the answer's body"
    SLOW_DOWN = "503 SlowDown"
    CONFLICT = "409 ConditionalRequestConflict, stores nothing"
    OWN_412 = "stores, answers 412: something on the way has sent the request twice"
    SHORT_BODY = "answers the first half of the object, with a length that is right for it"
    WRONG_BYTES = "answers with one byte changed"
    LOST = "answers 200, stores nothing"
    SILENCE = "reads the request and never answers"


ANSWERS_LOST = (Fault.ERROR_AFTER_STORE, Fault.ERROR_BEFORE_STORE, Fault.CUT_AFTER_BODY, Fault.CUT_BEFORE_STORE, Fault.SLOW_DOWN)


@dataclass
class Version:
    id: str
    body: bytes
    modified: datetime.datetime
    headers: dict = field(default_factory=dict)  # content-type, x-amz-meta-*, x-amz-storage-class
    deleted: bool = False  # a delete marker

    @property
    def etag(self):
        return f'"{hashlib.md5(self.body).hexdigest()}"'


@dataclass
class Request:
    method: str
    key: str
    query: dict
    headers: dict
    size: int
    status: int = 0  # 0: no answer was sent
    fault: Fault = None


class Puppet:
    """States may change at any time: full, read_only, locked, conditions, versioned, skew_s, delay_s, page_max, list_stale_s, classes."""

    def __init__(self, name="puppet", credentials=None, region="eu-test-1"):
        self.credentials = credentials or sigv4.Credentials("AKIAPUPPET", "secret/of+the=puppet")
        self.region, self.name = region, name
        self.full = False  # 403 QuotaExceeded for each PUT
        self.read_only = False  # 403 AccessDenied for PUT and DELETE
        self.conditions = True  # False: If-None-Match and If-Match are ignored, as by servers that do not know them
        self.generations = False  # True: as Google's, x-goog-if-generation-match is the only condition
        self.versioned = True
        self.locked = False  # 403 AccessDenied for the DELETE of a version
        self.locked_keys = set()  # the same of these keys alone
        self.skew_s = 0  # the server's clock minus the true one
        self.delay_s = 0  # before each answer
        self.page_max = 1000
        self.list_stale_s = 0  # LIST does not show what is younger
        self.classes = STORAGE_CLASSES
        self.requests, self.refused = [], []
        self.store = {}  # key -> [Version], the newest last
        self._orders, self._chaos = [], None
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._stopping = threading.Event()
        self.port = free_port()
        handler = type("Handler", (_Handler,), {"puppet": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def bucket(self):
        return Bucket(self.endpoint, self.name, self.credentials, self.region)

    def environment(self, prefix=""):
        """The product's options for it."""
        return self.bucket().environment(prefix)

    # ---- orders -------------------------------------------------------------------------------------------------------------

    def next(self, fault, times=1, method=None, key=""):
        """The next requests of this method whose key contains `key` meet this fault."""
        with self._lock:
            self._orders.append([fault, times, method, key])

    def calm(self):
        """No order and no chance is left."""
        with self._lock:
            self._orders.clear()
            self._chaos = None

    def chaos(self, share, seed, faults=ANSWERS_LOST):
        """This share of all requests meets one of the faults, by chance."""
        with self._lock:
            self._chaos = (random.Random(seed), share, faults)

    def orders_left(self):
        with self._lock:
            return sum(times for _, times, _, _ in self._orders)

    # ---- what is there ----------------------------------------------------------------------------------------------------------

    def keys(self, prefix=""):
        with self._lock:
            return sorted(key for key, versions in self.store.items() if key.startswith(prefix) and versions and not versions[-1].deleted)

    def body(self, key):
        with self._lock:
            return self.store[key][-1].body

    def objects(self, prefix=""):
        with self._lock:
            return {key: self.store[key][-1].body for key in self.keys(prefix)}

    def change(self, key, how):
        """how(bytes) -> bytes: behind the back of everyone, the version and its time stay."""
        with self._lock:
            self.store[key][-1].body = how(self.store[key][-1].body)

    def lose(self, key):
        """As if it had never been there."""
        with self._lock:
            del self.store[key]

    def count(self, method, key="", status=None):
        with self._lock:
            return sum(r.method == method and key in r.key and status in (None, r.status) for r in self.requests)

    # ---- what a request does; the caller holds the lock ----------------------------------------------------------------------------

    def _take_fault(self, request):
        for order in self._orders:
            fault, times, method, key = order
            if method in (None, request.method) and key in request.key and times > 0:
                order[1] -= 1
                return fault
        if self._chaos:
            chance, share, faults = self._chaos
            if chance.random() < share:
                return chance.choice(faults)
        return None

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.skew_s)

    def newest(self, key, version=None):
        versions = self.store.get(key, [])
        if version:
            versions = [v for v in versions if v.id == version]
        if not versions or versions[-1].deleted:
            raise sigv4.Refused(404, "NoSuchVersion" if version else "NoSuchKey", key)
        return versions[-1]

    def check_condition(self, key, headers):
        current = next(iter(self.store.get(key, [])[-1:]), None)
        there = current is not None and not current.deleted
        failed = sigv4.Refused(412, "PreconditionFailed", "the condition of the request does not hold")
        if self.generations:
            wanted = headers.get("x-goog-if-generation-match")
            if wanted is not None and wanted != (current.id if there else "0"):
                raise failed
            return
        if not self.conditions:
            return
        if headers.get("if-none-match") == "*" and there:
            raise failed
        wanted = headers.get("if-match")
        if wanted is not None and not there:
            raise sigv4.Refused(404, "NoSuchKey", key)
        if wanted is not None and wanted.strip('"') != current.etag.strip('"'):
            raise failed

    def keep(self, key, body, headers):
        kept = {name: value for name, value in headers.items() if name in ("content-type", "x-amz-storage-class", "x-goog-storage-class")
                or name.startswith(("x-amz-meta-", "x-goog-meta-"))}
        version = Version(f"v{next(self._numbers):06d}", body, self.now(), kept)
        self.store[key] = (self.store.get(key, []) if self.versioned else []) + [version]
        return version

    def remove(self, key, version):
        """Without a version: a delete marker where there are versions."""
        versions = self.store.get(key, [])
        if version:
            self.store[key] = [v for v in versions if v.id != version]
        elif self.versioned and versions:
            versions.append(Version(f"v{next(self._numbers):06d}", b"", self.now(), deleted=True))
        else:
            self.store.pop(key, None)
        if not self.store.get(key, True):
            del self.store[key]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, address):
        """A client that went away is what these tests are about."""


class _Cut(Exception):
    pass


class _Handler(BaseHTTPRequestHandler):
    puppet = None
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Puppet", ""
    timeout = 60

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.request_in("GET")

    def do_HEAD(self):
        self.request_in("HEAD")

    def do_PUT(self):
        self.request_in("PUT")

    def do_DELETE(self):
        self.request_in("DELETE")

    def date_time_string(self, timestamp=None):
        return self.puppet.now().strftime("%a, %d %b %Y %H:%M:%S GMT")

    # ---- one request: read, check, fault, do, answer ------------------------------------------------------------------------------

    def request_in(self, method):
        puppet = self.puppet
        headers = {name.lower(): value for name, value in self.headers.items()}
        path, _, query = self.path.partition("?")
        _, bucket, *rest = urllib.parse.unquote(path).split("/", 2)
        request = Request(method, rest[0] if rest else "", dict(urllib.parse.parse_qsl(query, keep_blank_values=True)), headers,
                          int(headers.get("content-length", 0)))
        with puppet._lock:
            puppet.requests.append(request)
        self.sent = request
        try:
            body = self.read_body(headers)
            if body is None:
                return
            if puppet.delay_s:
                puppet._stopping.wait(puppet.delay_s)
            self.serve(request, bucket, body)
        except sigv4.Refused as refused:
            if refused.status not in (404, 412):
                puppet.refused.append(refused)
            self.answer_error(refused)
        except _Cut:
            self.cut()

    def read_body(self, headers):
        if "transfer-encoding" in headers:
            raise sigv4.Refused(411, "MissingContentLength", "a body without its length")
        size = int(headers.get("content-length", 0))
        if size > BODY_MAX:
            raise sigv4.Refused(400, "EntityTooLarge", str(size))
        body = self.rfile.read(size)
        if len(body) < size:  # the client went away
            self.close_connection = True
            return None
        return body

    def serve(self, request, bucket, body):
        puppet = self.puppet
        sigv4.check(request.method, self.path, request.headers, body, puppet.credentials, puppet.region, puppet.now())
        if bucket != puppet.name:
            raise sigv4.Refused(404, "NoSuchBucket", bucket)
        with puppet._lock:
            fault = request.fault = puppet._take_fault(request)
        self.before(fault)
        done = {"PUT": self.put, "GET": self.get, "HEAD": self.get, "DELETE": self.delete}[request.method]
        with puppet._lock:
            status, headers, answer = done(request, body, fault)
        self.after(fault, request)
        self.answer(status, headers, answer, fault)

    def before(self, fault):
        """What happens before anything is done."""
        if fault is Fault.CUT_BEFORE_STORE:
            raise _Cut
        if fault is Fault.SLOW_DOWN:
            raise sigv4.Refused(503, "SlowDown", "Please reduce your request rate.")
        if fault is Fault.ERROR_BEFORE_STORE:
            raise sigv4.Refused(500, "InternalError", "We encountered an internal error. Please try again.")
        if fault is Fault.CONFLICT:
            raise sigv4.Refused(409, "ConditionalRequestConflict", "A conflicting operation is in progress.")
        if fault is Fault.SILENCE:
            self.puppet._stopping.wait(self.timeout)
            raise _Cut

    def after(self, fault, request):
        """What happens when it is done."""
        if fault is Fault.CUT_AFTER_BODY:
            raise _Cut
        if fault is Fault.ERROR_AFTER_STORE:
            raise sigv4.Refused(500, "InternalError", "We encountered an internal error. Please try again.")
        if fault is Fault.OWN_412 and request.method == "PUT":
            raise sigv4.Refused(412, "PreconditionFailed", "the condition of the request does not hold")

    # ---- the verbs: (status, headers, body) -------------------------------------------------------------------------------------------

    def put(self, request, body, fault):
        puppet = self.puppet
        if not request.key:
            return 200, {}, b""  # the bucket: it is there
        if puppet.read_only:
            raise sigv4.Refused(403, "AccessDenied", "Access Denied")
        if puppet.full:
            raise sigv4.Refused(403, "QuotaExceeded", "the bucket is full")
        if request.headers.get("x-amz-storage-class", "STANDARD") not in puppet.classes:
            raise sigv4.Refused(400, "InvalidStorageClass", request.headers["x-amz-storage-class"])
        puppet.check_condition(request.key, request.headers)
        if fault is Fault.LOST:
            return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
        version = puppet.keep(request.key, body, request.headers)
        return 200, {"ETag": version.etag, **self.version_header(version)}, b""

    def version_header(self, version):
        name = "x-goog-generation" if self.puppet.generations else "x-amz-version-id"
        return {name: version.id} if self.puppet.versioned else {}

    def get(self, request, body, fault):
        if not request.key:
            return self.bucket_question(request)
        version = self.puppet.newest(request.key, request.query.get("versionId"))
        if request.headers.get("if-match", version.etag).strip('"') != version.etag.strip('"'):
            raise sigv4.Refused(412, "PreconditionFailed", "the object is another one")
        headers = {"ETag": version.etag, "Last-Modified": version.modified.strftime("%a, %d %b %Y %H:%M:%S GMT"), "Accept-Ranges": "bytes",
                   **version.headers, **self.version_header(version)}
        return self.ranged(request, version.body, headers)

    def ranged(self, request, body, headers):
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if not wanted:
            return 200, headers, body
        first, last = wanted.groups()
        start = int(first) if first else max(len(body) - int(last), 0)
        end = min(int(last), len(body) - 1) if first and last else len(body) - 1
        if start >= len(body) or start > end:
            raise sigv4.Refused(416, "InvalidRange", request.headers["range"])
        return 206, {**headers, "Content-Range": f"bytes {start}-{end}/{len(body)}"}, body[start:end + 1]

    def bucket_question(self, request):
        if "versioning" in request.query:
            state = "<Status>Enabled</Status>" if self.puppet.versioned else ""
            return 200, {}, f'<?xml version="1.0"?><VersioningConfiguration>{state}</VersioningConfiguration>'.encode()
        if "object-lock" in request.query:
            raise sigv4.Refused(404, "ObjectLockConfigurationNotFoundError", "no lock")
        if "versions" in request.query:
            return 200, {}, self.versions_page(request).encode()
        if request.query.get("list-type") != "2":
            raise sigv4.Refused(400, "InvalidArgument", "only list-type=2")
        return 200, {}, self.page(request.query).encode()

    def versions_page(self, request):
        prefix = request.query.get("prefix", "")
        entries = "".join(f"<{'DeleteMarker' if v.deleted else 'Version'}><Key>{escape(key)}</Key><VersionId>{v.id}</VersionId>"
                          f"</{'DeleteMarker' if v.deleted else 'Version'}>"
                          for key in sorted(self.puppet.store) if key.startswith(prefix) for v in self.puppet.store[key])
        return f'<?xml version="1.0"?><ListVersionsResult>{entries}</ListVersionsResult>'

    def page(self, query):
        """Keys in the order of their bytes. The token names the last key of the page before."""
        puppet = self.puppet
        prefix, size = query.get("prefix", ""), min(int(query.get("max-keys", 1000)), puppet.page_max)
        after = urllib.parse.unquote(query["continuation-token"][2:]) if "continuation-token" in query else query.get("start-after", "")
        youngest = puppet.now() - datetime.timedelta(seconds=puppet.list_stale_s)
        names = sorted((key for key in puppet.keys(prefix) if key > after and puppet.store[key][-1].modified <= youngest), key=str.encode)
        shown, more = names[:size], len(names) > size
        encoded = query.get("encoding-type") == "url"
        text = (lambda key: urllib.parse.quote(key, safe="-_.~/*")) if encoded else escape
        entries = "".join(self.entry(text(key), puppet.store[key][-1]) for key in shown)
        token = f"<NextContinuationToken>t-{urllib.parse.quote(shown[-1], safe='')}</NextContinuationToken>" if more else ""
        return (f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{puppet.name}</Name>'
                f"<Prefix>{text(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount><MaxKeys>{size}</MaxKeys>"
                f"<IsTruncated>{str(more).lower()}</IsTruncated>{'<EncodingType>url</EncodingType>' if encoded else ''}{token}{entries}</ListBucketResult>")

    @staticmethod
    def entry(key, version):
        stored = version.headers.get("x-amz-storage-class", "STANDARD")
        return (f"<Contents><Key>{key}</Key><LastModified>{version.modified:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
                f"<ETag>&quot;{version.etag.strip(chr(34))}&quot;</ETag><Size>{len(version.body)}</Size><StorageClass>{stored}</StorageClass></Contents>")

    def delete(self, request, body, fault):
        version = request.query.get("versionId", request.query.get("generation"))
        if self.puppet.read_only or (version and (self.puppet.locked or request.key in self.puppet.locked_keys)):
            raise sigv4.Refused(403, "AccessDenied", "Access Denied")
        self.puppet.remove(request.key, version)
        return 204, {}, b""

    # ---- answers -----------------------------------------------------------------------------------------------------------------------

    def answer(self, status, headers, body, fault):
        if fault is Fault.WRONG_BYTES and body:
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1:]
        if fault is Fault.SHORT_BODY:
            body = body[:len(body) // 2]
        self.sent.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault is Fault.CUT_IN_ANSWER:
            self.wfile.write(body[:len(body) // 2])
            raise _Cut
        self.wfile.write(body)

    def answer_error(self, refused):
        body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{refused.code}</Code><Message>{escape(refused.text)}</Message></Error>'.encode()
        self.answer(refused.status, {"Content-Type": "application/xml"}, body, None)

    def cut(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
