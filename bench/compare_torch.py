#!/usr/bin/env python3
"""Measures PyTorch, ONNX Runtime, OpenVINO and bjepa on the same tasks and prints the ratios.

    train256   one full-set training step on 256 scenes: forward, backward, clip 5, AdamW, EMA
    train64, train32   training steps on fewer scenes
    infer64    64 scenes from raw features to K weighted trajectories
    infer1     one scene from raw features to K weighted trajectories

All tasks use the paper's sizes and synthetic scenes with the same mask statistics. The peers get padded
tensors. PyTorch runs in float32 and with bf16 autocast, bjepa in single and in mixed precision. Each peer
has its own process, which sleeps while another peer is measured. Rounds alternate between the peers, so
that noise of the machine affects all of them. A result is the median over rounds. The outputs of the peers
are compared before the measurement. Each ratio compares with the best configuration of the peers. Every
round also measures the multiply-adds per second of the machine in a loop without memory accesses (limits.c).

The last part measures the training throughput while another process keeps one core busy.

Exit codes, which do not depend on timings: 0 success, 1 the output of a peer differs or bjepa failed.
"""
from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[1]
TRAIN, TRAIN64, TRAIN32 = "train256", "train64", "train32"
INFER64, INFER1 = "infer64", "infer1"
BATCH = {TRAIN: 256, TRAIN64: 64, TRAIN32: 32, INFER64: 64, INFER1: 1}
TRAININGS = (TRAIN, TRAIN64, TRAIN32)
EAGER, COMPILE = "PyTorch eager", "PyTorch compile"
EAGER16, COMPILE16 = "PyTorch eager bf16", "PyTorch compile bf16"
ORT, OPENVINO = "ONNX Runtime", "OpenVINO"
SINGLE = (EAGER, COMPILE, ORT, OPENVINO)
LOW = (EAGER16, COMPILE16)
PEERS = SINGLE + LOW
AGREEMENT = 1e-3          # m and probability, between peers in float32
AGREEMENT16 = 0.1         # the same for bf16, which has eight bits
SETTLE = 0.3              # s of silence before a measurement: thread pools stop spinning
CONTENDED_BUDGET = 60.0   # s for PyTorch's contended steps

# ------------------------------------------------------------------------- inside a peer's process

Work = Callable[[], object]


def build_training(compiled: bool, count: int = BATCH[TRAIN], low: bool = False) -> Work:
    """A training step. low: bf16 autocast for the layers, float32 for losses and weights."""
    import torch
    from reference import modules, network, objectives, scenes, sizes

    torch.manual_seed(0)
    net = modules.BranchNet(sizes.PAPER)
    target = modules.SceneEncoder(sizes.PAPER)
    target.load_state_dict(net.encoder.state_dict())
    target.requires_grad_(False)
    batch = scenes.stand_in(count, sizes.PAPER, seed=0)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=1e-2)
    goal = objectives.Goal()

    def loss_of(batch: scenes.Batch) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            outputs = net(*(batch[key] for key in modules.INPUTS))
            with torch.no_grad():
                view = network.future_view(batch, sizes.PAPER.dt)
                encoded = target(*(view[key] for key in modules.INPUTS))
            latent = network.unit(encoded.float())
            decoded = net.decode(latent).float()
        prediction = network.Prediction(*(output.float() for output in outputs))
        case = objectives.Case(prediction, latent, batch["future"], decoded, {})
        return objectives.total(objectives.full_set(goal, case))

    if compiled:
        loss_of = torch.compile(loss_of)
    online, followers = list(net.encoder.parameters()), list(target.parameters())

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of(batch).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(followers, online, 1 - 0.996)

    return step


def inference_net():
    import torch
    from reference import modules, sizes

    torch.manual_seed(0)
    return modules.WeightedFutures(modules.BranchNet(sizes.PAPER)).eval()


def inference_inputs(count: int) -> dict:
    from reference import modules, scenes, sizes

    batch = scenes.stand_in(count, sizes.PAPER, seed=0)
    return {key: batch[key] for key in modules.INPUTS}


def build_torch(compiled: bool, low: bool, batches: tuple[str, ...]) -> dict[str, Work]:
    import torch

    def inference(count: int) -> Work:
        net, inputs = inference_net(), tuple(inference_inputs(count).values())
        if compiled:
            net = torch.compile(net)

        def run() -> list:
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=low):
                return [output.float().numpy() for output in net(*inputs)]
        return run

    works = {work: build_training(compiled, BATCH[work], low)
             for work in TRAININGS if work in batches}
    works |= {work: inference(BATCH[work]) for work in (INFER64, INFER1)}
    return works


def export_onnx(count: int, folder: str) -> str:
    """Exports the network with static shapes, because every runtime optimizes them best."""
    import warnings

    import torch

    path = os.path.join(folder, f"branch{count}.onnx")
    inputs = inference_inputs(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(inference_net(), tuple(inputs.values()), path,
                          input_names=list(inputs), output_names=["decoded", "weights"],
                          dynamo=False)
    return path


def build_onnxruntime(threads: int, folder: str) -> dict[str, Work]:
    import onnxruntime

    def inference(count: int) -> Work:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(export_onnx(count, folder), options,
                                               providers=["CPUExecutionProvider"])
        inputs = {key: value.numpy() for key, value in inference_inputs(count).items()}
        return lambda: session.run(None, inputs)

    return {work: inference(BATCH[work]) for work in (INFER64, INFER1)}


def build_openvino(threads: int, folder: str) -> dict[str, Work]:
    import openvino

    core = openvino.Core()
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
                "INFERENCE_PRECISION_HINT": "f32"}

    def inference(count: int) -> Work:
        model = openvino.convert_model(export_onnx(count, folder))
        request = core.compile_model(model, "CPU", settings).create_infer_request()
        inputs = {key: value.numpy() for key, value in inference_inputs(count).items()}
        return lambda: list(request.infer(inputs, share_inputs=True).values())

    return {work: inference(BATCH[work]) for work in (INFER64, INFER1)}


def peer_main(name: str, threads: int, batches: tuple[str, ...], pipe) -> None:
    """Answers ('time', work, runs, seconds), ('outputs', work) and ('rss',) until the pipe closes."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import resource

        import torch
        torch.set_num_threads(threads)
        with tempfile.TemporaryDirectory() as folder:
            if name in (EAGER, COMPILE, *LOW):
                works = build_torch(name in (COMPILE, COMPILE16), name in LOW, batches)
            elif name == ORT:
                works = build_onnxruntime(threads, folder)
            else:
                works = build_openvino(threads, folder)
            for work in works.values():
                for _ in range(2):
                    work()
        pipe.send(("ready", tuple(works)))
        while True:
            request, *rest = pipe.recv()
            if request == "time":
                pipe.send(measure(works[rest[0]], *rest[1:]))
            elif request == "outputs":
                pipe.send(works[rest[0]]())
            elif request == "rss":
                pipe.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    except EOFError:
        pass
    except Exception as error:
        pipe.send(("failed", f"{type(error).__name__}: {error}".splitlines()[0],
                   traceback.format_exc()))


def measure(work: Work, runs: int, seconds: float) -> list[float]:
    """Returns the durations of up to `runs` runs. No run starts after `seconds`."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < runs and time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return times


# ------------------------------------------------------------------------------ inside this process


@dataclass
class Peer:
    """A peer in its own process."""
    name: str
    process: multiprocessing.process.BaseProcess
    pipe: multiprocessing.connection.Connection
    works: tuple[str, ...] = ()
    rounds: dict[str, list[float]] = field(default_factory=dict)   # work -> ms, one value per round
    peak_rss_mib: float = 0.0

    @classmethod
    def start(cls, name: str, threads: int, batches: tuple[str, ...]) -> "Peer":
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=peer_main, args=(name, threads, batches, theirs),
                                  daemon=True)
        process.start()
        theirs.close()
        peer = cls(name, process, ours)
        try:
            answer = ours.recv()
        except EOFError:
            raise RuntimeError("its process ended while starting") from None
        if answer[0] == "failed":
            process.join()
            raise RuntimeError(answer[1])
        peer.works = answer[1]
        return peer

    def ask(self, *request):
        self.pipe.send(request)
        return self.pipe.recv()

    def time(self, work: str, runs: int) -> None:
        """Measures one round. The first run wakes the threads and is not counted."""
        times = self.ask("time", work, runs + 1, 1e9)[1:]
        self.rounds.setdefault(work, []).append(1e3 * statistics.median(times))

    def median(self, work: str) -> float | None:
        return statistics.median(self.rounds[work]) if work in self.rounds else None

    def stop(self) -> None:
        self.pipe.close()
        self.process.join(timeout=10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def run_json(command: list[str]) -> dict:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} exited {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def run_bjepa(binary: str, threads: int, rounds: int, only: str | None = None,
              batches: tuple[str, ...] = ()) -> dict:
    command = [binary, "bench", "--threads", str(threads), "--rounds", str(rounds), "--json"]
    if only:
        return run_json(command + ["--only", only])
    report = run_json(command + ["--only", "infer"])
    for work in batches:
        steps = run_json(command + ["--only", "train", "--precision", "both", "--batch",
                                    str(BATCH[work])])
        report[f"mixed_speedup{BATCH[work]}"] = steps.pop("mixed_speedup")
        report = steps | report
    # A process with one trainer shows the memory of training.
    one = run_json([binary, "bench", "--threads", str(threads), "--rounds", "1", "--only", "train",
                    "--json"])
    return report | dict(peak_rss_mib=one["peak_rss_mib"])


def build_limits(folder: str) -> str | None:
    """Compiles limits.c, or returns None if that is not possible."""
    program = os.path.join(folder, "limits")
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-pthread",
               str(ROOT / "bench" / "limits.c"), "-o", program]
    try:
        return program if subprocess.run(command, capture_output=True).returncode == 0 else None
    except OSError:
        return None


def median_of(reports: list[dict]) -> dict:
    """Returns the median of every number over the rounds, and all other values of the last round."""
    merged = dict(reports[-1])
    for key, value in merged.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            merged[key] = statistics.median(report[key] for report in reports)
    return merged


def agreement(peers: dict[str, Peer]) -> dict[str, float]:
    """Returns the largest difference between the predictions of each peer and those of the first peer."""
    import numpy

    outputs = {name: peer.ask("outputs", INFER64) for name, peer in peers.items()}
    first = next(iter(outputs.values()))
    return {name: max(float(numpy.abs(a - b).max()) for a, b in zip(mine, first))
            for name, mine in outputs.items()}


def occupy(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    while True:
        pass


def contended(bjepa: str | None, eager: Peer | None, threads: int, rounds: int
              ) -> dict[str, dict]:
    """Measures a training step while another process keeps one core busy."""
    result: dict[str, dict] = {}
    cpu = min(os.sched_getaffinity(0))
    hog = multiprocessing.get_context("spawn").Process(target=occupy, args=(cpu,), daemon=True)
    hog.start()
    try:
        time.sleep(1)
        if bjepa:
            result["bjepa"] = dict(ms=run_bjepa(bjepa, threads, rounds, "train")[TRAIN + "_ms"])
        if eager:
            begin = time.perf_counter()
            eager.pipe.send(("time", TRAIN, 2, CONTENDED_BUDGET))
            if eager.pipe.poll(CONTENDED_BUDGET):
                result[EAGER] = dict(ms=1e3 * statistics.median(eager.pipe.recv()))
            else:   # fewer than two steps give a lower bound of the mean
                result[EAGER] = dict(ms=1e3 * (time.perf_counter() - begin) / 2, at_least=True)
                eager.process.kill()
    finally:
        hog.kill()
        hog.join()
    return result


def best(peers: dict[str, Peer], work: str, names: tuple[str, ...]) -> tuple[str, float] | None:
    times = [(peers[name].median(work), name) for name in names
             if name in peers and peers[name].median(work) is not None]
    return (min(times)[1], min(times)[0]) if times else None


RATIOS = (  # label, bjepa's key, the work, against the best of, name of that group
    ("training step, 256 scenes", "train256_ms", TRAIN, SINGLE, "float32"),
    ("training step, 256 scenes, mixed", "train256_mixed_ms", TRAIN, LOW, "bf16"),
    ("training step, 256 scenes, mixed", "train256_mixed_ms", TRAIN, PEERS, "all"),
    ("training step, 64 scenes", "train64_ms", TRAIN64, SINGLE, "float32"),
    ("training step, 64 scenes, mixed", "train64_mixed_ms", TRAIN64, PEERS, "all"),
    ("training step, 32 scenes", "train32_ms", TRAIN32, SINGLE, "float32"),
    ("training step, 32 scenes, mixed", "train32_mixed_ms", TRAIN32, PEERS, "all"),
    ("inference, 64 scenes", "infer64_ms", INFER64, SINGLE, "float32"),
    ("inference, 64 scenes, mixed", "infer64_bf16_ms", INFER64, LOW, "bf16"),
    ("inference, 64 scenes, mixed", "infer64_bf16_ms", INFER64, PEERS, "all"),
    ("inference, 1 scene", "infer1_ms", INFER1, SINGLE, "float32"),
    ("inference, 1 scene, mixed", "infer1_bf16_ms", INFER1, PEERS, "all"),
)


def print_times(peers: dict[str, Peer], bjepa: dict | None) -> None:
    print(f"\n{'median ms':<22}" + "".join(f"{work:>12}" for work in BATCH) + f"{'peak MiB':>12}")

    def row(name: str, values: list[float | None]) -> None:
        cells = "".join(f"{'-' if v is None else format(v, '.3f'):>12}" for v in values)
        print(f"{name:<22}{cells}")

    for name, peer in peers.items():
        row(name, [*(peer.median(work) for work in BATCH), peer.peak_rss_mib])
    if bjepa:
        row("bjepa", [bjepa.get(f"{work}_ms") for work in BATCH] + [bjepa.get("peak_rss_mib")])
        row("bjepa, mixed", [*(bjepa.get(f"{work}_mixed_ms") for work in TRAININGS),
                             bjepa.get("infer64_bf16_ms"), bjepa.get("infer1_bf16_ms"), None])


def ratios_of(peers: dict[str, Peer], bjepa: dict) -> list[dict]:
    rows = []
    for label, key, work, names, among in RATIOS:
        against = best(peers, work, names)
        if against and bjepa.get(key):
            rows.append(dict(what=label, key=key, against=against[0],
                             among=among, ratio=against[1] / bjepa[key]))
    return rows


def machine() -> dict[str, object]:
    model = platform.processor() or "unknown"
    try:
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines
                          if line.startswith("model name")), model)
    except OSError:
        pass
    return dict(cpu=model, cores=len(os.sched_getaffinity(0)), system=platform.platform())


def versions() -> dict[str, str]:
    from importlib import metadata

    found = {}
    for package in ("torch", "onnxruntime", "openvino", "onnx", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bjepa", default=str(ROOT / "build" / "release" / "bjepa"),
                        metavar="PATH", help="binary to time; 'none' times the peers alone")
    parser.add_argument("--threads", type=int, default=2, help="threads of everybody (default 2)")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="A,B,...",
                        help=f"which peers to time (default: {', '.join(PEERS)})")
    parser.add_argument("--batches", default="256,64,32", metavar="A,B",
                        help="scenes of training steps (default: 256,64,32)")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds (default 5)")
    parser.add_argument("--quick", action="store_true", help="two rounds of few runs")
    parser.add_argument("--no-contended", action="store_true",
                        help="leave out the part with a busy core")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    args = parser.parse_args()
    args.peers = tuple(args.peers.split(","))
    args.batches = tuple(f"train{size}" for size in args.batches.split(","))
    if not set(args.batches) <= set(TRAININGS):
        parser.error(f"--batches: expected some of {', '.join(TRAININGS)} without 'train'")
    unknown = set(args.peers) - set(PEERS)
    if unknown:
        parser.error(f"unknown peer {', '.join(sorted(unknown))}; known: {', '.join(PEERS)}")
    if args.bjepa != "none" and not os.access(args.bjepa, os.X_OK):
        parser.error(f"{args.bjepa} is not an executable; --bjepa none times the peers alone")
    return args


def main() -> int:
    args = parse()
    binary = None if args.bjepa == "none" else args.bjepa
    rounds = 2 if args.quick else args.rounds
    runs = dict.fromkeys(TRAININGS, 1 if args.quick else 3)
    runs |= {INFER64: 5, INFER1: 50} if args.quick else {INFER64: 20, INFER1: 200}
    inner = 3 if args.quick else 5
    facts = dict(machine=machine(), versions=versions(), threads=args.threads, rounds=rounds)
    print(f"{facts['machine']['cpu']}, {facts['machine']['cores']} cores, {args.threads} threads; "
          + ", ".join(f"{name} {version}" for name, version in facts["versions"].items()))

    peers: dict[str, Peer] = {}
    scratch = tempfile.TemporaryDirectory()
    limits = build_limits(scratch.name)
    reached: list[dict] = []
    reports: list[dict] = []
    wrong: list[str] = []
    try:
        for name in args.peers:
            try:
                peers[name] = Peer.start(name, args.threads, args.batches)
            except RuntimeError as error:
                print(f"{name}: skipped, {error}", file=sys.stderr)
        differences = agreement(peers) if peers else {}
        bound = {name: AGREEMENT16 if name in LOW else AGREEMENT for name in differences}
        wrong = [name for name, gap in differences.items() if not gap <= bound[name]]
        for name in wrong:
            print(f"{name} predicts something else: {differences[name]:g} apart, expected at most "
                  f"{bound[name]:g}; not timed", file=sys.stderr)
            peers.pop(name).stop()
        for number in range(rounds):
            for peer in peers.values():
                for work in peer.works:
                    time.sleep(SETTLE)
                    peer.time(work, runs[work])
            if binary:
                time.sleep(SETTLE)
                reports.append(run_bjepa(binary, args.threads, inner, batches=args.batches))
            if limits:
                reached.append(run_json([limits, str(args.threads)]))
            print(f"round {number + 1} of {rounds} done", file=sys.stderr)
        for peer in peers.values():
            peer.peak_rss_mib = peer.ask("rss")
        bjepa = median_of(reports) if reports else None
        print_times(peers, bjepa)
        facts.update(ms={name: {work: peer.median(work) for work in peer.works}
                         for name, peer in peers.items()},
                     ms_of_rounds={name: peer.rounds for name, peer in peers.items()},
                     peak_rss_mib={name: peer.peak_rss_mib for name, peer in peers.items()},
                     largest_difference=differences, bjepa=bjepa)
        if bjepa:
            facts["ratios"] = ratios_of(peers, bjepa)
            print()
            for row in facts["ratios"]:
                print(f"{row['what']:<34}{row['ratio']:>7.2f} x  {row['against']}"
                      f" (best of {row['among']})")
            for key, value in bjepa.items():
                if key.startswith("mixed_speedup"):
                    print(f"mixed over single precision, {key[len('mixed_speedup'):]} scenes: "
                          f"{value:.2f} x")
        if reached:
            facts["limits"] = median_of([{k: v or 0 for k, v in r.items()} for r in reached])
            print(f"limits: {facts['limits']['fma_gflops']:.0f} GFLOP/s in float32, "
                  f"{facts['limits']['bf16_gflops']:.0f} in bf16")
        if bjepa:
            for key, value in bjepa.items():
                if "err" in key:
                    print(f"{key}: {value}")
        if not args.no_contended:
            busy = contended(binary, peers.get(EAGER), args.threads, inner)
            quiet = {name: peer.median(TRAIN) for name, peer in peers.items()}
            quiet["bjepa"] = bjepa[TRAIN + "_ms"] if bjepa else None
            facts["contended"] = {name: dict(entry, kept=quiet[name] / entry["ms"])
                                  for name, entry in busy.items()}
            print("\none core kept busy by another process:")
            for name, entry in facts["contended"].items():
                bound = ("at least ", "at most ") if entry.get("at_least") else ("", "")
                print(f"{name:<18}{bound[0]}{entry['ms']:.1f} ms a step, "
                      f"{bound[1]}{100 * entry['kept']:.0f} % of the quiet throughput")
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        for peer in peers.values():
            peer.stop()
        scratch.cleanup()
    if args.json:
        args.json.write_text(json.dumps(facts, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
