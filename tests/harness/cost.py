# SPDX-License-Identifier: Apache-2.0
"""What a process took: CPU and memory, read from /proc."""
import os
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of a process and of its children, living or gone."""
    def read(path, with_gone):
        try:
            fields = Path(path, "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0
        return sum(map(int, fields[11:15] if with_gone else fields[11:13]))
    total = read(f"/proc/{pid}", True)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                total += read(entry, False)
    return total / TICK


def resident_mb(pid):
    """The most that was resident since the start."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
