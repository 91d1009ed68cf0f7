#!/usr/bin/env python3
"""CPU of HyperQueue's server a task, with one worker, and of Gridwright's master beside it.

Server and worker are threads of this process: what each thread used is printed, in microseconds a task. The progress bar goes to stderr.
With `--beside` the measure `tasks` of that `gridwright-bench` runs in turn with it, `--rounds` times, which of the two first by turns, and
the ratio of their medians is printed: what a machine's neighbours make of either, they make of both.

python3 -m venv /tmp/hq && /tmp/hq/bin/pip install hyperqueue==0.27.0
/tmp/hq/bin/python tests/bench/peers/hq.py [--cores N] [TASKS]
/tmp/hq/bin/python tests/bench/peers/hq.py --beside target/release/gridwright-bench [--rounds N] [TASKS]
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time


def used():
    """Nanoseconds of CPU by thread."""
    found = {}
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as stat:
            nanos = int(stat.read().split()[0])
        with open(f"/proc/self/task/{thread}/comm", encoding="ascii") as comm:
            found[thread] = (comm.read().strip(), nanos)
    return found


def measure(tasks, cores):
    """One job of `tasks` programs that do nothing, from its submission to the last end."""
    from hyperqueue import Job
    from hyperqueue.cluster import LocalCluster, WorkerConfig

    with LocalCluster() as cluster:
        before_worker = set(os.listdir("/proc/self/task"))
        cluster.start_worker(WorkerConfig(cores=cores))
        client = cluster.client()
        job = Job(max_fails=0)
        for _ in range(tasks):
            job.program(["/bin/true"], stdout=None, stderr=None)
        time.sleep(1)
        before = used()
        begin = time.time()
        submitted = client.submit(job)
        client.wait_for_jobs([submitted])
        took = time.time() - begin
        print(f"HyperQueue, 1 worker of {cores} cores: {tasks} tasks, {tasks / took:.0f} tasks/s, load {os.getloadavg()[0]:.2f}")
        for thread, (_, nanos) in sorted(used().items(), key=lambda item: -item[1][1]):
            spent = nanos - before.get(thread, ("", 0))[1]
            if spent > tasks * 500:
                whose = "the server's" if thread in before_worker else "the worker's, programs excluded"
                whose = "this client's" if int(thread) == os.getpid() else whose
                print(f"  {whose}: {spent / tasks / 1e3:.1f} us a task")


def figure(command, pattern):
    """The figure that a command prints; stops where it fails or prints none."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(pattern, ran.stdout)
    if ran.returncode != 0 or found is None:
        sys.exit(f"{' '.join(command)}: exit {ran.returncode}, no figure\n{ran.stdout}{ran.stderr}")
    return float(found.group(1))


def beside(bench, tasks, cores, rounds):
    """Both in turn, and the ratio of their medians."""
    ours, theirs = [], []
    runs = [
        (theirs, [sys.executable, __file__, "--cores", str(cores), str(tasks)], r"the server's: ([\d.]+) us"),
        (ours, [bench, "--tasks", str(tasks), "tasks"], r"master ([\d.]+),"),
    ]
    for turn in range(rounds):
        for figures, command, pattern in runs if turn % 2 == 0 else reversed(runs):
            figures.append(figure(command, pattern))
        print(f"turn {turn + 1}: HyperQueue's server {theirs[-1]:.1f}, Gridwright's master {ours[-1]:.1f} us a task, load {os.getloadavg()[0]:.2f}", flush=True)
    middle = statistics.median(ours), statistics.median(theirs)
    print(f"{tasks} tasks: medians {middle[1]:.1f} and {middle[0]:.1f} us, {middle[0] / middle[1]:.2f} of HyperQueue's; least of each {min(theirs):.1f} and {min(ours):.1f}")


def main():
    parser = argparse.ArgumentParser(description="CPU of HyperQueue's server a task, and of Gridwright's master beside it")
    parser.add_argument("--cores", type=int, default=10, help="of the worker")
    parser.add_argument("--beside", metavar="BENCH", help="a gridwright-bench, which runs in turn with it")
    parser.add_argument("--rounds", type=int, default=5, help="with --beside: how many times each")
    parser.add_argument("tasks", type=int, nargs="?", default=20_000)
    args = parser.parse_args()
    if args.tasks < 1 or args.cores < 1 or args.rounds < 1:
        parser.error("TASKS, --cores and --rounds must be at least 1")
    if args.beside is None:
        measure(args.tasks, args.cores)
    else:
        beside(args.beside, args.tasks, args.cores, args.rounds)


main()
