"""Forges a locked campaign in ways that still parse, and checks that every reader rejects it.

    forge.py BJEPA CAMPAIGN DATA

CAMPAIGN has the arms fullset and point with the seeds 0 and 1, and has been evaluated on DATA. Every
forgery is applied to a copy. A forger who edits a file also repairs the digests of the files that
bind it (`seal`), so the forgeries test the meaning of the files, not only their digests.
"""
import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys

bjepa, campaign, data = sys.argv[1:4]
LOCKED = "locked/"
RUN = "runs/fullset/seed-0/"


def sha(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Number(float):  # keeps the spelling of a number
    def __new__(cls, text):
        number = super().__new__(cls, text)
        number.text = text
        return number


def load(text):
    return json.loads(text, parse_float=Number)


def dump(value, indent=""):
    inner = indent + "  "
    if isinstance(value, (dict, list)) and value:
        items = [f"{inner}{dump(k)}: {dump(v, inner)}" for k, v in value.items()] \
            if isinstance(value, dict) else [inner + dump(v, inner) for v in value]
        ends = "{}" if isinstance(value, dict) else "[]"
        return ends[0] + "\n" + ",\n".join(items) + "\n" + indent + ends[1]
    return value.text if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def text_of(value):  # as the product writes JSON
    return dump(value) + "\n"


class Folder:
    def __init__(self, path, evaluated=True):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(campaign, path, symlinks=True)
        if not evaluated:
            shutil.rmtree(f"{path}/locked")
        self.path = path

    def at(self, name):
        return f"{self.path}/{name}"

    def read(self, name):
        with open(self.at(name), encoding="utf-8") as f:
            return f.read()

    def write(self, name, text):
        with open(self.at(name), "w", encoding="utf-8") as f:
            f.write(text)

    def edit(self, name, change):
        value = load(self.read(name))
        result = change(value)
        self.write(name, text_of(value if result is None else result))

    def replace(self, name, old, new, count=1):
        text = self.read(name)
        assert old in text, (name, old)
        self.write(name, text.replace(old, new, count))

    def seal(self):
        """Repairs every digest, from the run files up to completion.json."""

        def lock(value):
            value["campaign"]["sha256"] = sha(self.at("campaign.json"))
            for run in value["runs"]:
                for name in run["sha256"]:
                    if os.path.isfile(self.at(run["dir"] + "/" + name)):
                        run["sha256"][name] = sha(self.at(run["dir"] + "/" + name))

        raw = self.read("lock.json")
        if raw == text_of(load(raw)):
            self.edit("lock.json", lock)
        digest = sha(self.at("lock.json"))
        if not os.path.isdir(self.at("locked")):
            return
        for name in ("run_summary.json", "seed_table.json"):
            old = load(self.read(LOCKED + name))["lock_sha256"]
            self.write(LOCKED + name, self.read(LOCKED + name).replace(old, digest))

        def completion(value):
            for name in ("run_summary.json", "seed_table.json"):
                value["sha256"][name] = sha(self.at(LOCKED + name))
            value["sha256"]["lock.json"] = digest
            body = {k: v for k, v in value.items() if k != "digest"}
            if "digest" in value:
                value["digest"] = hashlib.sha256(text_of(body).encode()).hexdigest()

        raw = self.read(LOCKED + "completion.json")
        if raw == text_of(load(raw)):
            self.edit(LOCKED + "completion.json", completion)


# ------------------------------------------------------------------------------------- forgeries


def rename(value, old, new):
    if isinstance(value, dict):
        return {k: rename(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [rename(v, old, new) for v in value]
    return new if value == old else value


RESULTS = ("lock.json", LOCKED + "run_summary.json", LOCKED + "seed_table.json")


def swap_labels(f):
    for name in RESULTS:
        f.edit(name, lambda v: rename(rename(rename(v, "fullset", "?"), "point", "fullset"), "?", "point"))


def swap_seeds(f):
    def change(value):
        for row in value.get("runs", []) + value.get("rows", []) + value.get("usage", []):
            if isinstance(row, dict) and row.get("arm") == "point":
                row["seed"] = 1 - row["seed"]

    f.edit("lock.json", change)
    f.edit(LOCKED + "seed_table.json", change)


def drop(keep):
    def forge(f):
        f.edit("lock.json", lambda v: v.update(runs=[r for r in v["runs"] if keep(r)]))
        for part in ("rows", "usage"):
            f.edit(LOCKED + "seed_table.json", lambda v: v.update({part: [r for r in v[part] if keep(r)]}))
        f.edit(LOCKED + "run_summary.json",
               lambda v: v.update(arms=[a for a in v["arms"] if keep({"arm": a["arm"], "seed": 0})],
                                  checkpoints=len(load(f.read("lock.json"))["runs"])))
        f.edit(LOCKED + "completion.json",
               lambda v: v.update(checkpoints=len(load(f.read("lock.json"))["runs"])))
    return forge


def extra_run(f):
    f.edit("lock.json", lambda v: v["runs"].append(dict(copy.deepcopy(v["runs"][0]), seed=2, dir="runs/fullset/seed-2")))
    shutil.copytree(f.at("runs/fullset/seed-0"), f.at("runs/fullset/seed-2"))


def double_run(f):
    f.edit("lock.json", lambda v: v["runs"].__setitem__(1, dict(v["runs"][0], arm="point")))


def swap_folders(a, b):
    def forge(f):
        os.rename(f.at(a), f.at("aside"))
        os.rename(f.at(b), f.at(a))
        os.rename(f.at("aside"), f.at(b))
    return forge


def link_folder(f):
    shutil.rmtree(f.at("runs/point/seed-0"))
    os.symlink("seed-1", f.at("runs/point/seed-0"))


def other_checkpoint(f):
    """Uses the checkpoint of seed 1 for seed 0 and repairs result.json, too."""
    for name in ("model.safetensors", "state.safetensors"):
        shutil.copy(f.at("runs/fullset/seed-1/ckpt/best/" + name), f.at(RUN + "ckpt/best/" + name))
    f.edit(RUN + "result.json", lambda v: v["checkpoint"].update(
        {n: sha(f.at(RUN + "ckpt/best/" + n)) for n in v["checkpoint"] if os.path.isfile(f.at(RUN + "ckpt/best/" + n))}))


def better_value(f, groups=False):
    """Improves a value of one arm in the table and repairs the means; with `groups`, those too."""
    rows = {}

    def table(value):
        for row in value["rows"]:
            if row["arm"] == "fullset" and row["metric"] == "traj_es":
                row["value"] = row["value"] - 1
                rows[row["seed"]] = row["value"]

    def summary(value):
        for arm in value["arms"]:
            if arm["arm"] != "fullset":
                continue
            mean = arm["metrics"]["traj_es"]
            n = len(rows)
            mean["mean"] = sum(rows[s] for s in sorted(rows)) / n
            mean["sd"] = (sum((rows[s] - mean["mean"]) ** 2 for s in sorted(rows)) / (n - 1)) ** .5
            for group in arm["groups"] if groups else []:
                if group["metrics"]:
                    group["metrics"]["traj_es"]["mean"] -= 1

    f.edit(LOCKED + "seed_table.json", table)
    f.edit(LOCKED + "run_summary.json", summary)


def revealed(f):
    """Gives a group with too few scenes a mean."""
    def change(value):
        for arm in value["arms"]:
            for group in arm["groups"]:
                if group["metrics"] is None:
                    group["metrics"] = arm["metrics"]
    f.edit(LOCKED + "run_summary.json", change)


def run_setting(f):
    f.replace(RUN + "config.resolved.json", '"lr": ', '"lr": 1')


def campaign_setting(f):
    f.edit("campaign.json", lambda v: v["runs"][0]["settings"].__setitem__("optim.lr", 0.5))


def spelled(name, old, new):
    return lambda f: f.replace(name, old, new)


def replayed(f):
    """Uses the completion.json of another lock."""
    f.edit(LOCKED + "completion.json", lambda v: v["sha256"].__setitem__("lock.json", "0" * 64))


C, S, T = LOCKED + "completion.json", LOCKED + "run_summary.json", LOCKED + "seed_table.json"
FORGERIES = {  # name: (forgery, the digests are repaired)
    "the labels of two arms swapped": (swap_labels, True),
    "the seeds of an arm swapped": (swap_seeds, True),
    "an arm dropped": (drop(lambda r: r["arm"] != "point"), True),
    "a seed dropped": (drop(lambda r: r["seed"] != 1), True),
    "an extra run": (extra_run, True),
    "a run listed as another": (double_run, True),
    "the folders of two arms swapped": (swap_folders("runs/fullset/seed-0", "runs/point/seed-0"), False),
    "the folders of two arms swapped, repaired": (swap_folders("runs/fullset/seed-0", "runs/point/seed-0"), True),
    "the folders of two seeds swapped, repaired": (swap_folders("runs/fullset/seed-0", "runs/fullset/seed-1"), True),
    "a folder replaced by a link": (link_folder, False),
    "a folder replaced by a link, repaired": (link_folder, True),
    "the checkpoint of another seed": (other_checkpoint, True),
    "a value improved": (better_value, True),
    "a value improved, not repaired": (better_value, False),
    "a hidden group shown": (revealed, True),
    "a setting in config.resolved.json": (run_setting, True),
    "a setting in campaign.json": (campaign_setting, True),
    "the campaign renamed": (lambda f: f.edit("campaign.json", lambda v: v.update(name="other")), True),
    "the campaign renamed in the results": (lambda f: [f.edit(n, lambda v: v.update(campaign="other")) for n in (S, T, C)], True),
    "the number of scenes": (lambda f: f.edit(C, lambda v: v.update(scenes=600000)), True),
    "the number of scenes everywhere": (lambda f: [f.edit(n, lambda v: v.update(scenes=600000)) for n in (C, S, T)], True),
    "the number of checkpoints": (lambda f: f.edit(C, lambda v: v.update(checkpoints=5)), True),
    "the date": (spelled(C, '"finished": "2', '"finished": "3'), False),
    "a date that is none": (lambda f: f.edit(C, lambda v: v.update(finished="yesterday")), True),
    "the times swapped": (lambda f: f.edit(C, lambda v: v.update(started="2999-01-01T00:00:00Z")), True),
    "the version": (lambda f: f.edit(C, lambda v: v.update(version="9.9.9")), True),
    "the evaluator": (lambda f: f.edit(C, lambda v: v["sha256"].update(evaluator="0" * 64)), True),
    "the data digest": (lambda f: f.edit("lock.json", lambda v: v["data"].update(digest="0" * 64)), True),
    "the data size": (lambda f: f.edit("lock.json", lambda v: v["data"].update(bytes=1)), True),
    "the data path spelled differently": (lambda f: f.edit("lock.json", lambda v: v["data"].update(path="/." + v["data"]["path"])), True),
    "the chosen epoch": (lambda f: f.edit("lock.json", lambda v: v["runs"][0].update(best_epoch=1)), True),
    "the development score": (lambda f: f.edit("lock.json", lambda v: v["runs"][0].update(dev=1.5)), True),
    "the selection rule": (lambda f: f.edit("lock.json", lambda v: v["runs"][0].update(rule="decoder_ade")), True),
    "a run not evaluated": (lambda f: f.edit("lock.json", lambda v: v["runs"][0].update(evaluated=False)), True),
    "another protocol": (lambda f: f.edit("lock.json", lambda v: v["protocol"].update(least_scenes=1)), True),
    "the latency of another run": (lambda f: f.edit(C, lambda v: v["latency"]["checkpoints"].reverse()), True),
    "a latency dropped": (lambda f: f.edit(C, lambda v: v["latency"].update(checkpoints=v["latency"]["checkpoints"][:-1])), True),
    "the number of scenes on maps": (lambda f: f.edit(S, lambda v: v["map"].update(scenes=1)), True),
    "a better map": (lambda f: f.replace(T, '"metric": "mass_weighted_support",\n      "value": ', '"metric": "mass_weighted_support",\n      "value": 1'), True),
    "the map metrics": (lambda f: f.edit("lock.json", lambda v: v["protocol"].update(map=[])), True),
    "an older schema": (spelled("lock.json", "lock/2", "lock/1"), True),
    "a replayed completion.json": (replayed, False),
    "an extra member": (lambda f: f.edit(C, lambda v: v.update(note="x")), True),
    "an extra member of a bin": (lambda f: f.edit(S, lambda v: v["arms"][0]["calibration"][0].update(note="x")), True),
    "a duplicate key in completion.json": (spelled(C, '  "scenes":', '  "scenes": 1,\n  "scenes":'), True),
    "a duplicate key in run_summary.json": (spelled(S, '  "scenes":', '  "scenes": 1,\n  "scenes":'), True),
    "a duplicate key in a group": (spelled(S, '          "by": "', '          "by": "x",\n          "by": "'), True),
    "a duplicate key in lock.json": (spelled("lock.json", '      "seed": 0', '      "seed": 7,\n      "seed": 0'), True),
    "a space at the end of seed_table.json": (lambda f: f.write(T, f.read(T) + " "), True),
    "a newline at the end of lock.json": (lambda f: f.write("lock.json", f.read("lock.json") + "\n"), True),
    "another spelling of a number": (spelled(T, '"seed": 0,', '"seed": 0.0,'), True),
    "another spelling of a name": (spelled(T, '"fullset"', '"\\u0066ullset"'), True),
    "a name that looks the same": (spelled(T, '"fullset"', '"fulls\u0435t"'), True),
    "an arm renamed in the summary": (spelled(S, '"arm": "fullset"', '"arm": "fulls\u0435t"'), True),
    "a file added to the results": (lambda f: f.write(LOCKED + "scenes.csv", "x\n"), False),
    "a file replaced by a folder": (lambda f: (os.unlink(f.at(RUN + "metrics.jsonl")), os.mkdir(f.at(RUN + "metrics.jsonl"))), False),
    "the history": (lambda f: f.replace(RUN + "metrics.jsonl", '"traj_es":1', '"traj_es":2', 9), True),
    "the history, not repaired": (lambda f: f.replace(RUN + "metrics.jsonl", '"traj_es":1', '"traj_es":2'), False),
}
BEFORE = ("the labels of two arms swapped", "the seeds of an arm swapped", "an arm dropped", "a seed dropped",
          "an extra run", "a run listed as another", "the folders of two arms swapped, repaired",
          "the folders of two seeds swapped, repaired", "a folder replaced by a link, repaired",
          "the checkpoint of another seed", "a setting in campaign.json", "the campaign renamed",
          "the data digest", "the data size", "the data path spelled differently", "the chosen epoch",
          "the development score", "the selection rule", "a run not evaluated", "another protocol",
          "a duplicate key in lock.json", "a newline at the end of lock.json", "the history")

READERS = {
    "lock verify": ["lock", "verify", "F", "-q"],
    "lock verify --partial": ["lock", "verify", "F", "--partial", "-q"],
    "table": ["table", "F"],
    "compare": ["compare", "F", "-a", "fullset", "-b", "point"],
    "report": ["report", "F", "--out", "page.html", "--count", "1", "-j", "1"],
    "figures": ["figures", "F", "--out", "figures", "--format", "svg", "--only", "calibration"],
}


def run(args, folder):
    args = [bjepa] + [folder if a == "F" else a for a in args]
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    for name in ("figures",):
        shutil.rmtree(name, ignore_errors=True)
    return done


failed = tried = 0


def verdict(ok, *what):
    global failed, tried
    tried += 1
    failed += not ok
    if not ok:
        print("ACCEPTED:", *what)


for verb, args in READERS.items():
    done = run(args, campaign)
    verdict(done.returncode == 0, "the true campaign is rejected by", verb, done.stderr)
for name, (forgery, sealed) in FORGERIES.items():
    folder = Folder("forged")
    forgery(folder)
    if sealed:
        folder.seal()
    for verb, args in READERS.items():
        done = run(args, "forged")
        verdict(done.returncode in (2, 3, 4) and "forged" in done.stderr, name, "by", verb, done.returncode, done.stderr)
for name in BEFORE:
    if name.startswith(("the seeds", "an arm dropped", "a seed dropped", "the labels")):
        folder = Folder("forged")
        FORGERIES[name][0](folder)
        shutil.rmtree("forged/locked")
    else:
        folder = Folder("forged", evaluated=False)
        FORGERIES[name][0](folder)
    folder.seal()
    for verb in ("run", "verify"):
        done = run(["lock", verb, "forged", "-q", "--threads", "1"], "forged")
        verdict(done.returncode in (2, 3, 4) and not os.path.exists("forged/locked"), name, "by lock", verb,
                "before the evaluation", done.stderr)

# A complete and consistent re-creation is detected only by a repeated evaluation or a signature.
folder = Folder("forged")
better_value(folder, groups=True)
folder.seal()
hidden = any(g["metrics"] is None for a in load(folder.read(S))["arms"] for g in a["groups"])
done = run(["lock", "verify", "forged", "--repeat", "-q"], "forged")
verdict(done.returncode == 4 and "seed_table.json" in done.stderr, "a re-creation by lock verify --repeat", done.stderr)

print(f"{tried} checks, {failed} failed")
sys.exit(failed != 0)
