# SPDX-License-Identifier: Apache-2.0
"""What a process took: CPU and memory, read from /proc."""
import os
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def children(pid):
    """The living children of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def cpu_seconds(pid):
    """User and system time of a process and of its children, living or gone."""
    def read(process, with_gone):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0
        return sum(map(int, fields[11:15] if with_gone else fields[11:13]))
    return (read(pid, True) + sum(read(child, False) for child in children(pid))) / TICK


def cpu_seconds_exact(pid):
    """The same by the scheduler's nanoseconds, where /proc/PID/stat has ticks of 10 ms, which a short or idle measurement cannot use. A thread
    that has ended in a process that goes on is not in it."""
    try:
        gone = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[13:15])) / TICK
    except OSError:
        return 0.0
    return gone + sum(nanoseconds for process in [pid, *children(pid)] for nanoseconds in run_times(process)) / 1e9


def run_times(pid):
    """Of each thread, in nanoseconds."""
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            yield int(file.read_text().split()[0])
        except OSError:
            continue  # it has just ended


def context_switches(pid):
    """Of all threads of a process and of its living children, wanted or not."""
    total = 0
    for process in [pid, *children(pid)]:
        for status in Path(f"/proc/{process}/task").glob("*/status"):
            try:
                lines = status.read_text().splitlines()
            except OSError:
                continue  # it has just ended
            total += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return total


def resident_mb(pid):
    """The most that was resident since the start."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
