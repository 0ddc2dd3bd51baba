# SPDX-License-Identifier: Apache-2.0
"""OpenID providers: a real one that is not ours (npm's oidc-provider) and one that does wrong on order; and a person with a browser's cookies."""
import base64
import fcntl
import http.client
import http.server
import json
import re
import shutil
import ssl
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.harness.processes import Process, free_port
from tests.harness.vendor_doubles.server import certificates

HERE = Path(__file__).resolve().parent


def installed():
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("this machine has no node or no npm")
    with open(HERE / "package.json") as lock:  # other workers fetch it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules" / "oidc-provider").exists():
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
            if re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|CERT_IN_CHAIN", done.stderr):
                pytest.skip("the npm registry cannot be reached from here")
            assert done.returncode == 0, done.stderr


class Person:
    """Cookies by origin, as a browser keeps them; redirects are followed by the test."""

    def __init__(self):
        self.cookies = {}

    def ask(self, url, method="GET", form=None, **headers):
        """(status, headers, text); Location is made whole."""
        parts = urllib.parse.urlsplit(url)
        jar = self.cookies.setdefault(parts.netloc, {})
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        try:
            sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in jar.items())} if jar else {}
            if form is not None:
                sent["Content-Type"] = "application/x-www-form-urlencoded"
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request(method, path, urllib.parse.urlencode(form) if form is not None else None, {**sent, **headers})
            answer = connection.getresponse()
            for cookie in answer.headers.get_all("Set-Cookie") or []:
                self.keep(jar, cookie)
            answered = dict(answer.getheaders())
            if "Location" in answered:
                answered["Location"] = urllib.parse.urljoin(url, answered["Location"])
            return answer.status, answered, answer.read().decode()
        finally:
            connection.close()

    @staticmethod
    def keep(jar, cookie):
        name, value = cookie.split(";")[0].split("=", 1)
        gone = not value or "max-age=0" in cookie.lower() or "expires=Thu, 01 Jan 1970" in cookie
        jar.pop(name, None) if gone else jar.update({name: value})

    def follow(self, url, until):
        """Redirects from a URL on, up to one that begins like `until` (which is not asked), or a page: (url, text)."""
        for _ in range(12):
            status, headers, text = self.ask(url)
            if status not in (302, 303):
                return url, text
            url = headers["Location"]
            if url.startswith(until):
                return url, ""
        raise AssertionError(f"it redirects for ever, at last to {url}")


class Provider(Process):
    """oidc-provider of npm. `people`: claims by login name."""

    name = "oidc-provider"

    def __init__(self, folder, clients, people):
        installed()
        super().__init__(folder)
        self.port, self.clients, self.people = free_port(), clients, people

    @property
    def issuer(self):
        return f"http://127.0.0.1:{self.port}"

    def argv(self):
        return ["node", HERE / "provider.mjs", json.dumps({"port": self.port, "clients": self.clients, "people": self.people})]

    def ready(self):
        try:
            return Person().ask(f"{self.issuer}/.well-known/openid-configuration")[0] == 200
        except OSError:
            return False

    def log_in(self, person, url, name, agrees=True):
        """From the authorization URL through its forms: the callback's URL, which is not asked yet."""
        back = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["redirect_uri"][0]
        for _ in range(3):
            url, text = person.follow(url, back)
            if url.startswith(back):
                return url
            action = re.search(r'action="([^"]+)"', text).group(1)
            if not agrees:
                url = f"{action}/abort"
                continue
            prompt = re.search(r'name="prompt" value="(\w+)"', text).group(1)
            form = {"prompt": prompt, **({"login": name, "password": "x"} if prompt == "login" else {})}
            status, headers, text = person.ask(action, "POST", form)
            assert status == 303, text
            url = headers["Location"]
        return person.follow(url, back)[0]


def text_of(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def as_jwk(key, kid):
    numbers = key.public_key().public_numbers()
    return {"kty": "RSA", "kid": kid, "use": "sig", "n": text_of(numbers.n.to_bytes(256, "big")), "e": text_of(numbers.e.to_bytes(3, "big"))}


class Rogue:
    """A provider that answers what a test has set: `answers` by path, as (status, bytes) or a function of the request's form that returns it;
    `hang`: seconds before each answer. It takes its client's secret in the form only. Codes are not checked. Over TLS with a folder, in which
    `authority` is the file of who has signed its certificate."""

    def __init__(self, folder=None):
        self.port, self.scheme = free_port(), "https" if folder else "http"
        self.key, self.kid = rsa.generate_private_key(65537, 2048), "k1"
        self.claims, self.header, self.hang = {}, {}, 0
        self.asked, self.forms = [], []
        self.answers = {"/.well-known/openid-configuration": self.document, "/keys": self.keys, "/token": self.token}
        rogue = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802 (http.server's name)
                rogue.answer(self, {})

            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                rogue.answer(self, dict(urllib.parse.parse_qsl(body)))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        if folder:
            self.authority, chain, key = certificates(folder)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
            self.server.handle_error = lambda *words: None  # who does not trust it ends the handshake
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def issuer(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def answer(self, handler, form):
        self.asked.append(handler.path)
        if form:
            self.forms.append(form)
        answer = self.answers.get(handler.path, (404, b""))
        status, body = answer(form) if callable(answer) else answer
        time.sleep(self.hang)
        try:
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            pass  # the caller did not wait

    def document(self, form=None, **other):
        return 200, json.dumps({"issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/auth?tenant=1", "token_endpoint": f"{self.issuer}/token",
                                "jwks_uri": f"{self.issuer}/keys", "token_endpoint_auth_methods_supported": ["client_secret_post"], **other}).encode()

    def keys(self, form=None):
        return 200, json.dumps({"keys": [as_jwk(self.key, self.kid)]}).encode()

    def sign(self, claims, header=None, key=None):
        """A token of these claims; those that are None are left out."""
        now = int(time.time())
        whole = {"iss": self.issuer, "aud": "console", "sub": "u1", "iat": now, "exp": now + 300, "groups": ["ops"], **claims}
        parts = [{"alg": "RS256", "kid": self.kid, **(header or {})}, {name: value for name, value in whole.items() if value is not None}]
        signed = ".".join(text_of(json.dumps(part).encode()) for part in parts)
        signature = (key or self.key).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{text_of(signature)}"

    def token(self, form):
        return 200, json.dumps({"access_token": "at", "token_type": "Bearer", "id_token": self.sign(self.claims, self.header)}).encode()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
