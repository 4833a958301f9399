#!/usr/bin/env python3
"""Prints the model card of the pretrained model from the JSON output of bjepa.

  scripts/model_card.py RUN FOLDER SEED [BASE EPOCHS]

RUN is the training run, FOLDER has the JSON files of scripts/make_builtin.sh, SEED is the world seed of
the towns that the model was measured on. If RUN started from a checkpoint of another run, BASE is that run
and EPOCHS the epoch of the checkpoint. Only the standard library is used.
"""
import json
import sys
from pathlib import Path


def read(path):
    return json.loads(Path(path).read_text())


def number(value, digits=3):
    return "n/a" if value is None else f"{value:.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def flat(tree, prefix=""):
    """Converts {"optim": {"lr": 1}} to {"optim.lr": 1}."""
    out = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            out.update(flat(value, prefix + key + "."))
        else:
            out[prefix + key] = value
    return out


def command(run, manifest, config, out, epochs=None):
    """Returns the command that trains the run, with every setting that differs from arm and recipe.

    `epochs` shortens a run with a constant rate and fresh scenes to its first epochs.
    """
    resolved = flat(read(run / "config.resolved.json"))
    source = manifest["data"]["path"]
    if epochs:
        assert resolved["train.schedule"] == "constant" and "source" in manifest["data"]
        resolved["train.epochs"] = epochs
        scenes = epochs * manifest["steps_per_epoch"] * resolved["train.batch"]
        source = ":".join(source.split(":")[:2] + [str(scenes)])
    if "source" not in manifest["data"]:
        source = Path(source).name    # the folder of a cache exists only on the training machine
    parts = ["bjepa train", "--data", source, "--arm", manifest["arm"],
             "--recipe", manifest["recipe"], "--seed", str(manifest["seed"])]
    for setting in config["settings"]:
        key, default = setting["key"], setting["value"]
        if key in ("arm", "recipe", "seed", "init", "init_sha256"):
            continue
        # A setting that was added after the run is 0 in the run.
        value = resolved.get(key, 0 if setting["origin"].startswith("recipe") else default)
        if value != default:
            parts += ["--set", f"{key}={value}"]
    return " ".join(parts + ["--out", out])


def arm_of(truth, name):
    return next(arm for arm in truth["arms"] if arm["name"].endswith(name))


def main():
    run, folder, seed = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    manifest, result = read(run / "manifest.json"), read(run / "result.json")
    info, config = read(folder / "info.json"), read(folder / "config.json")
    judged, full = read(folder / "eval.json"), read(folder / "full.json")
    truth, audit = read(folder / "truth.json"), read(folder / "audit.json")
    facts, metrics = info["facts"], judged["metrics"]
    name = facts["name"]
    ours, modes = arm_of(truth, ".safetensors"), arm_of(truth, "true-modes")
    velocity, maps = arm_of(truth, "constant-velocity"), audit["arms"][0]["mean"]
    seconds, scenes, commands = result["wall_s"], int(facts["scenes"]), []
    note = before = ""
    if "init" in manifest:
        base, epochs = Path(sys.argv[4]), int(sys.argv[5])
        first = read(base / "manifest.json")
        commands.append(command(base, first, config, "base", epochs))
        before = " --scenes-before " + commands[0].split(":")[2].split()[0]
        seconds += next(e["wall_s"] for e in map(json.loads, (base / "metrics.jsonl").open())
                        if e["epoch"] == epochs)
        note = f"""
The first command trains with a constant rate and averages the weights. The run was planned for
{read(base / "config.resolved.json")["train"]["epochs"]} epochs and stopped after epoch {epochs}, because the development score had
stopped improving. The second command continues from the last checkpoint of the first one and lowers the rate
to zero.
"""
    commands.append(command(run, manifest, config, "run") + (" --init base/ckpt/last" if note else ""))
    hours = seconds / 3600

    print(f"""# Model card: {name}

A Branch-JEPA model, pretrained on simulated traffic. It reads five seconds of a traffic scene and a map,
and predicts six futures of one road user, six seconds long, each with a probability. `bjepa` calls it
`builtin`: `bjepa predict builtin SCENES`.

{table(["", ""], [
    ["file", f"`{name}.safetensors`, {info['bytes']:,} bytes, weights in bfloat16"],
    ["SHA-256", f"`{info['sha256']}`"],
    ["parameters", f"{info['parameters']:,}"],
    ["branches", info["atoms"]],
    ["license", facts["license"]],
])}

## Training

{table(["", ""], [
    ["data", f"simulated world, `{facts['data']}` (version, seed and split; docs/WORLD.md)"
     + (f", after `{first['data']['source']}`" if note else "")],
    ["scenes", f"{scenes:,}, each used once" if "source" in manifest["data"]
     else f"{scenes:,}, repeated ones included"],
    ["arm, recipe, seed", f"`{manifest['arm']}`, `{manifest['recipe']}`, {manifest['seed']}"],
    ["checkpoint", f"epoch {result['best_epoch']} of {result['epochs']}, chosen by the trajectory "
     f"Energy Score of {manifest['split']['dev']:,} development scenes"],
    ["time", f"{hours:.1f} h, threads {manifest['threads']}, instruction set {manifest['isa']}"],
    ["bjepa", manifest["version"]],
    ["settings", f"`{manifest['settings']['sha256']}`"],
    ["data digest", f"`{manifest['data']['digest']}`"],
])}

The exact commands:

    {(chr(10) + "    ").join(commands)}
    bjepa export run --bf16 --name {name} --license {facts['license']}{before} --out {name}.safetensors
{note}
No recorded traffic was used.

## Numbers

{judged['scenes']:,} scenes of towns that no training run has seen (`bjepa simulate --scenes
{judged['scenes']} --seed {seed} --split test`, cache digest `{judged['data_digest'][:16]}`). Distances are in
meters. Less is better unless noted.

{table(["metric", "this model"], [
    ["trajectory Energy Score", number(metrics["traj_es"])],
    ["the same before rounding to 16 bits", number(full["metrics"]["traj_es"])],
    ["expected ADE", number(metrics["exp_ade"])],
    ["top-1 ADE / FDE", number(metrics["top1_ade"]) + " / " + number(metrics["top1_fde"])],
    ["min ADE / FDE of six", number(metrics["min_ade"]) + " / " + number(metrics["min_fde"])],
    ["maneuver Brier score", number(metrics["brier"])],
    ["expected calibration error", number(metrics["ece"], 4)],
    ["weight of points on drivable area, more is better", f"{100 * maps['point_mass']:.2f} %"],
    ["weight of trajectories on drivable area, more is better",
     f"{100 * maps['trajectory_mass']:.2f} %"],
])}

Distance to the true distribution (`bjepa truth`, docs/TRUTH.md):

{table(["", "this model", "six true modes", "constant velocity"], [
    [title] + [number(arm[key]["mean"] if isinstance(arm[key], dict) else arm[key])
               for arm in (ours, modes, velocity)]
    for title, key in (("discrepancy", "discrepancy"), ("expected Energy Score", "expected_es"),
                       ("true modes found within 2 m, more is better", "recall"),
                       ("the same by their probability, more is better", "recall_mass"),
                       ("Brier score above that of the true probabilities", "brier_excess"))
])}
""")
    exchange = judged.get("exchange")
    if exchange:
        print(f"""What the model looks at: increase of the trajectory Energy Score when a part of the observation is
exchanged between scenes (docs/EVALUATE.md).

{table(["part", "increase", "relative"], [
    [title, f"{exchange[key]:+.3f}", f"{100 * exchange[key + '_relative']:+.0f} %"]
    for title, key in (("map", "map"), ("neighbors", "neighbors"), ("focal track", "focal"))
])}
""")
    recorded = (folder / "recorded.txt").read_text().splitlines()
    if recorded:
        rows = []
        for i, title in enumerate(recorded):
            found = read(folder / f"recorded{i + 1}.json")
            m = found["metrics"]
            rows.append([title, f"{found['scenes']:,}"] + [number(m[key]) for key in
                        ("traj_es", "exp_ade", "top1_ade", "min_ade", "brier")])
        print(f"""On recorded traffic, without any training on it:

{table(["data", "scenes", "trajectory ES", "expected ADE", "top-1 ADE", "min ADE", "Brier"], rows)}

These numbers measure how far simulated traffic differs from recorded traffic. They are no benchmark
results.
""")
    print("""## Uses

- Trying the tools: predictions, pages, audits and comparisons without training anything first.
- A starting point for fine-tuning.
- A reference for tests and for your own models on the simulated world.

## What it must not be used for

- Driving, driver assistance, or any decision about people or vehicles in the real world. The model has seen
  simulated traffic only, and its probabilities are calibrated for that world alone.
- Claims about recorded traffic. Its numbers there are those of a model that was not trained for it.
- Comparisons with the paper. Data, recipe and number of scenes differ.

## Limits

- It predicts one vehicle at a time, and no interaction between futures of several road users.
- It always returns six futures. Six points cannot represent every distribution exactly; the column "six true
  modes" shows what remains even with perfect knowledge.
- The simulated world has towns of about 260 m: no highways, no weather, and traffic on the right.""")


if __name__ == "__main__":
    main()
