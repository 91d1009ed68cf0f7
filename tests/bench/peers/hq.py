#!/usr/bin/env python3
"""CPU of HyperQueue's server a task, with one worker. Server and worker are threads of this process: what each thread used is
printed, in microseconds a task. The progress bar goes to stderr.

python3 -m venv /tmp/hq && /tmp/hq/bin/pip install hyperqueue==0.27.0 && /tmp/hq/bin/python tests/bench/peers/hq.py [TASKS [CORES]]
"""
import os
import sys
import time

from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig

TASKS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
CORES = int(sys.argv[2]) if len(sys.argv) > 2 else 10


def used():
    """Nanoseconds of CPU by thread."""
    found = {}
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as stat:
            nanos = int(stat.read().split()[0])
        with open(f"/proc/self/task/{thread}/comm", encoding="ascii") as comm:
            found[thread] = (comm.read().strip(), nanos)
    return found


with LocalCluster() as cluster:
    before_worker = set(os.listdir("/proc/self/task"))
    cluster.start_worker(WorkerConfig(cores=CORES))
    client = cluster.client()
    job = Job(max_fails=0)
    for _ in range(TASKS):
        job.program(["/bin/true"], stdout=None, stderr=None)
    time.sleep(1)
    before = used()
    begin = time.time()
    submitted = client.submit(job)
    client.wait_for_jobs([submitted])
    took = time.time() - begin
    print(f"HyperQueue, 1 worker of {CORES} cores: {TASKS} tasks, {TASKS / took:.0f} tasks/s, load {os.getloadavg()[0]:.2f}")
    for thread, (_, nanos) in sorted(used().items(), key=lambda item: -item[1][1]):
        spent = nanos - before.get(thread, ("", 0))[1]
        if spent > TASKS * 500:
            whose = "the server's" if thread in before_worker else "the worker's, programs excluded"
            whose = "this client's" if int(thread) == os.getpid() else whose
            print(f"  {whose}: {spent / TASKS / 1e3:.1f} us a task")
