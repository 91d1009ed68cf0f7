#!/usr/bin/env python3
"""record.py NAME…: replays tests/captures/NAME.txt on a fresh cell of real.sh and writes the answers into the file.

Commands, preparations (`%`) and marks (`@`, `~`) stay; `=`, `>` and `!` are replaced. `& COMMAND` is run here only, where the real
thing needs something that ours does not, such as a scheduler that runs at once. A preparation that fails is told. Where a line says
`& simulated` the cell has simulated hosts.
"""
import os, pathlib, re, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
REAL = str(HERE / "real.sh")
WORK = os.environ.setdefault("WORK", "/var/tmp/work")  # where root works in the cell


def run(user, command):
    home = f"/home/{user}" if user else WORK
    env = ["env", "-i", "-C", home, f"HOME={home}", f"USER={user or 'root'}", f"LOGNAME={user or 'root'}", "SHELL=/bin/bash", "TZ=UTC",
           "SGE_ROOT=/var/lib/gridengine", "SGE_CELL=default", "PATH=/usr/lib/gridengine:/usr/bin:/bin"]
    become = ["runuser", "-u", user, "--"] if user else []
    whole = [REAL, "run", *become, *env, "bash", "-c", command]
    done = subprocess.run(whole, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=120)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def record(name):
    path = HERE.parent / f"{name}.txt"
    lines, out, user, pending = path.read_text().splitlines(), [], None, []
    simulated = ["simulated"] if "& simulated" in lines else []
    subprocess.run([REAL, "fresh", *simulated], check=True, capture_output=True)

    def flush():
        if pending:
            code, told, also = run(user, pending.pop())
            out.extend([f"= {code}", *(f"> {line}" for line in told), *(f"! {line}" for line in also)])

    for line in lines:
        kind, rest = line[:1], line[1:].strip()
        if kind in "=>!" and line:
            continue
        if kind not in "@~" or not line:
            flush()
        out.append(line)
        if kind == "#":
            user = (rest.split() + [None])[1]
        elif kind == "$":
            pending.append(rest)
        elif line and kind in "%&" and rest != "simulated":
            who = re.match(r"(u\d): (.*)", rest)
            code, told, also = run(*(who.groups() if who else (None, rest)))
            if code:
                print(f"{name}: {rest}: {code} {told} {also}", file=sys.stderr)
    flush()
    path.write_text("\n".join(out) + "\n")


for name in sys.argv[1:]:
    record(name)
