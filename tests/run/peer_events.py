"""Compares event files and histories with TensorBoard, PyTorch's writer, json and csv.

  TEST_EVENTS=... TEST_HISTORY=... python3 tests/run/peer_events.py

1. Scalars: TensorBoard reads the tags, steps and values that we wrote. The bytes of each record equal
   protobuf's encoding of its message.
2. Restart: a file that starts at a step hides that step and all later steps of earlier files, like the
   files of torch.utils.tensorboard with purge_step.
3. Damage: a file that is truncated at any byte of its last record shows all records before it.
4. History: Python reads metrics.jsonl and writes it again with the same values. metrics.csv contains the
   same values, and the events of the epochs contain them as floats.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import csv
import json
import logging
import math
import os
import random
import struct
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import tensorboard
    from tensorboard.backend.event_processing import event_file_loader
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing import plugin_event_accumulator
    from tensorboard import context
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.data import server_ingester
    from tensorboard.util import grpc_util
    from tensorboard.util import tensor_util
    from torch.utils.tensorboard import SummaryWriter
except ImportError as problem:
    print("skipped: a Python package is not installed:", problem)
    sys.exit(77)

logging.getLogger("tensorboard").setLevel(logging.ERROR)    # it warns about every restart

try:
    SERVER = server_ingester.get_server_binary()
except server_ingester.NoDataServerError as problem:
    SERVER = None
    print("the data server is not compared:", problem)


def tool(name):
    return os.environ.get("TEST_" + name.upper()) or os.path.join(
        os.environ["BJ_BUILD"], "tests", "test_run_" + name)


def script(folder, lines):
    os.makedirs(folder, exist_ok=True)
    subprocess.run([tool("events"), "script", folder], input="".join(l + "\n" for l in lines),
                   text=True, check=True)


def files(folder):
    return sorted(os.path.join(folder, f) for f in os.listdir(folder) if "tfevents" in f)


def single(value):
    """Returns the nearest float as a double."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def served(folder):
    """Returns {tag: [(step, value)]} of the data server, which TensorBoard starts if it can. The server does
    not support restarts. A repeated step replaces that step and later ones of the same tag."""
    if not SERVER:
        return None
    for attempt in range(3):
        ingester = server_ingester.SubprocessServerDataIngester(
            SERVER, folder, reload_interval=0, channel_creds_type=grpc_util.ChannelCredsType.LOCAL)
        try:
            ingester.start()
            break
        except server_ingester.DataServerStartupError:  # it has ten seconds, too few on a busy machine
            if attempt == 2:
                raise

    def read():
        runs = ingester.data_provider.read_scalars(
            context.RequestContext(), experiment_id="", plugin_name="scalars", downsample=10 ** 6)
        return {tag: [(e.step, e.value) for e in values]
                for tags in runs.values() for tag, values in tags.items()}

    # The server answers while it is still reading, so wait until the answer is stable.
    found = read()
    for _ in range(100):
        time.sleep(0.1)
        before, found = found, read()
        if found and found == before:
            break
    return found


def scalars(folder):
    """Returns {tag: [(step, value)]} of both readers of the TensorBoard package, which must agree."""
    old = EventAccumulator(folder, size_guidance={"scalars": 0})
    old.Reload()
    new = plugin_event_accumulator.EventAccumulator(folder, tensor_size_guidance={"scalars": 0})
    new.Reload()
    a = {tag: [(e.step, e.value) for e in old.Scalars(tag)] for tag in old.Tags()["scalars"]}
    b = {tag: [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in new.Tensors(tag)]
         for tag in new.Tags()["tensors"]}
    a, b = ({tag: values for tag, values in c.items() if values} for c in (a, b))
    assert a == b, (a, b)
    return a


def compare_scalars():
    rng = random.Random(3)
    wanted, lines = {}, ["create 0"]
    for step in [0, 1, 127, 128, 300, 10 ** 6, 2 ** 40, 2 ** 62]:
        for tag in ("train/loss", "dev/traj_es", "mean_std", "x" * 120, "x" * 300, "größe"):
            value = rng.choice([rng.gauss(0, 1), 10 ** rng.uniform(-50, 50), 0.0, -1e-3, math.inf])
            lines.append("scalar %d %r %s" % (step, value, tag))
            wanted.setdefault(tag, []).append((step, single(value)))
        lines.append("scalar %d nan dev/ece" % step)
    script("scalars", lines + ["flush", "scalar 5 1 lost", "free"])
    path, = files("scalars")
    found = scalars("scalars")
    assert found == wanted, (found, wanted)
    assert served("scalars") in (wanted, None)
    count = 0
    for raw in event_file_loader.RawEventFileLoader(path).Load():
        event = Event.FromString(raw)
        assert event.SerializeToString(deterministic=True) == raw, event
        assert event.HasField("file_version") == (count == 0)
        assert event.HasField("session_log") == (count == 1)
        count += 1
    assert count == 2 + sum(map(len, wanted.values())), count
    print("scalars: %d records are what protobuf writes" % count)


def compare_restart():
    """Tests that each process continues from a checkpoint of an earlier step. Only the first one has dev/c."""
    cases = [[(0, [10, 20, 30, 40]), (30, [30, 40])],
             [(0, [10, 20, 30, 40]), (31, [40, 50])],
             [(0, [10, 20]), (21, [30])],
             [(0, [0, 10]), (1, [10, 20])],
             [(0, [0]), (0, [0, 10])],                  # starts from the beginning again
             [(0, [10, 20, 30]), (5, [10])],
             [(0, []), (7, [10])],
             [(0, [10, 20, 30]), (21, [30, 40]), (31, []), (11, [20, 30])]]
    for n, processes in enumerate(cases):
        ours, peer, wanted = "restart%d/ours" % n, "restart%d/peer" % n, {}
        for p, (start, steps) in enumerate(processes):
            values = [(tag, s, 1000.0 * p + s) for s in steps
                      for tag in ("train/a", "dev/b") + (("dev/c",) if p == 0 else ())]
            script(ours, ["create %d" % start]
                   + ["scalar %d %r %s" % (s, v, tag) for tag, s, v in values] + ["flush", "free"])
            # Several files may start within a second, and the suffix orders their names.
            writer = SummaryWriter(peer, purge_step=start, filename_suffix=".%d" % p)
            for tag, s, v in values:
                writer.add_scalar(tag, v, s)
            writer.close()
            for tag in wanted:
                wanted[tag] = [(s, v) for s, v in wanted[tag] if s < start]
            for tag, s, v in values:
                wanted.setdefault(tag, []).append((s, v))
        assert [f.split(".")[-1] for f in files(peer)] == [str(p) for p in range(len(processes))]
        wanted = {tag: values for tag, values in wanted.items() if values}
        a, b = scalars(ours), scalars(peer)
        assert a == b == wanted, (n, a, b, wanted)
        assert served(ours) == served(peer), n
    print("restart: %d cases as with PyTorch's writer" % len(cases))


def compare_damage():
    script("damage", ["create 0"] + ["scalar %d 1 a" % s for s in range(1, 6)] + ["flush", "free"])
    path, = files("damage")
    with open(path, "rb") as file:
        whole = file.read()
    begin, end = 0, 0
    while end < len(whole):
        begin, end = end, end + 16 + struct.unpack_from("<Q", whole, end)[0]
    for cut in range(begin, end):
        with open(path, "wb") as file:
            file.write(whole[:cut])
        found = scalars("damage")
        assert found == {"a": [(s, 1.0) for s in range(1, 5)]}, (cut, found)
    print("damage: %d places to cut" % (end - begin))


def flat(value, prefix=""):
    for key, v in value.items():
        if isinstance(v, dict):
            yield from flat(v, prefix + key + ".")
        else:
            yield prefix + key, v


def compare_history():
    rng = random.Random(5)
    groups = {
        "train": "loss latent decoded rec router usage variance rank participation",
        "dev": "scenes traj_es traj_obs traj_disp end_es latent_es exp_ade exp_fde top1_ade "
               "top1_fde top1_mr min_ade min_fde min_mr brier ece exp_entropy active_heads "
               "neff_collision dedup_support",
        "health": "mean_std low_std_fraction entropy_rank participation",
        "usage": "least most",
        "decoder": "ade fde",
    }

    def number():
        kind = rng.random()
        return (None if kind < .1 else rng.randrange(-5, 5) if kind < .2
                else rng.gauss(0, 1) * 10 ** rng.uniform(-30, 30))

    rows = []
    for epoch in range(40):
        row = {"schema": "branchjepa.epoch/1", "type": "epoch", "step": epoch * 47, "epoch": epoch,
               "wall_s": number(), "lr": number(), "grad_norm": number(),
               "scenes_per_s": number(), "best": rng.random() < .5, "eligible": rng.random() < .5}
        row.update((group, {name: number() for name in names.split()})
                   for group, names in groups.items())
        rows.append(row)
    for folder in ("given", "again", "events"):
        os.makedirs("history/" + folder)
    with open("history/given/metrics.jsonl", "w") as file:
        for row in rows:
            mixed = list(row.items()) + [("later", {"lr": "added"})]
            rng.shuffle(mixed)              # the order of members is not significant
            file.write(json.dumps(dict(mixed), ensure_ascii=False) + "\n")
    subprocess.run([tool("history"), "rewrite", "history/given", "history/again"], check=True)
    with open("history/again/metrics.jsonl") as file:
        again = [json.loads(line) for line in file]
    assert again == rows
    assert [list(flat(a)) for a in again] == [list(flat(r)) for r in rows]  # compares the order, too
    with open("history/again/metrics.csv", newline="") as file:
        table = list(csv.reader(file))
    columns = [name for name, _ in flat(rows[0]) if name not in ("schema", "type")]
    assert table[0] == columns, table[0]
    assert len(table) == 1 + len(rows)
    for row, cells in zip(rows, table[1:]):
        values = dict(flat(row))
        for name, cell in zip(columns, cells, strict=True):
            value = values[name]
            assert cell == "" if value is None else float(cell) == value, (name, cell, value)

    subprocess.run([tool("events"), "epochs", "history/given", "history/events"], check=True)
    tags = {"lr": "opt/lr", "grad_norm": "opt/grad_norm", "scenes_per_s": "opt/scenes_per_s",
            "usage.least": "dev/usage_least", "usage.most": "dev/usage_most",
            "decoder.ade": "dev/decoder_ade", "decoder.fde": "dev/decoder_fde"}
    wanted = {}
    for row in rows:
        for name, value in flat(row):
            tag = tags.get(name) or name.replace(".", "/")
            if "/" in tag and name not in ("schema", "dev.scenes") and value is not None:
                wanted.setdefault(tag, []).append((row["step"], single(value)))
    found = scalars("history/events")
    assert found == wanted, (sorted(found), sorted(wanted))
    assert served("history/events") in (wanted, None)
    print("history: %d epochs, %d columns, %d tags" % (len(rows), len(columns), len(found)))


compare_scalars()
compare_restart()
compare_damage()
compare_history()
print("TensorBoard", tensorboard.__version__, "passed")
