# SPDX-License-Identifier: Apache-2.0
"""A service behind nginx that follows a script: it answers, is slow, dies in the middle, or reads a body byte by byte.

Only what no real service does on command is asked of it; what a service says is tested with the real one."""
import contextlib
import json
import socket
import threading

from tests.harness.processes import free_port


class Request:
    def __init__(self, peer, number, line, headers):
        self.peer, self.connection, self.line, self.headers = peer, number, line, headers

    def body(self):
        """The body in the pieces in which it comes."""
        if "content-length" in self.headers:
            left = int(self.headers["content-length"])
            while left:
                piece = self.peer.read1(min(left, 65536))
                if not piece:
                    return
                left -= len(piece)
                yield piece
        elif self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.peer.readline() or b"0", 16):
                yield self.peer.read(size)
                self.peer.readline()
            self.peer.readline()


class Upstream:
    """script(request, client) is called for each request, in a thread for each connection; it answers through client, a socket. It
    returns True when the connection may be kept."""

    def __init__(self, name, script=None):
        self.name = name
        self.script = script or self.answer
        self.requests = []
        self.port = free_port()
        self.accepted = 0
        self.start()

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.serve, args=(self.listener,), daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def serve(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.talk, args=(client, self.accepted), daemon=True).start()

    def talk(self, client, number):
        with client, client.makefile("rb") as peer, contextlib.suppress(OSError):
            while line := peer.readline().decode().strip():
                headers = {}
                while header := peer.readline().decode().strip():
                    name, value = header.split(":", 1)
                    headers[name.lower()] = value.strip()
                request = Request(peer, number, line, headers)
                self.requests.append(request)
                if not self.script(request, client):
                    return

    def answer(self, request, client):
        """Its name, and the request as it saw it."""
        size = sum(map(len, request.body()))
        text = json.dumps({"service": self.name, "line": request.line, "headers": request.headers, "body": size}).encode()
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nStentor-Request-Id: req_of_" + self.name.encode()
                       + b"\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        return True

    def stop(self):
        """No connection is taken any more; those that are open stay."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
