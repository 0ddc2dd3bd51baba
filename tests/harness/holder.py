# SPDX-License-Identifier: Apache-2.0
"""A program that holds everything of a pipeline: tables, streams, segments, the files on disk, the key file and all data keys that exist.
It tries each key on each sealed field, with a cipher and a parser of its own."""
import re
from ctypes import CDLL, byref, c_char_p, c_int, c_size_t, c_void_p, create_string_buffer
from ctypes.util import find_library

from tests.harness.nats_client import NatsClient
from tests.harness.segments import ZSTD, read_segment

CRYPTO = CDLL(find_library("crypto") or "libcrypto.so.3")
for _name in ("EVP_CIPHER_CTX_new", "EVP_aes_256_ctr"):
    getattr(CRYPTO, _name).restype = c_void_p
ZSTD.ZSTD_decompress.argtypes = [c_char_p, c_size_t, c_char_p, c_size_t]
STREAMS = [f"{kind}_{lane}" for kind in ("REQUEST", "RENDERED") for lane in ("CRITICAL", "HIGH", "NORMAL", "LOW")] + [
    "STATUS", "DEFERRED", "INBOUND", "SETTLE", "HOOK", "CONFIG", "PEOPLE", "DEAD", "EVENTS", "AUDIT", "REPLIES", "IN_HAND"]


def ctr(key, nonce, data):
    """What GCM decrypts, whatever the tag says: whether it is the right key shows in the text."""
    context, out, length = c_void_p(CRYPTO.EVP_CIPHER_CTX_new()), create_string_buffer(len(data) + 16), c_int()
    CRYPTO.EVP_DecryptInit_ex(context, c_void_p(CRYPTO.EVP_aes_256_ctr()), None, key, nonce + b"\0\0\0\2")
    CRYPTO.EVP_DecryptUpdate(context, out, byref(length), data, len(data))
    CRYPTO.EVP_CIPHER_CTX_free(context)
    return out.raw[:length.value]


def unpacked(plain):
    """A frame of a body, decompressed; what is none, as it is."""
    at = plain.find(b"\x28\xb5\x2f\xfd")
    if at < 0:
        return plain
    out = create_string_buffer(1 << 20)
    size = ZSTD.ZSTD_decompress(out, len(out), plain[at:], len(plain) - at)
    return out.raw[:size] if size <= len(out) else plain


def varint(data, at):
    value, shift = 0, 0
    while at < len(data) and data[at] >= 0x80:
        value, shift, at = value | (data[at] & 0x7f) << shift, shift + 7, at + 1
    return (value | data[at] << shift, at + 1) if at < len(data) else (0, at)


def fields(data):
    """(subject, generation, nonce, ciphertext) of each packed stentor.v1.Sealed in the bytes."""
    for match in re.finditer(rb"\x0a\x10(.{16})\x10", data, re.S):
        generation, at = varint(data, match.end())
        if data[at:at + 2] == b"\x1a\x0c" and data[at + 14:at + 15] == b"\x22":
            size, start = varint(data, at + 15)
            yield match[1], generation, data[at + 2:at + 14], data[start:start + size - 16]


class Holder:
    def __init__(self, pipeline, storage=None):
        self.pipeline, self.storage = pipeline, storage

    def keys(self):
        masters = [bytes.fromhex(key) for key in self.pipeline.master_keys()["master"]]
        rows = self.pipeline.postgres.query("SELECT wrapped FROM keys.data_keys WHERE wrapped IS NOT NULL")
        return [ctr(master, bytes(wrapped)[6:18], bytes(wrapped)[18:-16]) for wrapped, in rows for master in masters]

    def pieces(self):
        """(where, bytes) of everything that is stored."""
        for name, in self.pipeline.postgres.query(
                "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE c.relkind = 'r' AND n.nspname !~ '^(pg_|information_schema)'"):
            for row in self.pipeline.postgres.query(f"SELECT * FROM {name}"):
                for value in row:
                    if value is not None:
                        yield "table " + name, bytes(value) if isinstance(value, memoryview) else str(value).encode()
        client = NatsClient(self.pipeline.nats.port)
        for stream in STREAMS:
            state = client.stream_info(stream)["state"]
            for sequence in range(state["first_seq"], state["last_seq"] + 1):
                message = client.message(stream, seq=sequence)
                if message is not None:
                    yield "stream " + stream, message[1]
        client.close()
        stored = self.pipeline.postgres.query("SELECT key FROM archive.segments WHERE deleted_at IS NULL ORDER BY key") if self.storage else []
        for key, in stored:
            for record in read_segment((self.storage / key).read_bytes())[1]:
                yield "segment " + key, record.payload
        for path in sorted(self.storage.rglob("*.parquet")) if self.storage else []:
            yield "object " + path.name, path.read_bytes()  # ciphertexts are not compressed in it

    def files(self):
        """What lies on the disk: Postgres with its WAL, NATS, objects, logs."""
        for path in sorted(self.pipeline.folder.rglob("*")):
            if path.is_file():
                try:
                    yield path, path.read_bytes()
                except OSError:
                    continue  # gone meanwhile

    def reads(self, *secrets):
        """(places of a secret in clear, places where a key that exists opens one, how many fields were tried)."""
        keys, secrets = self.keys(), [secret.lower().encode() for secret in secrets]
        clear, opened, tried = set(), set(), 0
        for where, data in self.pieces():
            if any(secret in data.lower() for secret in secrets):
                clear.add(where)
            for _, _, nonce, ciphertext in fields(data):
                tried += 1
                plains = (unpacked(ctr(key, nonce, ciphertext)).lower() for key in keys)
                if any(secret in plain for plain in plains for secret in secrets):
                    opened.add(where)
        return clear, opened, tried

    def on_disk(self, *secrets):
        """Files in which a secret stands in clear."""
        self.pipeline.postgres.query("CHECKPOINT")
        patterns = [secret.lower().encode() for secret in secrets]
        return [str(path) for path, data in self.files() if any(pattern in data.lower() for pattern in patterns)]
