"""Compares a BF16 copy of a model with PyTorch's rounding.

  TEST_EXPORT=path/of/test_export python3 tests/model/peer_export.py

1. The Python package safetensors reads the copy as torch.bfloat16.
2. Every tensor equals PyTorch's own conversion of the original to bfloat16.
3. The stored digest equals the digest computed here from docs/FORMAT.md.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import os
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors import safe_open
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

sys.path.insert(0, os.path.join(os.environ["BJ_ROOT"], "scripts"))
from reference.digest import digest  # noqa: E402

TOOL = os.environ.get("TEST_EXPORT") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_model_export")


def read(path):
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        subprocess.run([TOOL, path], check=True)
        copy, metadata = read(path)
        original, _ = read(path + ".full")
        if copy.keys() != original.keys():
            print("the copy has other tensors:", copy.keys() ^ original.keys())
            failed += 1
        for name, tensor in copy.items():
            expected = original[name].float().bfloat16()
            if tensor.dtype != torch.bfloat16 or not torch.equal(tensor, expected):
                print(f"{name}: {tensor.dtype}, differs from PyTorch's rounding")
                failed += 1
        raw = {name: t.view(torch.int16).numpy().view("<u2") for name, t in copy.items()}
        if digest(raw, metadata) != metadata["sha256"]:
            print("the stored digest is not the digest of the content")
            failed += 1
    print(f"{len(copy)} tensors compared with PyTorch, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
