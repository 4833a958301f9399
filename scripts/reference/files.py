"""A reader and a deterministic writer for safetensors files. The bytes depend only on the content.

Layout: 8 bytes little-endian header length, JSON header padded with spaces to 8 bytes, tensor data.
The Python package safetensors writes metadata in an order that changes between runs. This writer sorts it.
"""
from __future__ import annotations

import json
import os
import struct
from typing import Mapping

import torch
from torch import Tensor

DTYPES = {"F64": torch.float64, "F32": torch.float32, "I32": torch.int32, "I64": torch.int64,
          "U8": torch.uint8, "BOOL": torch.bool}
CODES = {dtype: code for code, dtype in DTYPES.items()}


def save(path: str | os.PathLike, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
         ) -> None:
    """Writes the tensors sorted by decreasing element size, then by name, so that each one is aligned."""
    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))}
    data = bytearray()
    for name in sorted(tensors, key=lambda n: (-tensors[n].element_size(), n)):
        tensor = tensors[name].detach().contiguous()
        start = len(data)
        data += tensor.numpy().tobytes()
        header[name] = dict(dtype=CODES[tensor.dtype], shape=list(tensor.shape),
                            data_offsets=[start, len(data)])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def load(path: str | os.PathLike) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Returns the tensors and the metadata of a file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    metadata = header.pop("__metadata__", {})

    def tensor(entry: dict) -> Tensor:
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        if begin == end:
            return torch.empty(entry["shape"], dtype=dtype)
        return torch.frombuffer(data[begin:end], dtype=dtype).reshape(entry["shape"])

    return {name: tensor(entry) for name, entry in header.items()}, metadata
