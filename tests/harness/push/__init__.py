# SPDX-License-Identifier: Apache-2.0
"""Doubles of APNs, FCM and a browser's push service that check tokens and decrypt bodies with code that is not ours (jose, http_ece): push.mjs."""
import base64
import fcntl
import json
import pathlib
import secrets
import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.harness.processes import free_port
from tests.harness.vendor_doubles.server import certificates

HERE = pathlib.Path(__file__).parent


def installed():
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("this machine has no node or no npm")
    with (HERE / "package.json").open() as lock:  # other workers fetch it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules").exists():
            done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr


def text_of(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def private_pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def public_pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def point(key):
    return text_of(key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint))


def scalar(key):
    return text_of(key.private_numbers().private_value.to_bytes(32, "big"))


class Push:
    """`accounts`: what a credential of each vendor holds. `gone`: tokens that are not there any more."""

    gone = ["ab" * 32, "gone-token"]

    def __init__(self, folder):
        installed()
        self.port = free_port()
        self.ca, chain, key = certificates(folder)
        fcm_key, apns_key, vapid, browser = rsa.generate_private_key(65537, 2048), *(ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        auth = text_of(secrets.token_bytes(16))
        self.keys = {"p256dh": point(browser), "auth": auth}
        self.service_account = {"type": "service_account", "project_id": "acme", "private_key_id": "k1", "private_key": private_pem(fcm_key),
                                "client_email": "push@acme.test", "token_uri": f"{self.base_url}/token"}
        self.accounts = {
            "fcm": {"secret": json.dumps(self.service_account), "settings": {"base_url": self.base_url}},
            "apns": {"secret": private_pem(apns_key), "id": "KEY1234567", "settings": {"base_url": self.base_url, "team_id": "TEAM123456", "topic": "com.example.App"}},
            "webpush": {"secret": scalar(vapid), "settings": {"subject": "mailto:push@acme.test", "hosts": "127.0.0.1"}}}
        self.child = subprocess.Popen(["node", HERE / "push.mjs", str(self.port), chain, key], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._ask(json.dumps({
            "apns_key": public_pem(apns_key), "fcm_key": public_pem(fcm_key), "token_uri": self.service_account["token_uri"], "gone": self.gone,
            "vapid_public": point(vapid), "browser_private": scalar(browser), "browser_auth": auth})) == "ready\n"

    @property
    def base_url(self):
        return f"https://127.0.0.1:{self.port}"

    def subscription(self, path="/push/1"):
        return json.dumps({"endpoint": self.base_url + path, "keys": self.keys})

    def _ask(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline()

    def seen(self):
        return json.loads(self._ask("stats"))

    def revoke(self):
        """FCM's access tokens are refused from now on."""
        self._ask("revoke")

    def grants(self, given):
        """Whether new access tokens are given."""
        self._ask("allow" if given else "deny")

    def goaway(self, count):
        """Each connection says GOAWAY behind so many requests, and does nothing with later ones; 0: none does."""
        self._ask(f"goaway {count}")

    def say(self, address, status=None, body="", times=1, taken=False, **headers):
        """What pushes to the address are answered, so often; without a status nothing. taken: the push is taken before that."""
        order = {"say": address, "body": body, "times": times, "taken": taken, "headers": {name.replace("_", "-"): value for name, value in headers.items()}}
        self._ask(json.dumps(order | ({"status": status} if status else {})))

    def pushes(self, vendor, notification):
        """Those of the notification that were taken."""
        collapse = {"apns": lambda push: push["collapse"], "fcm": lambda push: push["data"]["nid"], "webpush": lambda push: push["topic"]}[vendor]
        return [push for push in self.seen()[vendor] if collapse(push) == notification]

    def stop(self):
        self.child.kill()
        self.child.wait(10)
