# SPDX-License-Identifier: Apache-2.0
"""A NATS client of a few lines, so that tests can put any bytes on any subject (poison included) and read what is there."""
import base64
import json
import socket
import uuid


class NatsClient:
    def __init__(self, port, user="stentor-admin", password="pw"):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.file = self.socket.makefile("rb")
        assert self.file.readline().startswith(b"INFO ")
        options = {"verbose": False, "pedantic": False, "user": user, "pass": password, "headers": True, "lang": "py", "version": "0"}
        self._write(b"CONNECT " + json.dumps(options).encode() + b"\r\nPING\r\n")
        assert self._line() == b"PONG"
        self.inbox = f"_INBOX.{user}.{uuid.uuid4().hex}"
        self._write(f"SUB {self.inbox} 1\r\n".encode())

    def _write(self, data):
        self.socket.sendall(data)

    def _line(self):
        while True:
            line = self.file.readline()
            if not line:
                raise ConnectionError("the server has ended the connection")
            line = line.strip()
            if line == b"PING":
                self._write(b"PONG\r\n")
            elif line:
                return line

    def request(self, subject, payload=b"", headers=None):
        """One request; returns the reply's payload."""
        if headers:
            block = b"NATS/1.0\r\n" + b"".join(f"{k}: {v}\r\n".encode(errors="surrogateescape") for k, v in headers.items()) + b"\r\n"
            self._write(f"HPUB {subject} {self.inbox} {len(block)} {len(block) + len(payload)}\r\n".encode() + block + payload + b"\r\n")
        else:
            self._write(f"PUB {subject} {self.inbox} {len(payload)}\r\n".encode() + payload + b"\r\n")
        words = self._line().split()
        assert words[0] in (b"MSG", b"HMSG"), words
        body = self.file.read(int(words[-1]))
        self.file.read(2)
        return body[int(words[-2]):] if words[0] == b"HMSG" else body

    def publish(self, subject, payload, event_id=None, headers=None):
        """Publishes into its stream and returns the ack."""
        all_headers = {**(headers or {}), **({"Nats-Msg-Id": event_id} if event_id else {})}
        ack = json.loads(self.request(subject, payload, all_headers or None))
        assert "error" not in ack, ack
        return ack

    def stream_info(self, stream):
        return json.loads(self.request(f"$JS.API.STREAM.INFO.{stream}"))

    def message(self, stream, **query):
        """A stored message as (subject, payload): message("DEAD", last_by_subj="ntf.dead.renderer.acme") or seq=1."""
        answer = json.loads(self.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps(query).encode()))
        if "error" in answer:
            return None
        return answer["message"]["subject"], base64.b64decode(answer["message"].get("data", ""))

    def close(self):
        self.socket.close()


class Subscriber(NatsClient):
    def subscribe(self, subject):
        self._write(f"SUB {subject} 2\r\nPING\r\n".encode())
        assert self.file.readline().strip() == b"PONG"

    def next(self):
        """(subject, headers, payload)"""
        words = self._line().split()
        assert words[0] == b"HMSG", words
        body = self.file.read(int(words[-1]))
        self.file.read(2)
        head, payload = body[:int(words[-2])].decode(), body[int(words[-2]):]
        return words[1].decode(), dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line), payload
