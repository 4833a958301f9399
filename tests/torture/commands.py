"""Fixtures and commands for torture.py.

A Command is something that a user runs, with the files that it must produce. Every attack runs a
command in a fresh folder, disturbs it, runs it again without the disturbance and compares the files
with those of an undisturbed run.
"""
import glob
import hashlib
import os
import re
import shutil
import subprocess

TINY = []
for setting in ("model.embed=8 model.heads=2 model.token_hidden=8 model.latent=8 model.proj_hidden=8 "
                "model.atom_hidden=8 model.router_hidden=8 model.decoder_hidden=8 train.batch=16 "
                "train.epochs=2 train.warmup=1").split():
    TINY += ["--set", setting]

CAMPAIGN = """name: torture
arms: [fullset, point]
seeds: [0, 1]
set:
  train: {batch: 16, epochs: 2, warmup: 1}
  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
          router_hidden: 8, decoder_hidden: 8}
"""


def run(arguments, folder, env=None, timeout=120):
    """Runs a program and returns (exit code, stdout, stderr). The code is "hang" after a timeout."""
    try:
        p = subprocess.run(arguments, cwd=folder, env={**os.environ, **(env or {})},
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        return p.returncode, p.stdout.decode("utf8", "replace"), p.stderr.decode("utf8", "replace")
    except subprocess.TimeoutExpired:
        return "hang", "", ""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def without_times(path, data):
    """Removes what legitimately differs between two runs: dates, durations and process ids."""
    if path.endswith((".json", ".jsonl")):
        names = rb"wall_s|scenes_per_s|created|started|finished|threads|seconds|latency_ms|host|pid"
        return re.sub(rb'"(' + names + rb')":\s*("[^"]*"|[-0-9.e+]+|null),?', b"", data)
    if path.endswith("metrics.csv"):
        rows = [line.split(b",") for line in data.splitlines()]
        keep = [i for i, name in enumerate(rows[0]) if name not in (b"wall_s", b"scenes_per_s")]
        return b"\n".join(b",".join(row[i] for i in keep if i < len(row)) for row in rows)
    return data


class Command:
    """arguments: of bjepa. files: patterns of results. again: arguments for an existing output.

    after: pattern that decides whether `again` is used; prepare(folder): creates the input."""

    def __init__(self, name, arguments, files, again=None, after=None, prepare=None):
        self.name, self.arguments, self.files = name, arguments, files
        self.again, self.after, self.prepare = again or arguments, after, prepare

    def digest(self, folder):
        found = {}
        for pattern in self.files:
            paths = [p for p in glob.glob(os.path.join(folder, pattern)) if os.path.isfile(p)]
            if not paths:
                found[pattern] = "missing"
            for path in paths:
                data = without_times(path, read(path))
                found[os.path.relpath(path, folder)] = hashlib.sha256(data).hexdigest()
        return found


def hidden(folder):
    """Paths of temporary files and folders."""
    found = []
    for root, folders, files in os.walk(folder):
        found += [os.path.join(root, n) for n in files + folders
                  if n.endswith((".tmp", ".partial", ".old"))]
    return found


class Lab:
    """The work folder with its fixtures, made once."""

    def __init__(self, bjepa, folder):
        self.bjepa, self.folder, self.base = bjepa, folder, os.path.join(folder, "base")
        os.makedirs(self.base)
        base = self.base
        with open(f"{base}/c.yaml", "w") as file:
            file.write(CAMPAIGN)
        for name, scenes, split in (("train", 60, "train"), ("val", 60, "val"), ("small", 16, "train")):
            self.must(["simulate", "--cache", f"{name}.bjc", "--scenes", str(scenes), "--seed", "3",
                       "--split", split, "-q", "--jobs", "1"])
        self.must(["simulate", "--out", "av2/train", "--scenes", "6", "--seed", "5", "--jobs", "1", "-q"])
        self.must(["campaign", "c.yaml", "--data", "train.bjc", "--out", "open", "--jobs", "2",
                   "--threads", "1", "-q"])
        shutil.copytree(f"{base}/open", f"{base}/locked")
        self.must(["lock", "locked", "--data", "val.bjc", "-q"])
        shutil.copytree(f"{base}/locked", f"{base}/camp")
        self.must(["lock", "run", "camp", "--threads", "1", "-q"])
        model = f"{base}/camp/runs/fullset/seed-0/ckpt/best"
        self.model = model
        self.must(["gallery", "lock", f"{base}/camp", "--data", "val.bjc", "--out", "gallery", "-q", "-j", "1"])
        self.must(["submit", model, "val.bjc", "--out", "sub.parquet", "--threads", "1"])
        self.must(["submit", model, "small.bjc", "--out", "small.parquet", "--threads", "1"])
        train = ["train", "--data", f"{base}/train.bjc", "--arm", "fullset", "--seed", "0", "--out", "R",
                 "-q", "-j", "1"] + TINY
        campaign = ["campaign", f"{base}/c.yaml", "--data", f"{base}/train.bjc", "--out", "camp",
                    "--jobs", "2", "--threads", "1", "-q"]
        val = f"{base}/val.bjc"

        def copy(source, target):
            return lambda folder: shutil.copytree(f"{base}/{source}", f"{folder}/{target}")

        self.commands = [
            Command("train", train, ["R/ckpt/*/*.safetensors", "R/metrics.*", "R/result.json",
                                     "R/config.resolved.json"], train + ["--resume"], "R"),
            Command("campaign", campaign,
                    ["camp/runs/*/*/ckpt/*/*.safetensors", "camp/campaign.json",
                     "camp/runs/*/*/result.json"], campaign + ["--resume", "--retry-failed"], "camp"),
            Command("simulate cache", ["simulate", "--cache", "s.bjc", "--scenes", "40", "--seed", "5",
                                       "--jobs", "1", "-q"], ["s.bjc", "s.bjc.law.safetensors"]),
            Command("simulate folder", ["simulate", "--out", "S", "--scenes", "6", "--seed", "5",
                                        "--jobs", "1", "-q"], ["S/*", "S/*/*"]),
            Command("data prep", ["data", "prep", "--av2", f"{base}/av2", "--split", "train", "--out",
                                  "p.bjc", "--jobs", "1", "-q"], ["p.bjc"]),
            Command("lock", ["lock", "camp", "--data", val, "-q"], ["camp/lock.json"],
                    prepare=copy("open", "camp")),
            Command("lock run", ["lock", "run", "camp", "--threads", "1", "-q"],
                    ["camp/locked/run_summary.json", "camp/locked/seed_table.json"],
                    prepare=copy("locked", "camp")),
            Command("gallery lock", ["gallery", "lock", f"{base}/camp", "--data", val, "--out", "gal",
                                     "-q", "-j", "1"], ["gal/*"]),
            Command("gallery draw", ["gallery", "draw", "gal", "--data", val, "-q"], ["gal/*"],
                    prepare=copy("gallery", "gal")),
            Command("report", ["report", f"{base}/camp", "--scenes", val, "--count", "3", "--out",
                               "r.html", "--threads", "1"], ["r.html"]),
            Command("figures", ["figures", f"{base}/camp", "--out", "figs", "--format", "svg"],
                    ["figs/*.svg"]),
            Command("view", ["view", f"{base}/sub.parquet", "--av2", val, "--count", "3", "--out",
                             "v.html"], ["v.html"]),
            Command("audit", ["audit", f"{base}/camp", "--data", val, "--a", "fullset", "--b", "point",
                              "--rows", "rows.csv", "-q", "-j", "1"], ["rows.csv"]),
            Command("submit", ["submit", model, val, "--out", "sub.parquet", "--threads", "1"],
                    ["sub.parquet"]),
            Command("predict", ["predict", model, val, "--json", "--out", "p.jsonl", "--threads", "1"],
                    ["p.jsonl"]),
            Command("export", ["export", model, "--out", "m.safetensors"], ["m.safetensors"]),
        ]

    def must(self, arguments):
        code, _, err = run([self.bjepa] + arguments, self.base)
        if code != 0:
            raise SystemExit(f"torture: bjepa {' '.join(arguments)}: exit code {code}\n{err}")

    def fresh(self, command, name="work"):
        folder = os.path.join(self.folder, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        if command.prepare:
            command.prepare(folder)
        return folder

    def finish(self, command, folder, env=None):
        """Runs the command again in a folder where it was interrupted. Returns (finished, text)."""
        exists = command.after and os.path.exists(os.path.join(folder, command.after))
        arguments = command.again if exists else command.arguments
        code, out, err = run([self.bjepa] + arguments, folder, env)
        if code == 1 and command.name == "campaign":
            code, out, err = run([self.bjepa] + command.again, folder, env)
        return code == 0 or (code in (2, 4) and "already" in out + err), f"exit code {code}: {err[-300:]}"
