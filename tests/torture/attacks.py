"""Attacks on running commands: signals, failing calls, failing allocations, a full disk."""
import os
import random
import signal
import subprocess
import time

from commands import hidden, run

READS, CHANGES = "open,read,stat,map,close", "write,sync,rename,mkdir,unlink,truncate,lock"


class Tally:
    """One row of the table: how many attempts, how many survived, and why the others did not."""

    def __init__(self, name, seconds):
        self.name, self.tried, self.survived, self.failures = name, 0, 0, []
        self.end = time.time() + seconds

    def add(self, problem, context):
        self.tried += 1
        if problem:
            self.failures.append(f"{context}: {problem}")
        else:
            self.survived += 1

    def time_left(self):
        return time.time() < self.end


class Reference:
    """The results of an undisturbed run of a command."""

    def __init__(self, lab, command):
        folder = lab.fresh(command, "reference")
        start = time.time()
        code, self.out, err = run([lab.bjepa] + command.arguments, folder)
        if code != 0:
            raise SystemExit(f"torture: {command.name}: exit code {code}\n{err}")
        self.seconds, self.digest = time.time() - start, command.digest(folder)


def wrong(command, folder, reference):
    """Names a published file that differs from the reference, unless the output is a run folder."""
    if command.after:
        return None  # checkpoints of an unfinished run differ from the last ones
    for path, digest in command.digest(folder).items():
        if digest != "missing" and reference.digest.get(path) != digest:
            return f"{path} is not the expected file"
    return None


def recovers(lab, command, folder, reference):
    finished, text = lab.finish(command, folder)
    if not finished:
        return f"the next run did not finish: {text}"
    if command.digest(folder) != reference.digest:
        return "the next run produced other files"
    left = hidden(folder)
    return f"left behind: {left[:2]}" if left else None


def signals(lab, tally, number, rng, share):
    """Sends a signal at a random moment, up to five times, and then lets the command finish."""
    commands = lab.commands[:]
    references = {c.name: Reference(lab, c) for c in commands}
    while tally.time_left() and tally.tried < share:
        command = rng.choice(commands)
        reference, folder = references[command.name], lab.fresh(command)
        for _ in range(rng.randint(1, 5)):
            exists = command.after and os.path.exists(os.path.join(folder, command.after))
            process = subprocess.Popen([lab.bjepa] + (command.again if exists else command.arguments),
                                       cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(rng.uniform(0.001, 1.05 * reference.seconds))
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, number)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                tally.add("did not end within 60 s", command.name)
                break
            problem = wrong(command, folder, reference)
            if number == signal.SIGTERM and not command.after and not problem:
                left = [p for p in hidden(folder) if not p.endswith(".partial")]
                problem = f"left behind: {left[:2]}" if left else None
            tally.add(problem, command.name)
        problem = recovers(lab, command, folder, reference)
        if problem:
            tally.survived -= 1
            tally.failures.append(f"{command.name}: {problem}")


def count_calls(lab, command, ops, shim):
    folder = lab.fresh(command, "count")
    counter = os.path.join(lab.folder, "calls")
    run([lab.bjepa] + command.arguments, folder,
        {"LD_PRELOAD": shim, "FAULT_OPS": ops, "FAULT_COUNT": counter})
    with open(counter) as file:
        return int(file.read())


def calls(lab, tally, action, ops, shim, rng, per_command):
    """Disturbs the n-th call, for random n in every command, in random order."""
    references, points = {}, []
    for command in lab.commands:
        references[command.name] = Reference(lab, command)
        count = count_calls(lab, command, ops, shim)
        points += [(command, n) for n in rng.sample(range(1, count + 1), min(count, per_command))]
    rng.shuffle(points)  # so that a time limit does not leave out commands
    for command, n in points:
        if not tally.time_left():
            return
        reference, folder = references[command.name], lab.fresh(command)
        code, out, err = run([lab.bjepa] + command.arguments, folder,
                             {"LD_PRELOAD": shim, "FAULT_OPS": ops, "FAULT_N": str(n),
                              "FAULT_ACTION": action})
        context = f"{command.name}, {action} at call {n} of {ops}"
        if code == "hang" or (isinstance(code, int) and code < 0 and action != "KILL"):
            problem = f"ended with {code}"
        elif code == 0 and command.digest(folder) != reference.digest:
            problem = "exit code 0 with other files"
        elif code not in (0, 5, -signal.SIGKILL) and command.name != "campaign":
            problem = f"exit code {code}, expected 5: {err[-200:]}"
        elif code != 0:
            problem = wrong(command, folder, reference) or recovers(lab, command, folder, reference)
        else:
            problem = None
        tally.add(problem, context)


def full_disk(lab, tally, rng, per_command):
    """Limits a tmpfs to a part of what the command needs, then makes room. Needs root."""
    mount = os.path.join(lab.folder, "disk")
    os.makedirs(mount, exist_ok=True)
    if run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", mount], "/")[0] != 0:
        return False
    try:
        usual, lab.folder = lab.folder, mount
        for command in lab.commands:
            reference = Reference(lab, command)
            state = os.statvfs(mount)
            need = (state.f_blocks - state.f_bfree) * state.f_bsize
            for _ in range(per_command):
                if not tally.time_left():
                    return True
                folder = lab.fresh(command)
                state = os.statvfs(mount)
                used = (state.f_blocks - state.f_bfree) * state.f_bsize
                room = used + int(rng.uniform(0, need)) // 4096 * 4096 + 4096
                run(["mount", "-o", f"remount,size={room}", mount], "/")
                code, _, err = run([lab.bjepa] + command.arguments, folder)
                run(["mount", "-o", "remount,size=300m", mount], "/")
                if code == 0:
                    problem = None if command.digest(folder) == reference.digest else "other files"
                elif code != 5 and command.name != "campaign":
                    problem = f"exit code {code}, expected 5: {err[-200:]}"
                else:
                    problem = wrong(command, folder, reference) or \
                        recovers(lab, command, folder, reference)
                tally.add(problem, command.name)
        return True
    finally:
        lab.folder = usual
        run(["umount", mount], "/")
