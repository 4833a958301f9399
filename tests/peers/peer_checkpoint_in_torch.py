#!/usr/bin/env python3
"""Tests that a checkpoint of the C library gives the same predictions in PyTorch.

    TEST_PREDICTOR=path/of/test_predictor peer_checkpoint_in_torch.py
    peer_checkpoint_in_torch.py CHECKPOINT OUTPUTS

Without arguments, test_predictor writes both files for each kind of model. One more comparison, with a
changed bias, must fail.

CHECKPOINT is read with the safetensors package and loaded into torch.nn modules with strict names
and shapes; sizes come from its metadata. OUTPUTS is a safetensors file with the inputs x.* (focal,
neighbors, nmask, polylines, pmask; padded, masks U8) and the outputs of the C library: o.y
(B,K,F,2), o.weights (B,K), and any of o.c, o.u, o.logits.

Exit codes: 0 equal, 1 different, 3 invalid file, 77 skipped because PyTorch or safetensors is not installed.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
try:
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file
except ImportError as error:
    print(f"skipped: {error}; this test needs the Python packages torch and safetensors")
    sys.exit(77)

from reference import modules                      # noqa: E402  (needs the path above)
from reference.network import parameter_shapes     # noqa: E402
from reference.sizes import Sizes                  # noqa: E402

TOLERANCE = 1e-4    # relative to the largest entry of a tensor
KINDS = ("branch", "point", "outputonly")
REQUIRED = ("y", "weights")


class Unusable(Exception):
    """A file is invalid or incomplete."""


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except Exception as error:    # the package raises its own type for a bad file
        raise Unusable(f"{path}: {error}") from error


def load_network(path: Path) -> torch.nn.Module:
    """Returns the checkpoint in float64. A tensor that is missing, extra or has another shape is an error."""
    tensors, metadata = read(path)
    try:
        sizes = Sizes.from_metadata(metadata)
    except ValueError as error:
        raise Unusable(f"{path}: {error}") from error
    kind, scales = metadata.get("model", "branch"), metadata.get("scales", "fixed")
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    expected = parameter_shapes(sizes, kind, scales)
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            raise Unusable(f"{path}: tensor '{name}' has shape {found.get(name, 'missing')}, "
                           f"expected {expected.get(name, 'no such tensor')}")
    net = modules.build(sizes, kind, scales).double()
    net.load_state_dict({name: tensor.double() for name, tensor in tensors.items()}, strict=True)
    return net.eval()


def recompute(net: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    inputs = [tensors[f"x.{key}"] for key in modules.INPUTS]
    inputs = [x.bool() if "mask" in key else x.double() for key, x in zip(modules.INPUTS, inputs)]
    with torch.no_grad():
        context, atoms, logits, decoded = net(*inputs)
    return dict(c=context, u=atoms, logits=logits, y=decoded, weights=logits.softmax(-1))


def compare(checkpoint: Path, outputs: Path) -> int:
    """Returns the number of output tensors that differ from PyTorch's."""
    net = load_network(checkpoint)
    tensors, _ = read(outputs)
    needed = [f"x.{key}" for key in modules.INPUTS] + [f"o.{key}" for key in REQUIRED]
    missing = [name for name in needed if name not in tensors]
    if missing:
        raise Unusable(f"{outputs}: lacks {', '.join(missing)}")
    failed = 0
    for key, expected in recompute(net, tensors).items():
        if f"o.{key}" not in tensors:
            continue
        found = tensors[f"o.{key}"].double()
        if found.shape != expected.shape:
            print(f"o.{key} has shape {tuple(found.shape)}, expected {tuple(expected.shape)}")
            failed += 1
            continue
        scale = float(expected.abs().max()) or 1.0    # the one logit of K = 1 is zero
        error = float((found - expected).abs().max()) / scale
        print(f"o.{key}: relative error {error:.1e}, at most {TOLERANCE:g} allowed")
        failed += not error <= TOLERANCE
    return failed


def change_bias(path: Path) -> None:
    """Doubles the largest bias of the decoder's last layer, which reaches every trajectory."""
    tensors, metadata = read(path)
    bias = tensors["decoder.2.bias" if "decoder.2.bias" in tensors else "base.bias"]
    bias[bias.abs().argmax()] *= 2
    save_file(tensors, path, metadata)


def compare_all(tool: str) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, outputs = Path(folder) / "model.safetensors", Path(folder) / "out.safetensors"
        for kind in KINDS:
            print(f"{kind}:")
            subprocess.run([tool, "export", checkpoint, outputs, kind], check=True)
            failed += compare(checkpoint, outputs)
            change_bias(checkpoint)
            print(f"{kind}, one bias changed: now o.y must differ:")
            failed += compare(checkpoint, outputs) == 0
    print(f"{failed} failed")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", type=Path, nargs="*", metavar="CHECKPOINT OUTPUTS",
                        help="written by the C library: a model, and x.* inputs with o.* outputs")
    args = parser.parse_args()
    tool = os.environ.get("TEST_PREDICTOR")
    if len(args.files) not in (0, 2):
        parser.error(f"found {len(args.files)} files, expected CHECKPOINT and OUTPUTS, or none")
    if not args.files and not tool:
        parser.error("without files, the environment variable TEST_PREDICTOR must name the program")
    try:
        return 1 if (compare(*args.files) if args.files else compare_all(tool)) else 0
    except Unusable as error:
        print(error, file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
