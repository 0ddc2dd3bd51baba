# SPDX-License-Identifier: Apache-2.0
"""Callers of the API on one thread: sixty-four of Python's own HTTP clients would take more of a small machine than what they measure."""
import collections
import selectors
import socket
import time

PATIENCE_S = 120  # for one answer
AGAIN_S = 0.05    # after a 503


class Caller:
    """One connection: a request, then its answer."""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self.request = None
        self.got = b""

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request):
        """A request fits into the socket's buffers; the server reads a larger one while this waits."""
        self.request, self.got = request, b""
        self.socket.sendall(request)

    def read(self):
        """The status once the answer is whole, before that None."""
        part = self.socket.recv(65536)
        assert part, "ingest has closed a connection that it was to keep"
        self.got += part
        end = self.got.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.got[:end].lower()
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        return int(head[9:12]) if len(self.got) == end + 4 + length else None


def request_bytes(key, body, idempotency_key=None):
    head = f"POST /v1/notifications HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    if idempotency_key:
        head += f"Idempotency-Key: {idempotency_key}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def call_all(port, requests, callers, per_s=None):
    """Sends every request once and again after each 503; per_s: evenly, each at its time, as long as a caller is free. Returns the seconds that
    each first answer took."""
    with selectors.DefaultSelector() as selector:
        idle = [Caller(port) for _ in range(callers)]
        for caller in idle:
            caller.connect()
            selector.register(caller.socket, selectors.EVENT_READ, caller)
        try:
            return Run(selector, idle, requests, per_s).until_done()
        finally:
            for key in list(selector.get_map().values()):
                key.data.socket.close()


class Run:
    def __init__(self, selector, idle, requests, per_s):
        self.selector, self.idle, self.requests = selector, idle, requests
        self.gap = 1 / per_s if per_s else 0.0
        self.start = time.monotonic()
        self.next = 0                     # of requests
        self.again = collections.deque()  # (when, number)
        self.sent_at, self.took = {}, {}

    def until_done(self):
        while len(self.took) < len(self.requests):
            wait = self.send_due()
            events = self.selector.select(min(wait, PATIENCE_S))
            assert events or wait < PATIENCE_S, f"no answer for {PATIENCE_S} s: {len(self.took)} of {len(self.requests)} were answered"
            for key, _ in events:
                self.on_readable(key.data)
        return list(self.took.values())

    def send_due(self):
        """Gives every idle caller a request that is due; returns the seconds to the next that a caller could send."""
        now = time.monotonic()
        while self.idle:
            if self.again and self.again[0][0] <= now:
                number = self.again.popleft()[1]
            elif self.next < len(self.requests) and self.start + self.next * self.gap <= now:
                number, self.next = self.next, self.next + 1
            else:
                break
            caller = self.idle.pop()
            caller.number = number
            self.sent_at.setdefault(number, now)
            caller.send(self.requests[number])
        times = [self.again[0][0]] if self.again else []
        if self.next < len(self.requests):
            times.append(self.start + self.next * self.gap)
        return max(0.0, min(times) - now) if self.idle and times else PATIENCE_S

    def on_readable(self, caller):
        status = caller.read()
        if status is None:
            return
        if status == 503:
            self.again.append((time.monotonic() + AGAIN_S, caller.number))
        else:
            assert status == 202, f"{status}: {caller.got[-600:]}"
            self.took[caller.number] = time.monotonic() - self.sent_at[caller.number]
        self.idle.append(caller)
