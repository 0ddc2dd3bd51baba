# SPDX-License-Identifier: Apache-2.0
"""What a bench needs from Debian, before it imports anything that comes from there."""
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]


def need_packages():
    """Installs what is missing as root; as another user ends with the names of the packages. --help needs none."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        return
    done = subprocess.run(["bash", "-c", ". deploy/local/packages && install_packages $BUILD_PACKAGES $BENCH_PACKAGES"], cwd=HOME, check=False)
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: the packages above are needed")
