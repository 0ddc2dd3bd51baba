# SPDX-License-Identifier: Apache-2.0
"""Log segments read by another implementation than ours: zstd's own frames by their index, in plain Python."""
import hashlib
import struct
from ctypes import CDLL, c_char_p, c_size_t, create_string_buffer
from ctypes.util import find_library
from dataclasses import dataclass

ZSTD = CDLL(find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.argtypes = [c_char_p, c_size_t, c_char_p, c_size_t]
ZSTD.ZSTD_decompress.restype = c_size_t


@dataclass
class Record:
    sequence: int
    at_us: int
    subject: str
    form: int  # 0: headers follow from the message
    headers: bytes
    payload: bytes


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self):
        value = self.number()
        return (value >> 1) ^ -(value & 1)


def read_index(data):
    """(header as a dict, [(offset, compressed, bytes)])."""
    count, descriptor, magic = struct.unpack("<IBI", data[-9:])
    assert magic == 0x8F92EAB1 and descriptor == 0x80
    table = data[-9 - 12 * count:-9]
    sizes = [struct.unpack("<III", table[i * 12:i * 12 + 12])[:2] for i in range(count)]
    offsets, at = [], 0
    for compressed, size in sizes:
        offsets.append((at, compressed, size))
        at += compressed
    start, length, _ = offsets.pop()
    assert struct.unpack("<II", data[start:start + 8]) == (0x184D2A5D, length - 8)
    index = data[start + 8:start + length - 8]
    assert hashlib.sha256(index).digest()[:8] == data[start + length - 8:start + length]
    source = Bytes(index)
    assert source.take(15) == b"stentor segment" and source.take(1) == b"\x01"
    header = {"stream": source.take(source.number()).decode(), "created_us": source.signed(), "class": source.take(1).decode(),
              "first": source.number(), "last": source.number(), "events": source.number(), "min_at_us": source.signed(),
              "max_at_us": source.signed()}
    return header, offsets


def read_segment(data):
    """(header, [Record])"""
    header, frames = read_index(data)
    records = []
    for offset, compressed, size in frames:
        out = create_string_buffer(size)
        assert ZSTD.ZSTD_decompress(out, size, data[offset:offset + compressed], compressed) == size
        source, sequence, at_us, subject = Bytes(out.raw), 0, 0, ""
        while source.at < size:
            sequence += source.number()
            at_us += source.signed()
            form = source.take(1)[0]
            subject = source.take(source.number()).decode() or subject
            headers = source.take(source.number()) if form else b""
            records.append(Record(sequence, at_us, subject, form, headers, source.take(source.number())))
    assert len(records) == header["events"]
    return header, records
