# SPDX-License-Identifier: Apache-2.0
"""AWS Signature Version 4 for S3, written from Amazon's description and shared with nothing of the product: signs what the harness asks
(client.py) and checks what the product asks (puppet.py). Only headers are signed, never a query."""
import datetime
import hashlib
import hmac
import urllib.parse
from dataclasses import dataclass

ALGORITHM = "AWS4-HMAC-SHA256"
FAMILIES = {  # algorithm: before the secret, the scope's service and end, the headers' prefix
    ALGORITHM: ("AWS4", "s3", "aws4_request", "x-amz-"),
    "GOOG4-HMAC-SHA256": ("GOOG4", "storage", "goog4_request", "x-goog-"),
}
UNSIGNED = "UNSIGNED-PAYLOAD"
CLOCK_MAX_S = 900  # what S3 allows between the two clocks


@dataclass
class Credentials:
    key_id: str
    secret: str
    token: str = ""  # a session's


class Refused(Exception):
    """The status, S3's word and a text that says what was wrong."""

    def __init__(self, status, code, text):
        super().__init__(f"{code}: {text}")
        self.status, self.code, self.text = status, code, text


def sha256_hex(data):
    return hashlib.sha256(data).hexdigest()


def encode(text, slash_too=True):
    return urllib.parse.quote(text, safe="-_.~" if slash_too else "-_.~/")


def _mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def canonical_query(pairs):
    return "&".join(f"{name}={value}" for name, value in sorted((encode(name), encode(value)) for name, value in pairs))


def canonical_request(method, path, pairs, headers, names, payload):
    """path: decoded, begins with '/'; headers: dict of lower-case names; names: those that are signed, sorted."""
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in names]
    return "\n".join([method, encode(path, slash_too=False), canonical_query(pairs), *lines, "", ";".join(names), payload])


def signature(secret, stamp, scope, canonical, algorithm=ALGORITHM):
    day, region, service, end = scope.split("/")
    key = _mac(_mac(_mac(_mac(f"{FAMILIES[algorithm][0]}{secret}".encode(), day), region), service), end)
    text = f"{algorithm}\n{stamp}\n{scope}\n{sha256_hex(canonical.encode())}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def sign(method, path, pairs, headers, body, credentials, region, now=None):
    """The headers to send, `authorization` among them. headers: those of the caller, with `host`."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    signed = {**{name.lower(): value for name, value in headers.items()}, "x-amz-date": stamp, "x-amz-content-sha256": sha256_hex(body)}
    if credentials.token:
        signed["x-amz-security-token"] = credentials.token
    names = sorted(signed)
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    proof = signature(credentials.secret, stamp, scope, canonical_request(method, path, pairs, signed, names, signed["x-amz-content-sha256"]))
    signed["authorization"] = f"{ALGORITHM} Credential={credentials.key_id}/{scope}, SignedHeaders={';'.join(names)}, Signature={proof}"
    return signed


def check(method, target, headers, body, credentials, region, now):
    """Raises Refused unless the request is signed as it must be. target: path and query as they were sent; headers: lower-case names;
    now: the server's clock, a datetime."""
    algorithm, stamp, scope, names, given = _parse(headers, credentials, region)
    prefix = FAMILIES[algorithm][3]
    _check_clock(stamp, now)
    _check_signed_names(headers, names, prefix)
    if headers.get(f"{prefix}security-token", "") != credentials.token:
        raise Refused(403, "InvalidToken", f"{prefix}security-token is not the session's")
    payload = headers.get(f"{prefix}content-sha256")
    if payload is None:
        raise Refused(400, "InvalidRequest", f"{prefix}content-sha256 is missing")
    path, _, query = target.partition("?")
    pairs = [(urllib.parse.unquote(name), urllib.parse.unquote(value)) for name, _, value in (word.partition("=") for word in query.split("&") if word)]
    canonical = canonical_request(method, urllib.parse.unquote(path), pairs, headers, names, payload)
    if not hmac.compare_digest(given, signature(credentials.secret, stamp, scope, canonical, algorithm)):
        raise Refused(403, "SignatureDoesNotMatch", f"the server's canonical request: {canonical!r}")
    if payload != UNSIGNED and payload != sha256_hex(body):
        raise Refused(400, "XAmzContentSHA256Mismatch", f"{prefix}content-sha256 is not the hash of the body")


def _parse(headers, credentials, region):
    words = headers.get("authorization", "")
    if not words:
        raise Refused(403, "AccessDenied", "no authorization header")
    algorithm, _, rest = words.partition(" ")
    fields = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    if algorithm not in FAMILIES or set(fields) != {"Credential", "SignedHeaders", "Signature"}:
        raise Refused(400, "AuthorizationHeaderMalformed", words)
    key_id, _, scope = fields["Credential"].partition("/")
    if key_id != credentials.key_id:
        raise Refused(403, "InvalidAccessKeyId", key_id)
    _, service, end, prefix = FAMILIES[algorithm]
    stamp = headers.get(f"{prefix}date", "")
    if scope != f"{stamp[:8]}/{region}/{service}/{end}":
        raise Refused(400, "AuthorizationHeaderMalformed", f"the scope '{scope}' is not '{stamp[:8]}/{region}/{service}/{end}'")
    return algorithm, stamp, scope, fields["SignedHeaders"].split(";"), fields["Signature"]


def _check_clock(stamp, now):
    try:
        sent = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        raise Refused(403, "AccessDenied", f"x-amz-date '{stamp}' is not a time") from None
    if abs((sent - now).total_seconds()) > CLOCK_MAX_S:
        raise Refused(403, "RequestTimeTooSkewed", f"the request is of {stamp}, the server's time is {now:%Y%m%dT%H%M%SZ}")


def _check_signed_names(headers, names, prefix):
    other = [name for name in headers if name.startswith(("x-amz-", "x-goog-")) and not name.startswith(prefix)]
    if other:
        raise Refused(400, "ExcessHeaderValues", f"Requests cannot specify both x-amz and x-goog headers: {other}")
    if names != sorted(names) or len(set(names)) != len(names):
        raise Refused(403, "SignatureDoesNotMatch", f"the signed headers are not in order: {names}")
    missing = [name for name in names if name not in headers]
    if missing:
        raise Refused(403, "SignatureDoesNotMatch", f"signed and not sent: {missing}")
    needed = [name for name in headers if name == "host" or name.startswith(("x-amz-", "x-goog-"))]
    unsigned = [name for name in needed if name not in names]
    if unsigned:
        raise Refused(403, "AccessDenied", f"headers that were not signed: {unsigned}")
