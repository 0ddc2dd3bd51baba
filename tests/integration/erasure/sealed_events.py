# SPDX-License-Identifier: Apache-2.0
"""Opens sealed events (proto/stentor/v1/event.proto) as who has the files would: the master key file and the epoch keys that exist. Written from
the format alone, with the cipher of tests/integration/erasure/wrapped_keys.py."""
import hashlib
import hmac

from tests.harness.protobuf import messages
from tests.integration.erasure import wrapped_keys

MAGIC = b"\xffSE1"
BY_MASTER, BY_EPOCH = 1, 2


def expand(key, info):
    """HKDF-SHA256 without a salt, 32 bytes."""
    return hmac.digest(hmac.digest(bytes(32), key, "sha256"), info + b"\1", "sha256")


def is_sealed(data):
    return data.startswith(MAGIC)


def keys(pipeline, tenant):
    """Every key that may have sealed an event of the tenant."""
    masters = pipeline.master_keys()["master"]
    folder = pipeline.extra.get("STENTOR_EPOCH_KEYS_DIR")
    epochs = wrapped_keys.epoch_keys(folder, masters) if folder else []
    secrets = [expand(epoch, b"stentor epoch events") for epoch in epochs] + [bytes.fromhex(master) for master in masters]
    return [expand(secret, b"stentor event key|" + hashlib.sha256(tenant.encode()).digest()) for secret in secrets]


def content(pipeline, bound, tenant, data):
    """The EventContent; None: no key that exists opens it."""
    m = messages(pipeline)
    sealed = m.SealedEvent.FromString(data[len(MAGIC):]).content
    for key in keys(pipeline, tenant):
        plain = wrapped_keys._open_gcm(key, sealed.nonce, f"{tenant}|{bound}|event".encode(), sealed.ciphertext)
        if plain is not None:
            return m.EventContent.FromString(plain)
    return None


def headers_of(block):
    lines = (line.partition(":") for line in block.decode().split("\r\n")[1:])
    return {name: value.strip() for name, _, value in lines if name}


def opened(pipeline, subject, headers, data):
    """(headers, payload) of a stored message, as they were before it was sealed; one in clear as it is."""
    if not is_sealed(data):
        return headers, data
    found = content(pipeline, subject, subject.split(".")[1], data)
    assert found is not None, f"no key opens the event on {subject}"
    inside = headers_of(found.headers)
    if found.message_id:
        inside["Nats-Msg-Id"] = found.message_id.decode()
    return {**headers, **inside}, found.payload
