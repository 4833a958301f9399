"""Compares the C reader and writer of safetensors files with the Python package safetensors.

  TEST_SAFETENSORS=path/of/test_safetensors python3 tests/core/peer_safetensors.py

1. Python reads a file that C wrote with the same names, types, shapes, bytes and metadata.
2. C reads many random files that Python wrote.
3. C accepts no mutated file that Python rejects, and both read the same content.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import safetensors
except ImportError:
    print("skipped: the Python package safetensors is not installed")
    sys.exit(77)

TOOL = os.environ.get("TEST_SAFETENSORS") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_core_safetensors")
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4,
         "F32": 4, "U64": 8, "I64": 8, "F64": 8}
PYTHON_NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16",
                "F16": "float16", "BF16": "bfloat16", "U32": "uint32", "I32": "int32",
                "F32": "float32", "U64": "uint64", "I64": "int64", "F64": "float64"}


def c_read(paths):
    """Returns {path: (tensors, metadata)} of the C reader, with None for rejected files."""
    text = subprocess.run([TOOL, "read", *paths], stdout=subprocess.PIPE, check=True).stdout
    result, tensors, metadata, at = {}, None, None, 0
    while at < len(text):
        end = text.index(b"\n", at)
        line = text[at:end].decode()
        if line.startswith("tensor "):
            _, dtype, rank, rest = line.split(" ", 3)
            *shape, rest = rest.split(" ", int(rank))
            data, name = rest.split(" ", 1)
            tensors[name] = (dtype, [int(d) for d in shape], bytes.fromhex(data[1:]))
        elif line.startswith("meta "):                  # sizes first, because values may span lines
            head = text[at:].split(b" ", 3)
            key, value = int(head[1]), int(head[2])
            start = at + len(b" ".join(head[:3])) + 1
            end = start + key + value
            metadata[text[start:start + key].decode()] = text[start + key:end].decode()
        elif " refused: " in line:
            result[line.split(" refused: ")[0]] = None
        else:
            tensors, metadata = {}, {}
            result[line.rsplit(" ok ", 1)[0]] = (tensors, metadata)
        at = end + 1
    assert set(result) == set(paths), set(paths) ^ set(result)
    return result


def python_read(path):
    """Returns (tensors, metadata) of the Python package, or None if it rejects the file."""
    with open(path, "rb") as f:
        raw = f.read()
    try:
        tensors = safetensors.deserialize(raw)
    except Exception:                                   # its own error type, or UnicodeDecodeError
        return None
    size = struct.unpack("<Q", raw[:8])[0]
    metadata = json.loads(raw[8:8 + size]).get("__metadata__") or {}
    return {n: (t["dtype"], list(t["shape"]), bytes(t["data"])) for n, t in tensors}, metadata


def python_write(path, tensors, metadata):
    buffers, specs = [], {}
    for name, (dtype, shape, data) in tensors.items():
        if hasattr(safetensors, "TensorSpec"):          # 0.8 takes addresses instead of bytes
            buffers.append(ctypes.create_string_buffer(data, max(len(data), 1)))
            specs[name] = safetensors.TensorSpec(
                dtype=PYTHON_NAMES[dtype], shape=shape, data_ptr=ctypes.addressof(buffers[-1]),
                data_len=len(data))
        else:
            specs[name] = {"dtype": PYTHON_NAMES[dtype], "shape": shape, "data": data}
    safetensors.serialize_file(specs, path, metadata or None)


def check(condition, what):
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def random_tensors(rng):
    tensors = {}
    for i in range(rng.randrange(6)):
        dtype = rng.choice(list(SIZES))
        shape = [rng.randrange(4) if rng.random() < 0.2 else rng.randrange(1, 5)
                 for _ in range(rng.randrange(4))]
        count = SIZES[dtype]
        for d in shape:
            count *= d
        name = rng.choice(["w", "layer.", "a b ", "\u00e9", '"\\'])+ str(i)
        tensors[name] = (dtype, shape, rng.randbytes(count))
    metadata = {rng.choice("abc") + str(i): rng.choice(["", "x", "two\nlines", "\u00e9\"\\"])
                for i in range(rng.randrange(3))}
    return tensors, metadata


def mutate(raw, rng):
    """Changes mostly the header, and mostly repairs its length."""
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = bytearray(raw[8:8 + size]), bytearray(raw[8 + size:])
    for _ in range(rng.randrange(1, 3)):
        at, kind = rng.randrange(len(header) + 1), rng.randrange(7)
        if kind == 0 and at < len(header):
            header[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            digits = [i for i, c in enumerate(header) if chr(c).isdigit()]
            if digits:
                header[rng.choice(digits)] = rng.choice(b"0123456789")
        elif kind == 2:
            header[at:at + rng.randrange(1, 4)] = b""
        elif kind == 3:
            header[at:at] = rng.choice([b" ", b"0", b",", b"{}", b"[]", b'"a":1,', b"\\u0061"])
        elif kind == 4:
            data = data[:rng.randrange(len(data) + 1)] if rng.random() < 0.5 else data + b"\0"
        elif kind == 5:
            entries = json.loads(raw[8:8 + size])       # offsets or shapes of two tensors swapped
            names = [n for n in entries if n != "__metadata__"]
            if len(names) > 1:
                a, b = rng.sample(names, 2)
                field = rng.choice(["data_offsets", "shape", "dtype"])
                entries[a][field], entries[b][field] = entries[b][field], entries[a][field]
                header = bytearray(json.dumps(entries).encode())
        else:
            header += rng.choice([b" ", b"\n", b"}", b"\0"])
    length = len(header) if rng.random() < 0.95 else rng.randrange(2 * len(header) + 1)
    return struct.pack("<Q", length) + bytes(header) + bytes(data)


def main():
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.safetensors")
        subprocess.run([TOOL, "write", path], check=True)
        ours, theirs = c_read([path])[path], python_read(path)
        check(theirs is not None, "Python refuses a file written by C")
        check(len(ours[0]) == 9 and len(ours[1]) == 3, "the sample file is not complete")
        check(ours == theirs, "a file written by C differs in Python")
        header = struct.unpack("<Q", open(path, "rb").read(8))[0]
        check(header % 8 == 0, "header not padded to 8 bytes")

        files = {}
        for i in range(100):
            tensors, metadata = random_tensors(rng)
            path = os.path.join(folder, f"py{i}")
            python_write(path, tensors, metadata)
            files[path] = (tensors, metadata)
        for path, seen in c_read(list(files)).items():
            check(seen == files[path], f"a file written by Python differs in C: {files[path]}")

        mutants, sources = [], list(files)
        for i in range(3000):
            path = os.path.join(folder, f"mutant{i}")
            with open(rng.choice(sources), "rb") as f:
                raw = f.read()
            with open(path, "wb") as f:
                f.write(mutate(raw, rng))
            mutants.append(path)
        both = neither = stricter = 0
        for at in range(0, len(mutants), 500):
            for path, seen in c_read(mutants[at:at + 500]).items():
                theirs = python_read(path)
                if seen is not None:
                    check(theirs is not None, f"C accepts what Python refuses: {path}")
                    check(seen == theirs, f"C and Python see different content: {path}")
                both += seen is not None
                neither += seen is None and theirs is None
                stricter += seen is None and theirs is not None
        check(both > 100 and neither > 1000, f"dull mutations: {both} accepted, {neither} refused")
        print(f"safetensors {safetensors.__version__}: sample and {len(files)} random files equal; "
              f"of {len(mutants)} mutants {both} accepted and {neither} refused by both, "
              f"{stricter} refused by C alone")


main()
