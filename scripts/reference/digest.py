"""Computes the digest of a checkpoint file as defined in docs/FORMAT.md."""
import hashlib
import struct

import numpy as np

CODES = {np.dtype("<f4"): b"F32", np.dtype("<f8"): b"F64", np.dtype("<i8"): b"I64",
         np.dtype("<u8"): b"U64", np.dtype("<u2"): b"BF16"}    # bits, because NumPy has no bfloat16


def digest(tensors, metadata):
    """Returns the digest of {name: NumPy array} and {key: text}, except for the key "sha256"."""
    h = hashlib.sha256()
    for key in sorted(metadata, key=str.encode):
        if key != "sha256":
            h.update(key.encode() + b"\0" + metadata[key].encode() + b"\0")
    for name in sorted(tensors, key=str.encode):
        t = tensors[name]
        h.update(name.encode() + b"\0" + CODES[t.dtype] + b"\0")
        h.update(struct.pack(f"<{1 + t.ndim}Q", t.ndim, *t.shape))
        h.update(np.ascontiguousarray(t).tobytes())
    return h.hexdigest()
