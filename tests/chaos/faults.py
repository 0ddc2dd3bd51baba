# SPDX-License-Identifier: Apache-2.0
"""Each kind of fault: a generator that breaks something, yields while it is broken, and repairs it."""
import contextlib
import json
import os
import shutil
import signal
import threading
import time

from tests.chaos import vendors
from tests.chaos.schedule import VENDOR_FAULTS
from tests.harness.processes import wait_until

REPAIR_S = 600  # an audit of all of a run, on a busy machine


def kill(world, fault):
    with held(world, fault.victims):
        for victim in fault.victims:
            world.crash(victim)
        yield
        for victim in fault.victims:
            world.revive(victim)


def restart(world, fault):
    """An update: SIGTERM, and it must drain and end with 0."""
    with held(world, fault.victims):
        for victim in fault.victims:
            world.wanted.discard(victim)
            try:
                status = world.process(victim).stop()
            except AssertionError:
                status = "killed: it did not drain"
            if status != 0:
                world.ended.append((victim, f"{status} after SIGTERM", world.process(victim).tail(12)))
                world.say(f"         {victim} was asked to end and ended with {status}")
        yield
        for victim in fault.victims:
            world.revive(victim)


def freeze(world, fault):
    with held(world, fault.victims):
        for victim in fault.victims:
            world.send_signal(victim, signal.SIGSTOP)
        yield
        for victim in fault.victims:
            world.send_signal(victim, signal.SIGCONT)


def postgres_stop(world, fault):
    """Immediate stop: SIGQUIT, no checkpoint, recovery at the next start."""
    with held(world, fault.victims):
        world.wanted.discard("postgres")
        world.process("postgres").child.send_signal(signal.SIGQUIT)
        world.process("postgres").child.wait(60)
        yield
        world.revive("postgres")


def postgres_backend(world, _fault):
    """kill -9 of one connection's process: the server ends all of them and recovers."""
    with held(world, ["postgres"]):
        backends = world.backends()
        if backends:
            with contextlib.suppress(ProcessLookupError):
                os.kill(max(backends), signal.SIGKILL)
        yield


def network(world, fault):
    routes = [f"{victim}>{fault.detail['to']}" for victim in fault.victims]
    if fault.kind == "cut":
        world.proxy.cut(routes)
    elif fault.kind == "refuse":
        world.proxy.refuse(routes)
    elif fault.kind == "slow":
        world.proxy.delay(routes, fault.detail["ms"])
    else:
        world.proxy.stall(routes, fault.detail["way"])
    yield
    if fault.kind != "cut":
        world.proxy.heal(routes, reset=fault.detail.get("reset", False))


def smtp(world, fault):
    world.mailbox.mode(fault.kind.removeprefix("smtp-"), fault.detail["share"])
    yield
    world.mailbox.mode("normal")


def fill(path, left):
    """Takes what is free but for `left` bytes; tried again, for the server writes at the same time."""
    with open(path, "wb") as file:
        size = 0
        for _ in range(50):
            status = os.statvfs(path.parent)
            more = status.f_bavail * status.f_frsize - left
            if more <= 0:
                return
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), size, more)
                size += more


def disk(world, fault):
    """Fills NATS's disk but for `left` bytes.

    In nats-server 2.9.10 a stream whose write finds no room waits for its own lock from then on (msgBlock.writeMsgRecord), and with
    it every connection that speaks to that stream, also when there is room again. It says nothing, and SIGTERM waits for the
    same lock: kill -9 and a restart is what an operator must do, and what is done here when a stream does not answer."""
    if not world.mounted:
        yield
        return
    with held(world, ["nats"]):
        ballast = world.nats.folder / "store" / "ballast"
        fill(ballast, fault.detail["left"])
        yield
        ballast.unlink()
        world.mend_jetstream(0, "after the disk was full")


def restore(world, fault):
    """The store as it was at `taken`: what a power cut leaves of what was acknowledged and not yet on the disk."""
    store, copy = world.nats.folder / "store", world.nats.folder / "copy"
    # On a slow machine the copy may still wait for its turn: nothing may be deleted before there is one.
    wait_until(copy.exists, 120, "the copy of the store")
    with held(world, ["nats"]):
        world.crash("nats")
        for child in store.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
        shutil.copytree(copy, store, dirs_exist_ok=True)
        yield
        world.revive("nats")
        world.mend_jetstream(30, "after its store was restored")
    threading.Thread(target=world.rotation.keep, daemon=True).start()
    if fault.detail["audit"] == "at once":
        world.say(repair(world)[1])


def repair(world):
    """Drives what a stream has forgotten again from the accept log. Returns how many are still lost, None where the audit gave
    no answer, and what it says of them."""
    done = world.run_cli("audit", "--repair", "--grace", "4", "--wait", "5", "--limit", "1", "--json", timeout=REPAIR_S)
    try:
        report = json.loads(done.stdout)
        example = "".join(f", for example {f['source']} of {f['id']}" for f in report["findings"][:1] if f["what"] == "lost")
        return report["lost"], (f"         audit --repair: {report.get('repaired')} again; then lost {report['lost']},"
                                f" in flight {report['in_flight']}{example}")
    except (ValueError, KeyError):
        return None, f"         audit --repair: {done.returncode} {(done.stdout + done.stderr).strip()[-300:]}"


def take_copy(world):
    """Of the store, while the server is stopped in the middle of whatever it does."""
    with held(world, ["nats"]):
        world.send_signal("nats", signal.SIGSTOP)
        try:
            part = world.nats.folder / "copy.part"
            shutil.copytree(world.nats.folder / "store", part, ignore=shutil.ignore_patterns("ballast"))
            part.rename(world.nats.folder / "copy")  # whole, or not there
        finally:
            world.send_signal("nats", signal.SIGCONT)


ACTIONS = {
    "kill": kill, "kill-many": kill, "restart": restart, "freeze": freeze, "freeze-nats": freeze, "freeze-postgres": freeze,
    "nats-kill": kill, "postgres-kill": kill, "postgres-stop": postgres_stop, "postgres-backend": postgres_backend,
    "cut": network, "refuse": network, "slow": network, "stall": network, "disk": disk,
    "smtp-hang": smtp, "smtp-4xx": smtp, "smtp-5xx": smtp, "smtp-reset": smtp, "restore": restore,
    "vendor-refuse": vendors.network, "vendor-stall": vendors.network, "vendor-401": vendors.revoked, "rotate": vendors.rotate,
    **{kind: vendors.misbehave for kind in VENDOR_FAULTS},
}


@contextlib.contextmanager
def held(world, names):
    with contextlib.ExitStack() as stack:
        for name in sorted(names):
            stack.enter_context(world.locks[name])
        yield


class Breaker:
    """Carries out a schedule: a thread per fault, so that a slow restart delays no other."""

    def __init__(self, world, faults, say):
        self.world = world
        self.faults = faults
        self.say = say
        self.broken = []  # faults that could not be carried out: (fault, why)
        self.threads = []

    def start(self):
        started = time.monotonic()
        for fault in self.faults:
            if fault.kind == "restore":
                self.spawn(started + fault.detail["taken"], self.copy)
            self.spawn(started + fault.at, self.run, fault)
        return self

    def spawn(self, due, work, *arguments):
        def wait_and_work():
            if self.world.over.wait(max(0, due - time.monotonic())):
                return
            work(*arguments)
        self.threads.append(threading.Thread(target=wait_and_work, daemon=True))
        self.threads[-1].start()

    def copy(self):
        self.say("         a copy of NATS's store is taken")
        take_copy(self.world)

    def run(self, fault):
        self.say(str(fault))
        try:
            steps = ACTIONS[fault.kind](self.world, fault)
            next(steps)
            time.sleep(fault.seconds)
            next(steps, None)
        except Exception as error:  # noqa: BLE001 (reported, and the run fails for it)
            self.broken.append((fault, repr(error)))
            self.say(f"         {fault.kind} could not be carried out: {error!r}")

    def join(self, seconds):
        """Until every fault is over; False when one is not."""
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)
