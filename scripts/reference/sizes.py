"""The sizes of a network. Field names are the metadata keys of golden files."""
from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Mapping

FOCAL_FEATURES = 7      # x, y, vx, vy, cos h, sin h, type
POLYLINE_FEATURES = 6   # x, y, cos d, sin d, intersection, crosswalk
SEGMENT_STEPS = 10      # future steps that share one segment scale (output-only control)


@dataclass(frozen=True)
class Sizes:
    obs: int
    fut: int
    neighbors: int
    polylines: int
    points: int
    embed: int
    heads: int
    token_hidden: int
    latent: int
    proj_hidden: int
    atoms: int
    atom_hidden: int
    router_hidden: int
    decoder_hidden: int
    trunk: int
    dt: float = 0.1

    def __post_init__(self) -> None:
        if self.embed % self.heads:
            raise ValueError(f"embed {self.embed} is not divisible by heads {self.heads}")

    def as_metadata(self) -> dict[str, str]:
        return {key: str(value) for key, value in asdict(self).items()}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> "Sizes":
        missing = [f.name for f in fields(cls) if f.name not in metadata]
        if missing:
            raise ValueError(f"metadata lacks the sizes {', '.join(missing)}")
        numbers = {f.name: metadata[f.name] for f in fields(cls)}
        dt = float(numbers.pop("dt"))
        return cls(**{key: int(value) for key, value in numbers.items()}, dt=dt)


PAPER = Sizes(obs=50, fut=60, neighbors=16, polylines=48, points=10, embed=256, heads=4,
              token_hidden=512, latent=512, proj_hidden=512, atoms=6, atom_hidden=512,
              router_hidden=256, decoder_hidden=512, trunk=2180)
PAPER_POINT_HIDDEN = 3204  # atom width that gives K = 1 the capacity of K = 6
