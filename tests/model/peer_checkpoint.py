"""Checks model checkpoints with the Python package safetensors and docs/FORMAT.md.

  TEST_CHECKPOINT=path/of/test_checkpoint python3 tests/model/peer_checkpoint.py

1. Python opens a file written by C. The digest computed here from docs/FORMAT.md equals the stored
   digest.
2. C loads the file after Python rewrote it with another order of tensors.
3. C rejects the file after Python changed a weight.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import save_file
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

sys.path.insert(0, os.path.join(os.environ["BJ_ROOT"], "scripts"))
from reference.digest import digest  # noqa: E402

TOOL = os.environ.get("TEST_CHECKPOINT") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_model_checkpoint")


def check(condition, what):
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def tool(verb, path):
    done = subprocess.run([TOOL, verb, path], stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout.strip()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.safetensors")
        code, message = tool("write", path)
        check(code == 0, message)
        with safe_open(path, framework="numpy") as f:
            metadata = f.metadata()
            tensors = {name: f.get_tensor(name) for name in f.keys()}
        check(metadata["format"] == "branchjepa-model" and metadata["latent"] == "6", metadata)
        check(tensors["router.2.weight"].shape == (3, 11), "shape of router.2.weight")
        check(len({t.dtype for t in tensors.values()}) == 1, "more than one dtype")
        check(digest(tensors, metadata) == metadata["sha256"], "another digest in Python")

        again = os.path.join(folder, "python.safetensors")
        save_file(tensors, again, metadata)
        check(tool("read", again) == (0, "ok"), f"C on a file of Python: {tool('read', again)}")

        tensors["decoder.2.bias"][3] += 1
        save_file(tensors, again, metadata)
        code, message = tool("read", again)
        check(code == 1 and "checksum" in message, f"changed weight: {code} {message}")
        metadata["sha256"] = digest(tensors, metadata)
        save_file(tensors, again, metadata)
        code, message = tool("read", again)
        check(code == 1 and "not the model of this test" in message, f"signed weight: {code} {message}")
        print(f"checkpoint: {len(tensors)} tensors, {json.dumps(metadata['sha256'])} in both")


main()
