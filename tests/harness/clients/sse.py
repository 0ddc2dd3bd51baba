# SPDX-License-Identifier: Apache-2.0
"""A reader of server-sent events as a browser is one (WHATWG HTML, 9.2.6): it keeps the id of the last event and comes back with it."""
import http.client
import json
import queue
import socket
import threading
import time


class Event:
    def __init__(self, name, event_id, data):
        self.name, self.id, self.data = name, event_id, data

    @property
    def json(self):
        return json.loads(self.data)

    def __repr__(self):
        return f"{self.name}#{self.id} {self.data[:120]}"


class Parser:
    """Lines become events."""

    def __init__(self):
        self.last_id, self.retry_ms, self.comments = "", None, 0
        self._clear()

    def _clear(self):
        self.name, self.lines = "", []

    def feed(self, line):
        """One line without its end; an event, or None."""
        if line == "":
            name, data = self.name or "message", "\n".join(self.lines)
            done = bool(self.lines)
            self._clear()
            return Event(name, self.last_id, data) if done else None
        if line.startswith(":"):
            self.comments += 1
            return None
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            self.name = value
        elif field == "data":
            self.lines.append(value)
        elif field == "id":
            self.last_id = value
        elif field == "retry" and value.isdigit():
            self.retry_ms = int(value)
        return None


class EventStream:
    """One stream, read by a thread; key None: without a key. events: all that came so far. It ends with the answer; `reopen` comes back as a browser does."""

    def __init__(self, port, path, key, headers=None, last_id=None):
        self.port, self.path, self.key, self.headers = port, path, key, headers or {}
        self.parser = Parser()
        self.parser.last_id = last_id or ""
        self.events, self._fresh = [], queue.Queue()
        self._open()

    def _open(self):
        sent = {**({"Authorization": f"Bearer {self.key}"} if self.key else {}), "Accept": "text/event-stream", **self.headers}
        if self.parser.last_id:
            sent["Last-Event-ID"] = self.parser.last_id
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.connection.request("GET", self.path, headers=sent)
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.parser._clear()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._read, args=(self.answer, self.ended), daemon=True)
        self.thread.start()

    def _read(self, answer, ended):
        try:
            for raw in answer:
                event = self.parser.feed(raw.decode().rstrip("\n"))
                if event:
                    self.events.append(event)
                    self._fresh.put(event)
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass
        ended.set()

    def reopen(self, port=None):
        self.close()
        self.port = port or self.port
        self._open()

    def next(self, name=None, timeout=20):
        """The next event, of that name where one is given."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            try:
                event = self._fresh.get(timeout=max(left, 0.01))
            except queue.Empty:
                raise AssertionError(f"no event {name or ''} came within {timeout} s, but {self.events[-5:]}") from None
            if name in (None, event.name):
                return event

    def named(self, name):
        return [event for event in self.events if event.name == name]

    def wait_end(self, timeout=20):
        assert self.ended.wait(timeout), f"the stream goes on: {self.events[-3:]}"

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
        self.thread.join(5)
        self.connection.close()
