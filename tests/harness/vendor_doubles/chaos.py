# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that misbehaves as the path says, over plain sockets or TLS, and notes the id of every request that it took whole; and a
DNS server (Debian's dnsmasq) whose names a test sets."""
import random
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

from tests.harness.processes import free_port, wait_until
from tests.harness.vendor_doubles.server import certificates

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Chaos:
    """`taken`: ids of requests in the order in which they came whole. Of /one-in-N a request in N ends at a random byte, of itself or of its
    answer, with the connection."""

    def __init__(self, folder=None, seed=17):
        self.port, self.taken, self.connections, self.kept = free_port(), [], 0, 0
        self.random, self.lock = random.Random(seed), threading.Lock()
        self.context = None
        if folder is not None:
            self.ca, chain, key = certificates(folder)
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(chain, key)
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        threading.Thread(target=self._serve, daemon=True).start()

    def url(self, path, host="127.0.0.1"):
        return f"{'https' if self.context else 'http'}://{host}:{self.port}{path}"

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client):
        try:
            with client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer = self.context.wrap_socket(client, server_side=True) if self.context else client
                with peer:
                    held, number = b"", 0
                    while held is not None:
                        held = self._one(peer, held, number)
                        number += 1
        except OSError:
            pass

    def _one(self, peer, held, number):
        """What came behind the request; None: the connection is over."""
        kill = self._kill_at(held, peer)
        if kill is None:
            return None
        held, at = bytearray(kill[0]), kill[1]  # bytes would be copied whole for every piece
        need = None
        while need is None or len(held) < need:
            head = held.find(b"\r\n\r\n")
            if head >= 0 and need is None:
                need = head + 4 + int(re.search(rb"content-length: (\d+)", held[:head].lower())[1])
                if at is not None:
                    at = self.random.randrange(need + len(OK))
            if at is not None and need is not None and at < need and len(held) >= at:
                return None  # in the middle of the request
            if need is None or len(held) < need:
                piece = peer.recv(65536)
                if not piece:
                    return None
                held += piece
        line, request = held[:held.find(b"\r\n")].decode(), held[:need]
        if line.split()[1].startswith("/before"):
            return None
        with self.lock:
            self.taken.append(int(re.search(rb"\r\n\r\nid=(\d+);", request)[1]))
            self.kept += number > 0
        if at is not None:
            peer.sendall(OK[:at - need])
            return None
        return held[need:] if self._answer(peer, line.split()[1], number) else None

    def _kill_at(self, held, peer):
        """Bytes of the next request, and whether it is one to be killed (the place is chosen once its length is known)."""
        if not held:
            held = peer.recv(65536)
            if not held:
                return None
        match = re.match(rb"POST /one-in-(\d+)", held)
        with self.lock:
            kill = match and self.random.randrange(int(match[1])) == 0
        return held, 0 if kill else None

    def _answer(self, peer, path, number):
        """True: the connection stays."""
        name = path.strip("/")
        if name == "after-second" and number > 0 or name == "after":
            return False
        if name == "big":
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
            for _ in range(100):
                peer.sendall(b"x" * 100000)
        elif name == "drip":
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(1000):
                peer.sendall(b"x")
                time.sleep(0.05)
        elif name == "hang":
            peer.recv(1)
            return False
        elif name == "late-garbage":
            peer.sendall(OK)
            time.sleep(0.05)
            peer.sendall(b"HTTP/1.1 299 Foreign\r\nContent-Length: 0\r\n\r\n")
        else:
            peer.sendall(ANSWERS.get(name, OK))
            return name not in ENDS
        return True


ANSWERS = {
    "middle": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
    "in-head": b"HTTP/1.1 200 OK\r\nContent-Len",
    "two-status": b"HTTP/1.1 200 OK\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
    "1xx": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK,
    "1xx-only": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
    "garbage": OK + b"HTTP/1.1 299 Foreign\r\nContent-Length: 0\r\n\r\n",
    "not-http": b"220 mail.acme.test ESMTP\r\n",
    "long-head": b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"y" * 8000 + b"\r\nX-More: " + b"z" * 9000 + b"\r\nContent-Length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data/\r\nContent-Length: 0\r\n\r\n",
    "gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
}
ENDS = ("middle", "in-head", "1xx-only", "not-http")


class Dns:
    """names: {"name": ["127.0.0.1", "10.0.0.5"]}; what is not named does not exist. A name of the zone slow.test is never answered."""

    def __init__(self, folder, names, ttl=1):
        self.port, self.hosts, self.log = free_port(), folder / "dns-hosts", folder / "dns.log"
        self.silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.silent.bind(("127.0.0.1", 0))
        self.hosts.write_text(lines(names))
        self.child = subprocess.Popen(
            ["/usr/sbin/dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", f"--port={self.port}", "--listen-address=127.0.0.1", "--bind-interfaces",
             "--no-resolv", "--no-hosts", f"--addn-hosts={self.hosts}", f"--local-ttl={ttl}", "--local=/vendor.test/", "--log-queries",
             f"--log-facility={self.log}", f"--server=/slow.test/127.0.0.1#{self.silent.getsockname()[1]}", "--pid-file=", "--user=root"])
        wait_until(lambda: self.log.exists() and "read " in self.log.read_text(), 20, "dnsmasq")

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def set(self, names):
        read = self.log.read_text().count("read /")
        self.hosts.write_text(lines(names))
        self.child.send_signal(signal.SIGHUP)
        wait_until(lambda: self.log.read_text().count("read /") > read, 20, "dnsmasq to read its names again")

    def queries(self, name):
        return self.log.read_text().count(f"query[A] {name} ")

    def stop(self):
        self.child.terminate()
        self.child.wait(10)
        self.silent.close()


def lines(names):
    return "".join(f"{address} {name}\n" for name, addresses in names.items() for address in addresses)
