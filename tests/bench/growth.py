#!/usr/bin/env python3
"""How the cost of scheduling grows: runs `gridwright-bench scheduling` over a few sizes, prints a table and draws growth.svg.

usage: tests/bench/growth.py [target/release/gridwright-bench [FILE.svg]]
"""
import math
import subprocess
import sys

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "target/release/gridwright-bench"
FILE = sys.argv[2] if len(sys.argv) > 2 else "tests/bench/growth.svg"
# Hosts and pending jobs, in 1,000 categories.
OVER_HOSTS = [(1_000, 100_000), (3_000, 100_000), (10_000, 100_000)]
OVER_JOBS = [(1_000, 10_000), (1_000, 100_000), (1_000, 1_000_000)]
# In the table alone.
BESIDE = [(10_000, 1_000_000)]
# What a line of the measure begins with, and what is drawn of it: name, unit, colour.
LINES = {
    "scheduling: a job filed": ("filed", "us"),
    "scheduling: a pending job kept, all three": ("kept", "B"),
    "scheduling: a full pass, an order": ("an order", "us"),
    "scheduling: an order accepted": ("accepted", "us"),
    "scheduling: one ends, one starts": ("one ends, one starts", "us"),
}
SERIES = [("pass", "the whole pass, s", "#1f77b4"), ("filing", "all jobs filed, s", "#2ca02c"),
          ("steady", "one ends, one starts, ms", "#d62728")]


def run(hosts, jobs):
    """The figures of one size."""
    words = ["--size", str(hosts), "--pending", str(jobs), "--categories", "1000", "scheduling"]
    text = subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        for begin, (name, _) in LINES.items():
            if line.startswith(begin + " "):
                found[name] = float(line[len(begin):].split()[0])
                found["load"] = line.split(" load ")[1].split()[0]
        if " orders in " in line:
            found["orders"] = int(line.split(" orders in ")[0].split()[-1])
    return found


def drawn(jobs, found):
    """What is drawn of a size, in seconds and milliseconds."""
    return {"pass": found["orders"] * found["an order"] / 1e6, "filing": jobs * found["filed"] / 1e6,
            "steady": found["one ends, one starts"] / 1e3}


def panel(left, title, points):
    """One diagram with both axes logarithmic; `points` are pairs of a size and what is drawn there."""
    wide, high, top = 330, 300, 50
    xs = [x for x, _ in points]
    values = [value for _, at in points for value in at.values()]
    x0, x1 = math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs)))
    y0, y1 = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    x = lambda value: left + (math.log10(value) - x0) / (x1 - x0) * wide
    y = lambda value: top + high - (math.log10(value) - y0) / (y1 - y0) * high
    out = [f'<text x="{left}" y="{top - 14}" font-weight="bold">{title}</text>']
    for power in range(x0, x1 + 1):
        out.append(f'<path d="M{x(10**power):.1f} {top}v{high}" stroke="#ddd"/>')
        out.append(f'<text x="{x(10**power):.1f}" y="{top + high + 16}" text-anchor="middle">{10**power:,}</text>')
    for power in range(y0, y1 + 1):
        out.append(f'<path d="M{left} {y(10**power):.1f}h{wide}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y(10**power) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for name, label, colour in SERIES:
        line = [(x(size), y(at[name])) for size, at in points]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in line]
        # What growth in proportion would be from the first size on.
        (size, at), last = points[0], points[-1][0]
        end = at[name] * last / size
        if end <= 10**y1:
            ends = f'M{x(size):.1f} {y(at[name]):.1f}L{x(last):.1f} {y(end):.1f}'
            out.append(f'<path d="{ends}" stroke="{colour}" stroke-dasharray="3 4" fill="none"/>')
    return out


def main():
    figures = {size: run(*size) for size in dict.fromkeys(OVER_HOSTS + OVER_JOBS + BESIDE)}
    print("| hosts | pending jobs | orders | " + " | ".join(f"{n}, {u}" for n, u in LINES.values()) + " | load |")
    print("|---" * (len(LINES) + 4) + "|")
    for (hosts, jobs), found in figures.items():
        cells = [f"{found[name]:,.1f}" for name, _ in LINES.values()]
        print(f"| {hosts:,} | {jobs:,} | {found['orders']:,} | " + " | ".join(cells) + f" | {found['load']} |")
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="860" height="430" font-family="sans-serif" font-size="12">',
           '<rect width="860" height="430" fill="white"/>']
    out += panel(60, "hosts, with 100,000 pending jobs", [(h, drawn(j, figures[h, j])) for h, j in OVER_HOSTS])
    out += panel(490, "pending jobs, with 1,000 hosts", [(j, drawn(j, figures[h, j])) for h, j in OVER_JOBS])
    for place, (_, label, colour) in enumerate(SERIES):
        out.append(f'<text x="{60 + 200 * place}" y="400" fill="{colour}">{label}</text>')
    out.append('<text x="660" y="400" fill="#555">dashed: in proportion</text></svg>')
    with open(FILE, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


main()
