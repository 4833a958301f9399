"""The networks made of torch.nn layers, as a PyTorch user would write them.

The parameter names are those of the C library's checkpoints, so load_state_dict(strict=True) accepts a
checkpoint unchanged. The benchmark measures these modules, and make_fixtures.py compares them with
`network`.
"""
from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .network import NORM_FLOOR
from .sizes import FOCAL_FEATURES, POLYLINE_FEATURES, SEGMENT_STEPS, Sizes

INPUTS = ("focal", "neighbors", "nmask", "polylines", "pmask")


def two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class SceneEncoder(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        s = sizes
        self.gru = nn.GRU(FOCAL_FEATURES, s.embed, batch_first=True)
        self.neighbor = two_layers(s.obs * FOCAL_FEATURES, s.token_hidden, s.embed)
        self.polyline = two_layers(s.points * POLYLINE_FEATURES, s.token_hidden, s.embed)
        self.attn = nn.MultiheadAttention(s.embed, s.heads, batch_first=True)
        self.proj = two_layers(2 * s.embed, s.proj_hidden, s.latent)

    def forward(self, focal: Tensor, neighbors: Tensor, nmask: Tensor, polylines: Tensor,
                pmask: Tensor) -> Tensor:
        _, state = self.gru(focal)
        state = state.squeeze(0)
        tokens = torch.cat((self.neighbor(neighbors.flatten(2)),
                            self.polyline(polylines.flatten(2))), dim=1)
        alone = ~nmask.any(dim=1, keepdim=True)
        slot_zero = torch.arange(nmask.shape[1], device=nmask.device) == 0
        absent = ~torch.cat((nmask | (alone & slot_zero), pmask), dim=1)
        pooled, _ = self.attn(state.unsqueeze(1), tokens, tokens, key_padding_mask=absent,
                              need_weights=False)
        return self.proj(torch.cat((state, pooled.squeeze(1)), dim=-1))


class BranchNet(nn.Module):
    """K atoms, a router if K > 1, and one decoder. forward returns (context, atoms, logits, decoded)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        s = sizes
        self.encoder = SceneEncoder(s)
        self.atoms = nn.ModuleList(two_layers(s.latent, s.atom_hidden, s.latent)
                                   for _ in range(s.atoms))
        if s.atoms > 1:
            self.router = two_layers(s.latent, s.router_hidden, s.atoms)
        self.decoder = two_layers(s.latent, s.decoder_hidden, 2 * s.fut)

    def decode(self, latent: Tensor) -> Tensor:
        return self.decoder(latent).unflatten(-1, (-1, 2))

    def forward(self, *view: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        context = self.encoder(*view)
        atoms = torch.stack([atom(context) for atom in self.atoms], dim=1)
        atoms = F.normalize(atoms, dim=-1, eps=NORM_FLOOR)
        if len(self.atoms) > 1:
            logits = self.router(context)
        else:
            logits = context.new_zeros(context.shape[0], 1)
        return context, atoms, logits, self.decode(atoms)


class OutputOnlyNet(nn.Module):
    """One latent and K outputs: a base head and scaled residual heads on a shared trunk."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        s = sizes
        self.encoder = SceneEncoder(s)
        self.atom = two_layers(s.latent, s.atom_hidden, s.latent)
        self.router = two_layers(s.latent, s.router_hidden, s.atoms)
        self.trunk = nn.Linear(s.latent, s.trunk)
        self.base = nn.Linear(s.trunk, 2 * s.fut)
        self.residual = nn.ModuleList(nn.Linear(s.trunk, 2 * s.fut) for _ in range(s.atoms))
        self.step_scale = nn.Parameter(torch.ones(s.atoms, s.fut))
        self.segment_scale = nn.Parameter(torch.ones(s.atoms, s.fut // SEGMENT_STEPS))

    def decode(self, latent: Tensor) -> Tensor:
        return self.base(torch.relu(self.trunk(latent))).unflatten(-1, (-1, 2))

    def forward(self, *view: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        context = self.encoder(*view)
        atom = F.normalize(self.atom(context), dim=-1, eps=NORM_FLOOR)
        hidden = torch.relu(self.trunk(atom))
        residual = torch.stack([head(hidden) for head in self.residual], dim=1)
        scale = self.step_scale * self.segment_scale.repeat_interleave(SEGMENT_STEPS, dim=1)
        residual = scale.unsqueeze(-1) * residual.unflatten(-1, (-1, 2))
        decoded = self.decode(atom).unsqueeze(1) + residual
        return context, atom.unsqueeze(1), self.router(context), decoded


class WeightedFutures(nn.Module):
    """Returns trajectories (B,K,F,2) and their weights (B,K)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, *view: Tensor) -> tuple[Tensor, Tensor]:
        _, _, logits, decoded = self.network(*view)
        return decoded, torch.softmax(logits, dim=-1)


def build(sizes: Sizes, kind: str, scales: str = "fixed") -> nn.Module:
    """Returns a network with the parameters of network.parameter_shapes(sizes, kind, scales)."""
    net = OutputOnlyNet(sizes) if kind == "outputonly" else BranchNet(sizes)
    if scales != "fixed":
        rows = (1, 1, 1) if scales == "global" else (sizes.atoms, sizes.latent, 2 * sizes.fut)
        net.log_sz = nn.Parameter(torch.zeros(rows[0], rows[1]))
        net.log_sy = nn.Parameter(torch.zeros(rows[0], rows[2]))
    return net
