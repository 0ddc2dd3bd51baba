# SPDX-License-Identifier: Apache-2.0
"""A mailbox for many mails, in a process of its own: it keeps Message-IDs and times only, and can misbehave.

mode     what becomes of the chosen share of the mails
normal   all are taken
hang     no answer any more on that connection: after RCPT, or after the final dot with the mail kept or not
4xx      a transient refusal, after RCPT or after the dot; 421 ends the connection too
5xx      a permanent one
reset    the connection is reset: after MAIL, inside the text, after the dot with the mail kept or not"""
import asyncio
import collections
import json
import random
import re
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.harness.puppet import Puppet, serve  # noqa: E402

TRANSIENT = ["421 4.3.2 going down", "450 4.2.0 busy", "451 4.3.0 local error", "452 4.3.1 no room", "451 4.7.1 later"]
PERMANENT = ["550 5.1.1 no such user", "554 5.7.1 not wanted", "552 5.3.4 too big", "550 5.7.26 unsigned"]


class Tally(Puppet):
    """mode(kind, share); counts() while it runs; everything(file) at the end."""

    def __init__(self, port, seed=1, by="message-id"):
        """by: what a mail is known by, "message-id" or "recipient"."""
        super().__init__(__file__)
        self.port = port
        self.seed = seed
        self.by = by

    def start(self):
        super().start()
        self.tell(do="open", port=self.port, seed=self.seed, by=self.by)
        return self

    def mode(self, kind, share=1.0):
        self.tell(do="mode", kind=kind, share=share)

    def counts(self):
        return self.tell(do="counts")

    def everything(self, path):
        """{"kept": {id: [times]}, "permanent": {address: reply}, "hurt": {address: [what]}}: `hurt` is every other misbehaviour."""
        self.tell(do="write", path=str(path))
        return json.loads(Path(path).read_text())


# ---- the program ------------------------------------------------------------------------------------------------------------


class Box:
    def __init__(self):
        self.kept = {}
        self.again = 0
        self.permanent = {}
        self.hurt = collections.defaultdict(list)
        self.kind, self.share = "normal", 0.0
        self.chance = random.Random(1)
        self.by = "message-id"

    def keep(self, text, recipient):
        found = re.search(rb"^message-id:\s*<([^@>]+)", text[:text.find(b"\r\n\r\n")], re.I | re.M)
        name = recipient if self.by == "recipient" else found.group(1).decode() if found else "?"
        times = self.kept.setdefault(name, [])
        self.again += len(times) > 0
        times.append(round(time.time(), 3))

    def fate(self):
        """What becomes of the next mail: (where, what, reply)."""
        chance = self.chance
        if self.kind == "normal" or chance.random() >= self.share:
            return "", "", ""
        if self.kind == "hang":
            return chance.choices(["rcpt", "dot"], [1, 9])[0], chance.choice(["hang kept", "hang"]), ""
        if self.kind == "reset":
            return chance.choice(["mail", "text", "dot", "dot"]), chance.choice(["reset kept", "reset"]), ""
        return chance.choice(["rcpt", "dot"]), self.kind, chance.choice(TRANSIENT if self.kind == "4xx" else PERMANENT)


class Session(asyncio.Protocol):
    def __init__(self, box):
        self.box = box
        self.input = bytearray()
        self.output = []
        self.in_text = False
        self.seen = 0  # bytes of the text that hold no end
        self.address = ""
        self.where, self.what, self.reply = "", "", ""
        self.over = False  # hung or gone: nothing is read any more

    def connection_made(self, transport):
        self.transport = transport
        transport.write(b"220 sink.test ready\r\n")

    def data_received(self, data):
        self.input += data
        while not self.over and (self.take_text() if self.in_text else self.take_line()):
            pass
        if self.output:
            self.transport.write(b"".join(self.output))
            self.output.clear()
        if self.over and self.what.startswith("4xx"):
            self.transport.close()

    def say(self, line):
        self.output.append(line.encode() + b"\r\n")

    # ---- misbehaving ----

    def meets_its_fate(self, where):
        """True: the mail's fate is met here, and the caller says nothing."""
        if where != self.where:
            return False
        self.where = ""
        if self.what == "5xx":
            self.box.permanent[self.address] = self.reply
            self.say(self.reply)
            return True
        self.box.hurt[self.address].append(f"{self.what} {where} {self.reply}".strip())
        if self.what == "4xx":
            self.say(self.reply)
            self.over = self.reply.startswith("421")
            return True
        self.over = True
        if self.what.startswith("reset"):
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        return True

    # ---- the protocol ----

    def take_line(self):
        end = self.input.find(b"\r\n")
        if end < 0:
            return False
        line = self.input[:end].decode("utf-8", "replace")
        del self.input[:end + 2]
        word = line[:4].upper()
        if word == "EHLO":
            self.say("250-sink.test\r\n250-PIPELINING\r\n250-ENHANCEDSTATUSCODES\r\n250-SMTPUTF8\r\n250 8BITMIME")
        elif word == "MAIL":
            self.address = ""
            self.where, self.what, self.reply = self.box.fate()
            if not self.meets_its_fate("mail"):
                self.say("250 2.1.0 ok")
        elif word == "RCPT":
            self.take_recipient(line)
        elif word == "DATA":
            self.take_data()
        elif word == "QUIT":
            self.say("221 2.0.0 bye")
            self.transport.write(b"".join(self.output))
            self.output.clear()
            self.over = True
            self.transport.close()
        else:
            self.say("250 2.0.0 ok" if word in ("HELO", "NOOP", "RSET") else "502 5.5.1 not known")
        return True

    def take_recipient(self, line):
        address = line[line.find("<") + 1:line.find(">")]
        self.address = address
        if self.meets_its_fate("rcpt"):
            self.address = ""
        else:
            self.say("250 2.1.5 ok")

    def take_data(self):
        if not self.address:
            self.say("503 5.5.1 no recipient")
            return
        self.in_text, self.seen = True, 0
        self.say("354 go on")

    def take_text(self):
        if self.where == "text" and len(self.input) > 40:
            self.meets_its_fate("text")
            return False
        end = self.input.find(b"\r\n.\r\n", max(0, self.seen - 4))
        if end < 0:
            self.seen = len(self.input)
            return False
        text = bytes(self.input[:end])
        del self.input[:end + 5]
        self.in_text = False
        fated = self.where == "dot"
        if not fated or self.what.endswith("kept"):
            self.box.keep(text, self.address)
        if not (fated and self.meets_its_fate("dot")):
            self.say("250 2.0.0 kept")
        return True


async def main_obey(box, command):
    if command["do"] == "open":
        box.chance.seed(command["seed"])
        box.by = command["by"]
        await asyncio.get_running_loop().create_server(lambda: Session(box), "127.0.0.1", command["port"], backlog=512)
    elif command["do"] == "mode":
        box.kind, box.share = command["kind"], command["share"]
    elif command["do"] == "write":
        Path(command["path"]).write_text(json.dumps({"kept": box.kept, "permanent": box.permanent, "hurt": box.hurt}))
    return {"mails": len(box.kept), "again": box.again, "permanent": len(box.permanent), "hurt": len(box.hurt)}


if __name__ == "__main__":
    the_box = Box()
    serve(lambda command: main_obey(the_box, command))
