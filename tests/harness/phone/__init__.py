# SPDX-License-Identifier: Apache-2.0
"""Signatures of Twilio's and Vonage's callbacks, and checks of Vonage's tokens, by code that is not ours: sign.mjs."""
import fcntl
import json
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT", "CERT_IN_CHAIN")


def installed():
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no Node.js here: apt-get install nodejs npm")
    with (HERE / "package.json").open() as lock:  # other workers fetch it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules").exists():
            done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
            if any(word in done.stderr for word in UNREACHABLE):
                pytest.skip("the npm registry cannot be reached from here")
            assert done.returncode == 0, done.stderr


def run(*words, stdin=b""):
    done = subprocess.run(["node", HERE / "sign.mjs", *words], input=stdin, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def twilio(token, url, form):
    return run("twilio", token, url, stdin=json.dumps(form).encode())


def vonage(secret, body):
    return run("vonage", secret, stdin=body)


def verified(public_pem, token):
    return json.loads(run("verify", public_pem, token))
