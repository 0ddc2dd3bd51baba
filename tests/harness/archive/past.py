# SPDX-License-Identifier: Apache-2.0
"""Months that are over: requests that were really accepted, published again with ids of an earlier time and sealed for these.
Every stage then does its work on them as on others."""
import os
from ctypes import byref, c_int, c_void_p, create_string_buffer

from tests.harness.history_log import ulid
from tests.harness.holder import CRYPTO, ctr
from tests.harness.nats_client import NatsClient
from tests.harness.protobuf import messages

CRYPTO.EVP_aes_256_gcm.restype = c_void_p
GET_TAG = 0x10


def seal(key, nonce, bound, plain):
    """AES-256-GCM: ciphertext and tag."""
    context, length, tag = c_void_p(CRYPTO.EVP_CIPHER_CTX_new()), c_int(), create_string_buffer(16)
    out = create_string_buffer(len(plain) + 16)
    CRYPTO.EVP_EncryptInit_ex(context, c_void_p(CRYPTO.EVP_aes_256_gcm()), None, key, nonce)
    CRYPTO.EVP_EncryptUpdate(context, None, byref(length), bound, len(bound))
    CRYPTO.EVP_EncryptUpdate(context, out, byref(length), plain, len(plain))
    CRYPTO.EVP_EncryptFinal_ex(context, create_string_buffer(16), byref(c_int()))
    CRYPTO.EVP_CIPHER_CTX_ctrl(context, GET_TAG, 16, tag)
    CRYPTO.EVP_CIPHER_CTX_free(context)
    return out.raw[:len(plain)] + tag.raw


class Past:
    def __init__(self, pipeline, data_keys):
        """data_keys: by subject, as wrapped_keys.opened() finds them."""
        self.data_keys, self.proto = data_keys, messages(pipeline)
        self.client = NatsClient(pipeline.nats.port)
        state = self.client.stream_info("REQUEST_NORMAL")["state"]
        self.accepted = {}
        for sequence in range(state["first_seq"], state["last_seq"] + 1):
            message = self.client.message("REQUEST_NORMAL", seq=sequence)
            if message is not None:
                request = self.proto.NotificationRequest.FromString(message[1])
                self.accepted[request.meta.notification_id] = request
        self.count = 0

    def close(self):
        self.client.close()

    def repeat(self, notification, at, code):
        """The accepted request once more, as if it had come at that time, in the retention class of the code. Returns its id."""
        request = self.proto.NotificationRequest()
        request.CopyFrom(self.accepted[notification])
        self.count += 1
        id = ulid(self.count, int(at.timestamp() * 1000))
        request.meta.notification_id = f"ntf_{id[:10]}{code}{id[11:]}"
        request.meta.event_id = f"past{self.count:018d}"
        bound = f"{request.meta.tenant}|{request.meta.notification_id}|"
        for name in ("address", "variables"):
            field = getattr(request, name)
            key = self.data_keys[field.key_subject]
            plain, field.nonce = ctr(key, field.nonce, field.ciphertext[:-16]), os.urandom(12)
            field.ciphertext = seal(key, field.nonce, (bound + name + ("|zstd" if field.packed else "")).encode(), plain)
        self.client.publish(f"ntf.request.normal.{request.meta.tenant}", request.SerializeToString(), request.meta.event_id)
        return request.meta.notification_id
