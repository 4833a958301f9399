"""Tests training checkpoints with Python: PyTorch continues a run that C started.

  TEST_STATE=path/of/test_state BJ_ROOT=. python3 tests/train/peer_state.py

C trains on a golden file, saves, does one more update and saves again.
1. Python opens both files of the first checkpoint. The digests computed here from docs/FORMAT.md equal the
   stored ones, and the state contains the digest of its model.
2. The reference network, with settings and AdamW moments from the files alone, does the same update. Its
   weights, moments and target equal those that C saved. The model is an ordinary state_dict.
3. C loads files that Python wrote again. It rejects them if a moment was changed or if they belong to
   another model.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path

ROOT = Path(os.environ.get("BJ_ROOT") or Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "scripts"))
try:
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

from reference import modules                                           # noqa: E402
from reference.digest import digest                                     # noqa: E402
from reference.objectives import Goal                                   # noqa: E402
from reference.sizes import Sizes                                       # noqa: E402
from reference.training import Optim, State, gradients, update          # noqa: E402

TOOL = os.environ.get("TEST_STATE") or os.path.join(os.environ["BJ_BUILD"], "tests",
                                                    "test_train_state")
# Relative to the largest entry of a moment, or to the learning rate for weights. AdamW divides by
# the root of a variance, which amplifies the rounding of small gradients.
TOLERANCES = {torch.float32: (1e-4, 1e-2), torch.float64: (1e-9, 1e-9)}


def check(condition: bool, what: object) -> None:
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def tool(verb: str, path: Path) -> tuple[int, str]:
    done = subprocess.run([TOOL, verb, path], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return done.returncode, done.stdout.strip()


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def arrays(tensors: dict[str, torch.Tensor]) -> dict:
    return {name: t.numpy() for name, t in tensors.items()}


def group(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): t.double() for name, t in tensors.items()
            if name.startswith(prefix)}


def settings(kind: type, metadata: dict[str, str], prefix: str, names: dict[str, str]):
    """Returns the fields of a dataclass from `prefix` + field. `names` lists fields with other names."""
    found = {}
    for field in fields(kind):
        text = metadata.get(prefix + names.get(field.name, field.name))
        if text is not None:
            found[field.name] = int(float(text)) if field.type == "int" else float(text)
    return kind(**found)


def load(folder: Path) -> tuple[State, Sizes, Goal, Optim, dict[str, str]]:
    model, facts = read(folder / "model.safetensors")
    state, metadata = read(folder / "state.safetensors")
    check(digest(arrays(model), facts) == facts["sha256"], "digest of the model")
    check(digest(arrays(state), metadata) == metadata["sha256"], "digest of the state")
    check(metadata["model_sha256"] == facts["sha256"], "the state names another model")
    check(metadata["format"] == "branchjepa-state" and metadata["format_version"] == "1", metadata)
    check([len(word) for word in metadata["rng"].split(" ")] == [16] * 4, metadata["rng"])
    sizes = Sizes.from_metadata(facts)
    modules.build(sizes, facts["model"], facts["scales"]).load_state_dict(model, strict=True)
    goal = replace(settings(Goal, metadata, "objective.", {}), kind=metadata["objective"])
    optim = replace(settings(Optim, metadata, "optim.", {"adam_eps": "eps"}),
                    lr=float(facts["lr"]))
    mean, variance = group(state, "mean."), group(state, "variance.")
    target = group(state, "target.")
    check(len(state) == len(mean) + len(variance) + len(target), "tensors of another kind")
    check(mean.keys() == variance.keys() == model.keys(), "moments of other parameters")
    run = State({name: t.double() for name, t in model.items()}, target, int(metadata["step"]),
                mean, variance)
    return run, sizes, goal, optim, facts


def compare(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], what: str,
            tolerance: float, scale: float | None = None) -> float:
    check(found.keys() == expected.keys(), f"{what}: other names")
    worst = 0.0
    for name, t in expected.items():
        error = float((found[name] - t).abs().max()) / (scale or float(t.abs().max()) or 1.0)
        check(error <= tolerance, f"{what} of {name}: error {error:g}")
        worst = max(worst, error)
    return worst


def continue_in_python(folder: Path) -> None:
    start, sizes, goal, optim, facts = load(folder / "before")
    end = load(folder / "after")[0]
    check((start.step, end.step) == (3, 4), f"steps {start.step} and {end.step}")
    data, _ = read(ROOT / facts["data"])
    batch = {name.removeprefix("x."): t.bool() if "mask" in name else t.double()
             for name, t in data.items() if name.startswith("x.")}
    _, grads = gradients(start, batch, sizes, goal)
    own = update(start, grads, optim)
    check(grads.keys() == start.params.keys(), "a parameter without a gradient")
    moved = max(float((own.params[n] - t).abs().max()) for n, t in start.params.items())
    check(moved > 0.1 * optim.lr, f"the update moved nothing: {moved:g}")
    precision = next(iter(read(folder / "after" / "model.safetensors")[0].values())).dtype
    of_moments, of_weights = TOLERANCES[precision]
    worst = dict(weights=compare(end.params, own.params, "weights", of_weights, optim.lr),
                 target=compare(end.target, own.target, "target", of_weights, optim.lr),
                 means=compare(end.first, own.first, "mean", of_moments),
                 variances=compare(end.second, own.second, "variance", of_moments))
    print("an update in PyTorch differs by: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))


def rewrite_in_python(folder: Path) -> None:
    again = folder / "python"
    shutil.copytree(folder / "before", again)
    model, facts = read(again / "model.safetensors")
    state, metadata = read(again / "state.safetensors")
    save_file(model, again / "model.safetensors", facts)
    save_file(state, again / "state.safetensors", metadata)
    check(tool("read", again) == (0, "ok"), f"C on files of Python: {tool('read', again)}")
    state["mean.decoder.2.bias"][3] += 1
    save_file(state, again / "state.safetensors", metadata)
    code, message = tool("read", again)
    check(code == 1 and "checksum" in message, f"changed moment: {code} {message}")
    shutil.copy(folder / "before" / "state.safetensors", again)
    shutil.copy(folder / "after" / "model.safetensors", again)
    code, message = tool("read", again)
    check(code == 1 and "belongs to another model" in message, f"another model: {code} {message}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        code, message = tool("write", folder)
        check(code == 0, message)
        continue_in_python(folder)
        rewrite_in_python(folder)


main()
