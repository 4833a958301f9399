"""Loads a model file of the C library into torch.nn modules, and writes one.

docs/PYTORCH.md explains the functions with an example. docs/FORMAT.md describes the file.
"""
from __future__ import annotations

import os
from typing import Mapping

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from . import modules
from .digest import digest
from .sizes import Sizes


def load_model(path: str | os.PathLike) -> tuple[nn.Module, dict[str, str]]:
    """Returns the network in float32 and the metadata of a file. Fails if a tensor is missing or extra."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}
        metadata = file.metadata() or {}
    if metadata.get("format") != "branchjepa-model" or "encoder" in metadata:
        raise ValueError(f"{path}: is not a model of scenes")
    net = modules.build(Sizes.from_metadata(metadata), metadata["model"], metadata["scales"])
    net.load_state_dict(tensors, strict=True)
    return net.eval(), metadata


def save_model(path: str | os.PathLike, net: nn.Module, metadata: Mapping[str, str]) -> None:
    """Writes a file that the C library accepts. The metadata is that of load_model, with the digest replaced."""
    tensors = {name: tensor.detach().float().contiguous() for name, tensor in net.state_dict().items()}
    metadata = {key: value for key, value in metadata.items() if key != "sha256"}
    metadata["sha256"] = digest({name: tensor.numpy() for name, tensor in tensors.items()}, metadata)
    save_file(tensors, path, metadata)


def load_scene(path: str | os.PathLike) -> tuple[Tensor, ...]:
    """Returns the inputs of a scene that `bjepa data show --out FILE.safetensors` wrote, as a batch of one."""
    with safe_open(path, "pt") as file:
        inputs = [file.get_tensor(name).unsqueeze(0) for name in modules.INPUTS]
    return tuple(x.bool() if "mask" in name else x for name, x in zip(modules.INPUTS, inputs))


def predict(net: nn.Module, metadata: Mapping[str, str], view: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Returns weights (B,K) and trajectories (B,K,F,2), in the order of bj_predict."""
    with torch.no_grad():
        _, _, logits, trajectories = net(*view)
    if metadata.get("weighting") == "uniform":
        return torch.full_like(logits, 1 / logits.shape[-1]), trajectories
    return torch.softmax(logits, dim=-1), trajectories
