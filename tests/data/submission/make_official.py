"""Writes official.parquet next to this file with ChallengeSubmission of the av2 package.

  python3 tests/data/submission/make_official.py

The numbers are random with a fixed seed: three scenarios with 6, 3 and 1 modes of one track. Needs av2
(0.3.6 was used) with pandas and pyarrow. Normally there is no reason to run it again, because tests depend on
the stored bytes.
"""
from pathlib import Path

import numpy as np
from av2.datasets.motion_forecasting.eval.submission import ChallengeSubmission

rng = np.random.default_rng(11)
predictions = {}
for i, modes in enumerate((6, 3, 1)):
    weights = rng.uniform(0.1, 1, modes)
    ends = rng.normal(0, 20, (modes, 1, 2))
    steps = np.linspace(0, 1, 61)[1:, None]
    lines = rng.uniform(-5000, 5000, 2) + ends * steps + 3 * np.sin(steps * (1 + i))
    predictions[f"made-up-scenario-{i}"] = (weights / weights.sum(), {f"{700 + i}": lines})
ChallengeSubmission(predictions).to_parquet(Path(__file__).with_name("official.parquet"))
