"""Attacks on files: mutated input, flipped bits, edited records, checkpoints swapped during a pass."""
import json
import os
import re
import shutil
import struct
import subprocess
import time

from commands import read, run

HUGE = [0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63,
        (1 << 64) - 1]
TOKENS = [b"1e999", b"-1", b"0", b"99999999999999999999999", b"null", b"[]", b"{}", b'""', b'"\\u0000"',
          b'"\\ud800"', b"NaN", b'"../../x"', b'"\xff\xfe"', b'"' + b"A" * 70000 + b'"',
          b"18446744073709551615", b'"\\u001b[31m"', b'"\x1b[31m"']


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def flip(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]


def mutate_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 8])):
        if len(data) < 16:
            break
        # Headers and footers have more structure than the middle of a file.
        edge = min(len(data) - 8, 4000)
        at = rng.choice([rng.randrange(edge), len(data) - 8 - rng.randrange(edge),
                         rng.randrange(len(data) - 8)])
        kind = rng.randrange(7)
        if kind < 2:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at:at + 4] = struct.pack("<Q", rng.choice(HUGE))[:4]
        elif kind == 3:
            data[at:at + 8] = struct.pack("<Q", rng.choice(HUGE))
        elif kind == 4:
            del data[at:at + rng.choice([1, 2, 8, 100])]
        elif kind == 5:
            other = rng.randrange(len(data))
            data[at:at + 16] = data[other:other + 16]
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def mutate_text(data, rng):
    kind = rng.randrange(6)
    if kind == 0:
        return mutate_bytes(data, rng)
    if kind == 1:
        return data[:rng.randrange(len(data))]
    if kind == 2:
        deep = rng.choice([b"[", b'{"a":']) * rng.choice([200, 100000])
        at = rng.randrange(len(data))
        return data[:at] + deep + data[at:]
    pattern = rb'"[^"]*"|-?[0-9][-0-9.e+]*|[A-Za-z_.]+'
    for _ in range(rng.choice([1, 1, 3])):
        found = list(re.finditer(pattern, data))
        if found:
            at = rng.choice(found)
            data = data[:at.start()] + rng.choice(TOKENS) + data[at.end():]
    return data


def mutations(lab, tally, program, rng, count):
    """Runs commands on mutated files. Any signal, sanitizer report, hang or escape is a failure."""
    work = os.path.join(lab.folder, "mutated")
    base, seed = lab.base, "runs/fullset/seed-0"
    camp, ckpt = f"{work}/camp", f"{work}/camp/{seed}/ckpt/best"
    verify, page = ["lock", "verify", camp], ["report", camp, "--out", f"{work}/r.html", "-j", "1"]
    table, status = ["table", camp], ["campaign", "status", camp]
    small = f"{base}/small.bjc"
    text, binary = mutate_text, mutate_bytes
    kinds = [
        ("camp/lock.json", text, [verify, page]),
        ("camp/locked/seed_table.json", text, [table, page, verify]),
        ("camp/locked/run_summary.json", text, [page, verify]),
        ("camp/locked/completion.json", text, [verify, page]),
        ("camp/campaign.json", text, [status, page, ["table", camp, "--dev"]]),
        (f"camp/{seed}/manifest.json", text, [page]),
        (f"camp/{seed}/result.json", text, [page]),
        (f"camp/{seed}/config.resolved.json", text, [page]),
        (f"camp/{seed}/metrics.jsonl", text, [page]),
        ("camp/registry.sqlite", binary, [status]),
        (f"camp/{seed}/ckpt/best/model.safetensors", binary,
         [["predict", ckpt, small, "--limit", "2", "--json", "-j", "1"]]),
        (f"camp/{seed}/ckpt/last/state.safetensors", binary,
         [["eval", f"{camp}/{seed}/ckpt/last", "--data", small, "-q", "-j", "1"]]),
        ("small.bjc", binary, [["data", "info", f"{work}/small.bjc"], ["data", "verify", f"{work}/small.bjc"],
                               ["eval", ckpt, "--data", f"{work}/small.bjc", "-q", "-j", "1"]]),
        ("small.bjc.law.safetensors", binary,
         [["truth", ckpt, small, f"{work}/small.bjc.law.safetensors", "-q", "-j", "1", "--limit", "2"],
          ["world", "show", small, "--law", f"{work}/small.bjc.law.safetensors", "--scene", "#1", "--out",
           f"{work}/w.svg"]]),
        ("small.parquet", binary, [["score", "--check", f"{work}/small.parquet"],
                                   ["view", f"{work}/small.parquet", "--av2", small, "--out",
                                    f"{work}/v.html"]]),
        ("gallery/manifest.json", text, [["gallery", "draw", f"{work}/gallery", "--data", f"{base}/val.bjc",
                                          "-q"]]),
        ("c.yaml", text, [["campaign", f"{work}/c.yaml", "--data", small, "--out", f"{work}/new", "--dry-run"],
                          ["config", "check", f"{work}/c.yaml"]]),
    ]
    scenario = sorted(os.listdir(f"{base}/av2/train"))[0]
    for name in os.listdir(f"{base}/av2/train/{scenario}"):
        kinds.append((f"av2/train/{scenario}/{name}", binary if name.endswith("parquet") else text,
                      [["data", "prep", "--av2", f"{work}/av2", "--split", "train", "--out",
                        f"{work}/p.bjc", "--force", "--jobs", "1", "-q"],
                       ["predict", ckpt, f"{work}/av2/train/{scenario}", "--json", "-j", "1"]]))
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(base, work)
    sanitizers = {"ASAN_OPTIONS": "exitcode=99:allocator_may_return_null=1:max_allocation_size_mb=4096",
                  "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=98"}
    for i in range(count):
        if not tally.time_left():
            return
        path, mutate, commands = kinds[i % len(kinds)]
        write(f"{work}/{path}", mutate(read(f"{base}/{path}"), rng))
        arguments = rng.choice(commands)
        code, out, err = run([program] + arguments, work, sanitizers, 60)
        problem = None
        if code not in (0, 1, 2, 3, 4, 5):
            problem = f"ended with {code}: {err[-400:]}"
            kept = os.path.join(os.path.dirname(lab.folder), f"torture-{os.path.basename(path)}")
            shutil.copy(f"{work}/{path}", kept)
            problem += f"\n    input kept as {kept}"
        elif "\x1b" in out + err:
            problem = "printed an escape sequence"
        tally.add(problem, f"{path}, bjepa {' '.join(arguments[:2])}")
        shutil.copy(f"{base}/{path}", f"{work}/{path}")


def rotten_scenes(lab, tally, rng, count):
    """Flips one bit of the scenes in a cache. Every command that uses the scene must notice."""
    folder = os.path.join(lab.folder, "rot")
    os.makedirs(folder, exist_ok=True)
    data = read(f"{lab.base}/small.bjc")
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    for _ in range(count):
        if not tally.time_left():
            return
        first, end = header[rng.choice(["records", "future"])]["data_offsets"]
        at = 8 + size + rng.randrange(first, end)
        write(f"{folder}/c.bjc", data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
        arguments = rng.choice([["eval", lab.model, "--data", "c.bjc", "-q", "-j", "1"],
                                ["data", "verify", "c.bjc"],
                                ["submit", lab.model, "c.bjc", "--out", "s.parquet", "-j", "1"]])
        code, _, err = run([lab.bjepa] + arguments, folder)
        # A forecast does not read futures, so damage there may stay unnoticed by `submit`.
        expected = (3, 0) if arguments[0] == "submit" else (3, 4)
        tally.add(None if code in expected else f"exit code {code}: {err[-200:]}", " ".join(arguments[:2]))


def locked_bits(lab, tally, rng, count):
    """Flips one bit of a file that the lock binds. The evaluation and its check must notice."""
    before, after = os.path.join(lab.folder, "before"), os.path.join(lab.folder, "after")
    run_folder = "runs/point/seed-1"
    bound = [f"{run_folder}/ckpt/best/model.safetensors", f"{run_folder}/ckpt/best/state.safetensors",
             f"{run_folder}/config.resolved.json", f"{run_folder}/result.json", "campaign.json"]
    results = ["locked/seed_table.json", "locked/run_summary.json"]
    for target, source in ((before, "locked"), (after, "camp")):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(f"{lab.base}/{source}", target)
    for _ in range(count):
        if not tally.time_left():
            return
        path = rng.choice(bound + results)
        folder = after if path in results or rng.random() < 0.5 else before
        verb = ["lock", "verify", folder] if folder == after else ["lock", "run", folder, "-q"]
        data = read(f"{folder}/{path}")
        write(f"{folder}/{path}", flip(data, rng))
        code, _, err = run([lab.bjepa] + verb, lab.folder)
        write(f"{folder}/{path}", data)
        published = folder == before and os.path.exists(f"{before}/locked")
        shutil.rmtree(f"{before}/locked", ignore_errors=True)
        tally.add(None if code in (3, 4) and not published else f"exit code {code}", f"{path}, {verb[1]}")


def gallery_bits(lab, tally, rng, count):
    """Flips one bit of a locked gallery. `gallery draw` must notice."""
    folder = os.path.join(lab.folder, "flipped")
    for _ in range(count):
        if not tally.time_left():
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(f"{lab.base}/gallery", folder)
        name = rng.choice(sorted(os.listdir(folder)))
        write(f"{folder}/{name}", flip(read(f"{folder}/{name}"), rng))
        code, _, err = run([lab.bjepa, "gallery", "draw", folder, "--data", f"{lab.base}/val.bjc", "-q"],
                           lab.folder)
        tally.add(None if code in (3, 4, 5) else f"exit code {code}", name)


def edited_locks(lab, tally):
    """Edits lock.json so that it still parses. The evaluation must not use other names or runs."""
    def swap_arms(lock):
        for entry in lock["runs"]:
            entry["arm"] = {"fullset": "point", "point": "fullset"}[entry["arm"]]

    def drop_arm(lock):
        lock["runs"] = [entry for entry in lock["runs"] if entry["arm"] != "point"]

    def repeat_run(lock):
        lock["runs"][3] = dict(lock["runs"][0], arm="point", seed=1)

    for edit in (swap_arms, drop_arm, repeat_run):
        folder = os.path.join(lab.folder, "edited")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(f"{lab.base}/locked", folder)
        lock = json.loads(read(f"{folder}/lock.json"))
        edit(lock)
        write(f"{folder}/lock.json", json.dumps(lock, indent=2).encode())
        code, _, _ = run([lab.bjepa, "lock", "run", folder, "-q", "--threads", "1"], lab.folder)
        tally.add(None if code in (3, 4) else f"exit code {code}", edit.__name__)


def swaps(lab, tally, rng, count):
    """Replaces a checkpoint for a moment while the locked evaluation runs, and restores its times."""
    source, folder = f"{lab.base}/locked", os.path.join(lab.folder, "swap")
    expected = read(f"{lab.base}/camp/locked/seed_table.json")
    expected = re.sub(rb'"lock_sha256": "[^"]*"', b"", expected)
    victim, other = (f"runs/fullset/seed-{s}/ckpt/best" for s in (0, 1))
    names = ("model.safetensors", "state.safetensors")
    for _ in range(count):
        if not tally.time_left():
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        good = {n: read(f"{folder}/{victim}/{n}") for n in names}
        evil = {n: read(f"{folder}/{other}/{n}") for n in names}
        times = {n: os.stat(f"{folder}/{victim}/{n}") for n in names}

        def put(content):
            for n in names:
                with open(f"{folder}/{victim}/{n}", "r+b") as file:
                    file.write(content[n])
                    file.truncate()
                os.utime(f"{folder}/{victim}/{n}", ns=(times[n].st_atime_ns, times[n].st_mtime_ns))

        process = subprocess.Popen([lab.bjepa, "lock", "run", folder, "-q", "--threads", "1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.08))
        put(evil)
        time.sleep(rng.uniform(0.002, 0.06))
        put(good)
        process.wait(60)
        table = f"{folder}/locked/seed_table.json"
        changed = os.path.exists(table) and \
            re.sub(rb'"lock_sha256": "[^"]*"', b"", read(table)) != expected
        tally.add("published the numbers of another checkpoint" if changed else None, "lock run")


def determinism(lab, tally):
    """Repeats every command with other threads, time zones and folders. The files must be equal."""
    from attacks import Reference
    for command in lab.commands:
        reference = Reference(lab, command)
        for threads, env in (("2", {}), ("3", {"TZ": "Asia/Kolkata"}), ("1", {"LC_ALL": "C", "HOME": "/nowhere"})):
            if not tally.time_left():
                return
            arguments, folder = command.arguments[:], lab.fresh(command, "again")
            for option in ("-j", "--threads", "--jobs"):
                if option in arguments and command.name != "campaign":
                    arguments[arguments.index(option) + 1] = threads
            code, _, err = run([lab.bjepa] + arguments, folder, env)
            same = code == 0 and command.digest(folder) == reference.digest
            tally.add(None if same else f"exit code {code} or other files: {err[-200:]}",
                      f"{command.name}, {threads} threads, {env}")
