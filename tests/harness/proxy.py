# SPDX-License-Identifier: Apache-2.0
"""TCP between two of our processes that can be cut, refused, slowed and stalled.

A route is a port of its own that leads to another port, so each pair of processes can be broken alone. Routes are healthy
until another mode is set:

cut     every connection is reset; new ones are taken
refuse  the same, and the port is closed
delay   every chunk of bytes comes `ms` later, both ways
stall   connections stay open and nothing comes through, `way` up (to the server), down or both; new ones are taken and stay silent
heal    ends all that; what was held comes through, unless `reset`"""
import asyncio
import collections
import socket
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.harness.puppet import Puppet, serve  # noqa: E402

HELD_MAX = 1 << 20  # bytes that one direction of a slow connection may hold before its sender must wait


class Proxy(Puppet):
    """routes: name -> (port here, port there)."""

    def __init__(self, routes):
        super().__init__(__file__)
        self.routes = routes

    def start(self):
        super().start()
        self.tell(do="open", routes=self.routes)
        return self

    def cut(self, names):
        self.tell(do="cut", names=names)

    def refuse(self, names):
        self.tell(do="refuse", names=names)

    def delay(self, names, ms):
        self.tell(do="delay", names=names, ms=ms)

    def stall(self, names, way="both"):
        self.tell(do="stall", names=names, way=way)

    def heal(self, names, reset=False):
        self.tell(do="heal", names=names, reset=reset)


# ---- the program ------------------------------------------------------------------------------------------------------------


class Route:
    def __init__(self, port, target):
        self.port = port
        self.target = target
        self.delay_s = 0.0
        self.stalled = set()
        self.server = None
        self.halves = set()

    async def listen(self):
        loop = asyncio.get_running_loop()
        for _ in range(100):
            try:
                self.server = await loop.create_server(lambda: Half(self, "up"), "127.0.0.1", self.port, backlog=512)
                return
            except OSError:
                await asyncio.sleep(0.05)
        raise OSError(f"port {self.port} was taken while it was closed")

    def close(self):
        if self.server is not None:
            self.server.close()
            self.server = None

    def cut(self):
        for half in list(self.halves):
            half.reset()

    def wake(self):
        for half in list(self.halves):
            half.flow()


class Half(asyncio.Protocol):
    """What comes from one side and goes to the other. `way` is where its bytes go."""

    def __init__(self, route, way):
        self.route = route
        self.way = way
        self.transport = None
        self.other = None
        self.held = collections.deque()  # (due, bytes), in order
        self.held_bytes = 0
        self.timer = None
        self.blocked = False  # the other side takes no more just now
        self.ended = False

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(high=HELD_MAX)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.route.halves.add(self)
        if self.other is None:
            transport.pause_reading()
            asyncio.ensure_future(self.connect())

    async def connect(self):
        far = Half(self.route, "down")
        far.other = self
        try:
            await asyncio.get_running_loop().create_connection(lambda: far, "127.0.0.1", self.route.target)
        except OSError:
            self.reset()
            return
        if self.ended:
            far.reset()
            return
        self.other = far
        self.flow()
        far.flow()

    def stalled(self):
        return self.way in self.route.stalled

    def data_received(self, data):
        delay_s = self.route.delay_s
        if not self.held and not delay_s and self.other is not None and not self.stalled():
            self.other.transport.write(data)
            return
        self.held.append((asyncio.get_running_loop().time() + delay_s, data))
        self.held_bytes += len(data)
        self.flow()

    def flow(self):
        """Hands on what is due, and reads or does not."""
        if self.ended or self.transport is None:
            return
        now = asyncio.get_running_loop().time()
        ready = self.other is not None and not self.stalled()
        while ready and self.held and (self.held[0][0] <= now or not self.route.delay_s):
            data = self.held.popleft()[1]
            self.held_bytes -= len(data)
            self.other.transport.write(data)
        if ready and self.held and self.timer is None:
            self.timer = asyncio.get_running_loop().call_at(self.held[0][0], self.on_due)
        if not ready or self.blocked or self.held_bytes > HELD_MAX:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def on_due(self):
        self.timer = None
        self.flow()

    def pause_writing(self):
        if self.other is not None:
            self.other.blocked = True
            self.other.flow()

    def resume_writing(self):
        if self.other is not None:
            self.other.blocked = False
            self.other.flow()

    def connection_lost(self, _error):
        self.ended = True
        self.route.halves.discard(self)
        if self.timer is not None:
            self.timer.cancel()
        other, self.other = self.other, None
        if other is not None and not other.ended:
            for _, data in self.held:
                other.transport.write(data)
            other.transport.close()

    def reset(self):
        """Both sides learn of it as from a machine that went away and came back: a reset, and nothing of what was on its way."""
        for half in (self, self.other):
            if half is not None and half.transport is not None and not half.ended:
                half.held.clear()
                sock = half.transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                half.transport.abort()


async def main_obey(routes, command):
    if command["do"] == "open":
        for name, (port, target) in command["routes"].items():
            routes[name] = Route(port, target)
            await routes[name].listen()
        return
    for name in command["names"]:
        route = routes[name]
        if command["do"] in ("cut", "refuse"):
            if command["do"] == "refuse":
                route.close()
            route.cut()
        elif command["do"] == "delay":
            route.delay_s = command["ms"] / 1000
        elif command["do"] == "stall":
            route.stalled = {"up", "down"} if command["way"] == "both" else {command["way"]}
        elif command["do"] == "heal":
            route.delay_s, route.stalled = 0.0, set()
            if command["reset"]:
                route.cut()
            if route.server is None:
                await route.listen()
        route.wake()


if __name__ == "__main__":
    known = {}
    serve(lambda command: main_obey(known, command))
