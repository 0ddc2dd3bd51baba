# SPDX-License-Identifier: Apache-2.0
"""A Debian 12 or 13 in a folder, fresh from its packages, and started with its own systemd.

It has file system, processes and users of its own; the network is this machine's, so that its services reach the servers of a test. The first
root of a release is made by debootstrap and kept below TEST_ROOTS (/var/cache/stentor-roots); tests get copies."""
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.harness.processes import wait_until

# Not STENTOR_*: the programs refuse what they do not know.
KEPT = Path(os.environ.get("TEST_ROOTS", "/var/cache/stentor-roots"))
CGROUPS = Path("/sys/fs/cgroup/unified") if Path("/sys/fs/cgroup/unified").is_dir() else Path("/sys/fs/cgroup")
# What the machine's own must not meet: its clock, its modules, its log.
DROPPED = "-sys_time,-sys_module,-sys_boot,-syslog,-sys_rawio"
ENTER = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=/root", "TERM=dumb"]
MOUNTS = """
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --bind "$1/proc/sys" "$1/proc/sys" && mount -o remount,bind,ro "$1/proc/sys"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for name in null zero full random urandom tty; do touch "$1/dev/$name"; mount --bind "/dev/$name" "$1/dev/$name"; done
mkdir "$1/dev/pts" "$1/dev/shm" && mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/dev/pts" && mount -t tmpfs tmpfs "$1/dev/shm"
for folder in $BINDS; do mkdir -p "$1$folder" && mount --bind "$folder" "$1$folder"; done
ln -s pts/ptmx "$1/dev/ptmx"; ln -s /proc/self/fd "$1/dev/fd"; ln -s fd/0 "$1/dev/stdin"; ln -s fd/1 "$1/dev/stdout"; ln -s fd/2 "$1/dev/stderr"
"""
CHROOT = f"set -e\n{MOUNTS}\n" + 'root=$1; shift; exec setpriv --bounding-set "$DROP" chroot "$root" "$@"'
BOOT = f"""set -e
{MOUNTS}
mount -t cgroup2 none "$1/sys/fs/cgroup"
for name in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$1/$name"; done
chmod 755 "$1/run"
cd "$1" && pivot_root . . && umount -l . && mount --make-rshared / # not chroot: in one there are no user namespaces (PrivateUsers=)
exec setpriv --bounding-set "$DROP" env -i container=stentor-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=console
"""


def why_not():
    """The reason why there can be no root here; None: there can."""
    if os.getuid() != 0:
        return "needs root: a Debian of its own has its own mounts and processes"
    missing = [name for name in ("debootstrap", "unshare", "nsenter", "setpriv") if not shutil.which(name)]
    return f"needs {', '.join(missing)}: apt-get install debootstrap util-linux" if missing else None


@contextlib.contextmanager
def _alone(name):
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept(suite, kind="base", prepare=None):
    """The folder of a root that is kept: made once, whole or not at all. prepare(root) installs what its kind is for."""
    place = KEPT / f"{suite}-{kind}"
    with _alone(place.name):
        if not place.is_dir():
            new = KEPT / f"{place.name}.new"
            shutil.rmtree(new, ignore_errors=True)
            if kind == "base":
                subprocess.run(["debootstrap", "--variant=minbase", suite, new], check=True, stdout=subprocess.DEVNULL, timeout=1500)
                (new / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
            else:
                copy(kept(suite), new)
                prepare(Root(suite, new))
            new.rename(place)
    return place


def copy(base, folder):
    subprocess.run(["cp", "-a", "--reflink=auto", base, folder], check=True)


class Root:
    def __init__(self, suite, folder, binds=()):
        """binds: folders of this machine that it sees at the same place."""
        self.suite, self.folder, self.binds = suite, Path(folder), " ".join(map(str, binds))
        self.init = self.shell = self.group = None

    @classmethod
    def fresh(cls, suite, folder, **kind):
        copy(kept(suite, **kind), folder)
        return cls(suite, folder)

    # ---- commands -------------------------------------------------------------------------------------------------------

    def run(self, *words, check=True, timeout=900, **environment):
        """Runs a command in it, beside its systemd when that runs; returns what it said on both channels together."""
        settings = [*ENTER, *(f"{name}={value}" for name, value in environment.items())]
        inside = ["env", "-C", "/", "-i", *settings, *map(str, words)]
        if self.init:
            command = ["nsenter", "--target", str(self.init), "--mount", "--pid", "--uts", "--ipc", "--cgroup", f"--root=/proc/{self.init}/root", *inside]
        else:
            shutil.copy("/etc/resolv.conf", self.folder / "etc/resolv.conf")
            command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CHROOT, "sh", self.folder, *inside]
        done = subprocess.run(command, env={**os.environ, "DROP": DROPPED, "BINDS": self.binds}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              text=True, errors="replace", timeout=timeout)
        assert not check or done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-4000:]}"
        return done.stdout

    def install(self, *words):
        self.run("apt-get", "update", "-qq")
        return self.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *words)

    def files(self):
        """Every path of it but those of a running system."""
        passing = ("proc", "sys", "dev", "run", "tmp", "var/tmp")
        found = set()
        for top, folders, names in os.walk(self.folder):
            path = os.path.relpath(top, self.folder)
            folders[:] = [name for name in folders if os.path.normpath(os.path.join(path, name)) not in passing]
            found |= {os.path.normpath(os.path.join(path, name)) for name in [*folders, *names]}
        return found

    # ---- systemd --------------------------------------------------------------------------------------------------------

    def boot(self):
        """Starts its systemd. The reason when it does not come up here, else None."""
        self.group = CGROUPS / f"stentor-root-{os.getpid()}"
        self.group.mkdir(exist_ok=True)
        log = open(self.folder.with_suffix(".boot"), "ab")  # noqa: SIM115 (the child's)
        self.shell = subprocess.Popen(
            ["sh", "-c", 'echo $$ >"$GROUP/cgroup.procs" && exec unshare --mount --pid --uts --ipc --cgroup --fork --kill-child sh -c "$BOOT" sh "$1"', "sh", self.folder],
            env={**os.environ, "GROUP": str(self.group), "BOOT": BOOT, "DROP": DROPPED, "BINDS": self.binds}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        log.close()
        try:
            wait_until(self._is_up, 60, "systemd")
        except AssertionError:
            said = self.folder.with_suffix(".boot").read_text(errors="replace")[-1500:]
            self.halt()
            return f"systemd of {self.suite} does not start in a container here: {said}"
        return None

    def _is_up(self):
        if self.shell.poll() is not None:
            raise AssertionError("it ended")
        if not self.init:
            children = Path(f"/proc/{self.shell.pid}/task/{self.shell.pid}/children").read_text().split()
            if not children or Path(f"/proc/{children[0]}/comm").read_text().strip() != "systemd":
                return False
            self.init = int(children[0])
        return self.run("systemctl", "is-system-running", check=False).split()[-1:] in (["running"], ["degraded"])

    def halt(self):
        if self.shell and self.shell.poll() is None:
            if self.init:
                os.kill(self.init, signal.SIGKILL)  # and with it all that runs in it
            self.shell.kill()
            self.shell.wait()
            wait_until(self._forget_group, 20, "the end of every process of the root")
        self.init = None

    def _forget_group(self):
        """Its control groups go from the leaves up, once what ran in them has ended."""
        with contextlib.suppress(OSError):
            for folder, _, _ in os.walk(self.group, topdown=False):
                os.rmdir(folder)
        return not self.group.exists()
