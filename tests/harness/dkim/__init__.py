# SPDX-License-Identifier: Apache-2.0
"""DKIM keys for tests, and signatures judged by three programs that are not ours: dkimpy, OpenDKIM and mailauth (npm, fetched once)."""
import base64
import fcntl
import json
import subprocess
import sys
from pathlib import Path

import dkim

HERE = Path(__file__).resolve().parent


def make_key(path, kind, bits=2048):
    """Writes a private key in PEM; what DNS must hold for it."""
    algorithm = ["-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}"] if kind == "rsa" else ["-algorithm", "ED25519"]
    subprocess.run(["openssl", "genpkey", *algorithm, "-out", path], check=True, capture_output=True)
    path.chmod(0o644)
    der = subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
    return f"v=DKIM1; k={kind}; p={base64.b64encode(der if kind == 'rsa' else der[-32:]).decode()}"


def mailauth():
    with (HERE / "package.json").open() as lock:  # other workers fetch it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules").exists():
            done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
    return HERE / "verify.mjs"


def by_dkimpy(raw, records):
    """Whether each signature holds, from the top."""
    count = raw.lower().count(b"\ndkim-signature:") + raw.lower().startswith(b"dkim-signature:")
    return [dkim.DKIM(raw).verify(idx=i, dnsfunc=lambda name, timeout=5: records.get(name.decode().rstrip("."), "").encode()) for i in range(count)]


def by_opendkim(raw, records, folder):
    """"" when a signature holds, else what OpenDKIM says."""
    (folder / "records.json").write_text(json.dumps(records))
    done = subprocess.run(["unshare", "-rnm", sys.executable, HERE / "opendkim.py", folder / "records.json"], input=raw, capture_output=True, timeout=60)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).decode() or f"status {done.returncode}"


def by_mailauth(raw, records, folder):
    """[{"selector", "algo", "result", "aligned"}], from the top."""
    (folder / "mail.eml").write_bytes(raw)
    (folder / "records.json").write_text(json.dumps(records))
    done = subprocess.run(["node", mailauth(), folder / "mail.eml", folder / "records.json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
