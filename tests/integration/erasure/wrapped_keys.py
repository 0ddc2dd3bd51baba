# SPDX-License-Identifier: Apache-2.0
"""Opens wrapped data keys as an attacker would who has every file: the master key file, the epoch keys that exist, rows of keys.data_keys.
Written from the format alone (common/codec/seal.c), with libcrypto."""
import ctypes
import ctypes.util

CRYPTO = ctypes.CDLL(ctypes.util.find_library("crypto"))
CRYPTO.EVP_CIPHER_CTX_new.restype = CRYPTO.EVP_aes_256_gcm.restype = ctypes.c_void_p
BY_MASTER, BY_EPOCH, SET_TAG = 1, 2, 0x11


def _open_gcm(key, nonce, bound, body):
    """The plaintext; None: it was not made by this key for this."""
    context, length = ctypes.c_void_p(CRYPTO.EVP_CIPHER_CTX_new()), ctypes.c_int()
    out = ctypes.create_string_buffer(len(body))
    CRYPTO.EVP_DecryptInit_ex(context, ctypes.c_void_p(CRYPTO.EVP_aes_256_gcm()), None, key, nonce)
    CRYPTO.EVP_DecryptUpdate(context, None, ctypes.byref(length), bound, len(bound))
    CRYPTO.EVP_DecryptUpdate(context, out, ctypes.byref(length), body[:-16], len(body) - 16)
    CRYPTO.EVP_CIPHER_CTX_ctrl(context, SET_TAG, 16, body[-16:])
    fits = CRYPTO.EVP_DecryptFinal_ex(context, out, ctypes.byref(length)) == 1
    CRYPTO.EVP_CIPHER_CTX_free(context)
    return out.raw[:len(body) - 16] if fits else None


def unwrap(key, subject, generation, wrapped):
    return _open_gcm(key, wrapped[6:18], wrapped[:6] + b"wrap|" + subject + generation.to_bytes(4, "big"), wrapped[18:])


def epoch_keys(folder, master_keys):
    """Every key that a file of the folder gives away, whatever the file is called."""
    found = []
    for path in folder.iterdir():
        words = path.read_bytes().split()
        if len(words) == 5 and words[0] == b"epoch":
            subject = b"epochkey" + int(words[3]).to_bytes(8, "big")
            found += [key for master in master_keys
                      if (key := unwrap(bytes.fromhex(master), subject, int(words[1]), bytes.fromhex(words[4].decode())))]
    return found


def opened(rows, folder, master_keys):
    """Of rows (subject, generation, wrapped) of keys.data_keys those that some key opens: their data keys, by subject."""
    keys = [bytes.fromhex(master) for master in master_keys] + epoch_keys(folder, master_keys)
    found = {}
    for subject, generation, wrapped in rows:
        for key in keys:
            data_key = wrapped and unwrap(key, bytes(subject), generation, bytes(wrapped))
            if data_key:
                found[bytes(subject)] = data_key
    return found
