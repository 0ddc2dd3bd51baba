# SPDX-License-Identifier: Apache-2.0
"""The server of a double: a thread for each connection, so that one that hangs holds up no other; what came, and the faults on order."""
import contextlib
import datetime
import enum
import json
import secrets
import socket
import ssl
import subprocess
import threading
import time
import uuid

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.harness.processes import free_port, wait_until
from tests.harness.vendor_doubles import acme, callbacks, chat, phone, receiver, voice, webpush, wire
from tests.harness.vendor_doubles.wire import Mail, Refused, Request, Answered

BODY_MAX = 64 << 20
VENDORS = {**wire.VENDORS, **phone.VENDORS, **chat.VENDORS, **voice.VENDORS, **acme.VENDORS, **webpush.VENDORS,
           **receiver.VENDORS}
KEY_KNOWN = {"resend", "sparkpost", "sms-acme"}  # the same Idempotency-Key gets the same answer, and nothing is sent


class Fault(enum.Enum):
    UNAUTHORIZED = "the credential is refused"
    THROTTLE = "429 as the vendor says it, with double.retry_after seconds"
    ERROR = "500, and nothing was taken"
    ERROR_AFTER = "500, and the mail was taken"
    UNAVAILABLE = "503, and nothing was taken"
    HANG_BEFORE = "the connection is accepted, nothing is read or said: over TLS nothing can be sent"
    HANG_AFTER_BODY = "the whole request is taken, and no answer comes"
    CUT_BEFORE = "closed at the first byte that comes, nothing is taken"
    CUT_AFTER_BODY = "the whole request is taken, then the connection is closed"
    CUT_IN_ANSWER = "the request is taken, the answer ends in the middle of its body, or of its first line when it has none"


class Double:
    """A vendor. `mails` are those that it took, `requests` all that came whole, `refused` (request, Refused) what it did not take."""

    def __init__(self, vendor, folder=None, port=None):
        self.vendor, self.check = vendor, VENDORS[vendor]
        self.port = port or free_port()
        self.secret = secrets.token_hex(16)
        if vendor == "vonage_voice":
            self.secret = callbacks.pem(rsa.generate_private_key(65537, 2048)).decode()  # of the application
        elif vendor == "webpush":
            self.secret = webpush.new_secret()
        sid = "AC" + secrets.token_hex(16)
        self.key_id = {"ses": "AKIA" + secrets.token_hex(8).upper(), "twilio": sid, "twilio_voice": sid, "twilio_whatsapp": sid, "vonage": secrets.token_hex(4),
                       "vonage_voice": str(uuid.uuid4())}.get(vendor, "")
        self.settings = {"mailgun": {"domain": "mg.acme.test"}, "ses": {"region": "eu-west-1"}, "twilio": {"from": "+15005550006"}, "vonage": {"from": "SHOP"},
                         "telnyx": {"from": "+15005550007", "messaging_profile": "4000eba1-a0c0-4563-9925-b25e842a7cb6"},
                         "meta": {"phone_number_id": "106540352242922"},
                         "twilio_voice": {"from": "+15005550008"}, "vonage_voice": {"from": "+447700900001"},
                         "twilio_whatsapp": {"from": "+14155238886"}, "sms-acme": {"from": "SHOP", "account": acme.ACCOUNT},
                         "webpush": {"subject": "mailto:push@acme.test", "hosts": "127.0.0.1"}}.get(vendor, {})
        self.rejected, self.suppressed = set(), set()  # addresses: not valid; on the vendor's own list
        self.says_of_number = "The 'To' number {} is not a valid phone number."  # of one that is rejected
        self.gone = set()  # paths of incoming URLs
        self.opted_out, self.price = set(), None  # numbers; of a message, as Twilio writes it
        self.templates, self.windows, self.pair_limited = {}, set(), set()  # of Meta: parameters by (name, language); who wrote; whose next message is refused
        self.mails, self.requests, self.refused = [], [], []
        self.rehearsed = []  # Mail: checked and not sent, as the request asked
        self.retry_after = 2
        self.quota = {"Max24HourSend": 50000.0, "MaxSendRate": 1000.0, "SentLast24Hours": 0.0}  # of SES' GetAccount
        self.answers_after_s = 0  # a vendor that is slow
        self.faults, self.by_key = [], {}
        self.lock = threading.Lock()
        self.listener, self.open = None, set()
        self.certificates = certificates(folder) if folder is not None else None
        self.signer = callbacks.Signer(vendor, folder)
        if vendor.startswith("twilio"):
            self.signer.key = self.secret  # the account's auth token is both

    # ---- life ----

    @property
    def base_url(self):
        return f"{'https' if self.certificates else 'http'}://127.0.0.1:{self.port}"

    @property
    def ca_file(self):
        return self.certificates[0]

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        threading.Thread(target=self._serve, args=(self.listener,), daemon=True).start()
        return self

    def stop(self):
        """Connections are refused, and those that were open are cut, until start()."""
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._cut_all()

    def _cut_all(self):
        with self.lock:
            for client in self.open:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(client, socket.SHUT_RDWR)

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc)

    # ---- orders ----

    def behave(self, fault, times=None):
        """The next requests meet the fault, all until well() without `times`; HANG_BEFORE the next connections: those that are open are cut."""
        with self.lock:
            self.faults.append([fault, times])
        if fault is Fault.HANG_BEFORE:
            self._cut_all()

    def well(self):
        with self.lock:
            self.faults.clear()

    def _next_fault(self, kinds):
        with self.lock:
            if not self.faults or self.faults[0][0] not in kinds:
                return None
            order = self.faults[0]
            if order[1] is not None:
                order[1] -= 1
                if order[1] == 0:
                    self.faults.pop(0)
            return order[0]

    # ---- what came ----

    def of(self, notification):
        return [mail for mail in list(self.mails) if mail.notification == notification]

    def wait(self, count, timeout=20):
        wait_until(lambda: len(self.mails) >= count, timeout, f"{count} mails at {self.vendor}")
        return list(self.mails)

    def callback(self, mail, kind, **fields):
        return callbacks.make(self.signer, mail, kind, **fields)

    @property
    def callback_key(self):
        return self.signer.key

    # ---- connections ----

    def _serve(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client):
        with self.lock:
            self.open.add(client)
        try:
            if self._next_fault({Fault.HANG_BEFORE}):
                client.recv(1, socket.MSG_PEEK)
                threading.Event().wait(60)
                return
            if self.certificates:
                client = self._secure(client)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with client.makefile("rb") as peer:
                while self._answer_one(client, peer):
                    pass
        except (OSError, ValueError):  # the client is gone, or is not one of HTTP
            pass
        finally:
            with self.lock:
                self.open.discard(client)
            client.close()

    def _secure(self, client):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificates[1:])
        secured = context.wrap_socket(client, server_side=True)
        with self.lock:
            self.open.discard(client)
            self.open.add(secured)
        return secured

    def _answer_one(self, client, peer):
        line = peer.readline(8192)
        if not line:
            return False
        if self._next_fault({Fault.CUT_BEFORE}):
            return False
        request = read_request(line, peer)
        if request is None:
            return False
        fault = self._next_fault(set(Fault) - {Fault.HANG_BEFORE, Fault.CUT_BEFORE})
        if fault is Fault.HANG_AFTER_BODY:
            self._take(request)
            peer.read(1)
            return False
        status, body, headers = self._outcome(request, fault)
        if fault is Fault.CUT_AFTER_BODY:
            return False
        time.sleep(self.answers_after_s)
        head = f"HTTP/1.1 {status} Double\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        data = head.encode() + b"\r\n" + body
        client.sendall(data[:-(len(body) // 2) or 10] if fault is Fault.CUT_IN_ANSWER else data)
        return fault is not Fault.CUT_IN_ANSWER

    def _outcome(self, request, fault):
        if request.path.endswith(".pem") and request.method == "GET":
            return 200, self.signer.certificate.encode(), {}
        if request.method == "GET" and "Action=ConfirmSubscription" in request.path:
            self.requests.append(request)
            return 200, b"<ConfirmSubscriptionResponse/>", {}
        if fault in (Fault.UNAUTHORIZED, Fault.THROTTLE, Fault.ERROR, Fault.UNAVAILABLE):
            with self.lock:
                self.requests.append(request)
            return refusal(self, fault)
        status, body, headers = self._take(request)
        if fault is Fault.ERROR_AFTER:
            return refusal(self, Fault.ERROR)
        return status, body, headers

    def _take(self, request):
        with self.lock:
            self.requests.append(request)
            try:
                mail, status, body, headers = self.check(self, request)
            except Answered as answer:
                return 200, answer.body.encode(), {}
            except Refused as answer:
                self.refused.append((request, answer))
                return answer.status, answer.body.encode(), answer.headers
            except (KeyError, TypeError, AttributeError, ValueError) as error:  # a field of another type, or one that is missing
                answer = Refused(400, json.dumps({"message": f"not as documented: {error!r}"}))
                self.refused.append((request, answer))
                return answer.status, answer.body.encode(), answer.headers
            mail.request = request
            if self.vendor in KEY_KNOWN and mail.key:
                return self._take_once(mail, status, body, headers)
            self.mails.append(mail)
            return status, body.encode(), headers

    def _take_once(self, mail: Mail, status, body, headers):
        before = self.by_key.setdefault(mail.key, (mail.request.body, status, body.encode(), headers))
        if before[1:] == (status, body.encode(), headers):
            self.mails.append(mail)
        elif before[0] != mail.request.body:
            text = {"resend": {"statusCode": 409, "name": "invalid_idempotent_request", "message": "Same idempotency key used with a different request payload."},
                    "sparkpost": {"errors": [{"message": "other payload", "code": "1600"}]},
                    "sms-acme": {"error": {"code": 40, "message": "other payload"}}}[self.vendor]
            return 409, json.dumps(text).encode(), {}
        elif self.vendor == "sparkpost":
            return before[1], before[2], {**before[3], "X-Idempotent-Replayed": "true"}
        return before[1:]


def read_request(line, peer):
    method, path, version = line.decode("latin-1").split()
    if version != "HTTP/1.1":
        raise ValueError(version)
    headers = {}
    while (header := peer.readline(65536).decode("latin-1").rstrip("\r\n")) != "":
        name, _, value = header.partition(":")
        if name.lower() in headers:
            raise ValueError(f"{name} comes twice")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", 0))
    if length > BODY_MAX or "expect" in headers or "transfer-encoding" in headers:
        raise ValueError("not a body that a vendor gets from us")
    body = peer.read(length)
    return Request(method, path, headers, body) if len(body) == length else None


def refusal(double, fault):
    """Status, body and headers with which the vendor says it (channels.md 1.2)."""
    wait = double.retry_after
    if double.vendor in chat.VENDORS:
        status, body, headers = chat.refusal(double, fault.name)
        return status, body.encode(), headers
    if double.vendor in acme.VENDORS:
        status, body, headers = acme.refusal(double, fault.name)
        return status, body.encode(), headers
    by_name = {**phone.REFUSALS, **voice.REFUSALS, **webpush.REFUSALS, **receiver.REFUSALS}
    if double.vendor in by_name:
        status, body = by_name[double.vendor][fault.name]
        return status, json.dumps(body).encode(), {}
    said = {
        "postmark": {Fault.UNAUTHORIZED: (401, {"ErrorCode": 10, "Message": "invalid token"}, {}), Fault.THROTTLE: (429, {"ErrorCode": 429, "Message": "Rate limit"}, {})},
        "sendgrid": {Fault.UNAUTHORIZED: (401, {"errors": [{"message": "The provided authorization grant is invalid", "field": None}]}, {}),
                     Fault.THROTTLE: (429, {"errors": [{"message": "too many requests", "field": None}]},
                                      {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(double.now().timestamp()) + wait)})},
        "mailgun": {Fault.UNAUTHORIZED: (401, "Forbidden", {}), Fault.THROTTLE: (429, {"message": "Too Many Requests"}, {"Retry-After": wait})},
        "resend": {Fault.UNAUTHORIZED: (403, {"statusCode": 403, "name": "invalid_api_key", "message": "API key is invalid"}, {}),
                   Fault.THROTTLE: (429, {"statusCode": 429, "name": "rate_limit_exceeded", "message": "Too many requests"}, {"retry-after": wait})},
        "sparkpost": {Fault.UNAUTHORIZED: (401, {"errors": [{"message": "Unauthorized."}]}, {}),
                      Fault.THROTTLE: (429, {"errors": [{"message": "Too many requests"}]}, {"Retry-After": wait})},
        "ses": {Fault.UNAUTHORIZED: (403, {"message": "The security token included in the request is invalid."}, {"x-amzn-ErrorType": "UnrecognizedClientException"}),
                Fault.THROTTLE: (429, {"message": "Maximum sending rate exceeded."}, {"x-amzn-ErrorType": "TooManyRequestsException"}),
                Fault.ERROR: (500, {"message": ""}, {"x-amzn-ErrorType": "InternalFailure"})},
    }[double.vendor]
    status, body, headers = said.get(fault) or {Fault.ERROR: (500, {"message": "internal error"}, {}),
                                                Fault.UNAVAILABLE: (503, {"message": "unavailable"}, {"Retry-After": wait})}[fault]
    return status, json.dumps(body).encode() if isinstance(body, dict) else body.encode(), headers


def certificates(folder):
    """(authority, certificate, key) as files: an authority of its own, and a server's certificate for 127.0.0.1, localhost and *.vendor.test."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, ca_key, chain, key, request, names = (folder / name for name in ("ca.pem", "ca.key", "server.pem", "server.key", "server.csr", "names"))
    if chain.exists():
        return ca, chain, key

    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-days", 2, "-subj", "/CN=double authority", "-keyout", ca_key, "-out", ca)
    openssl("req", *curve, "-subj", "/CN=double", "-keyout", key, "-out", request)
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:*.vendor.test,DNS:sns.amazonaws.com\n")
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", 2, "-extfile", names, "-out", chain)
    return ca, chain, key
