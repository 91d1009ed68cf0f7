#!/usr/bin/env python3
"""compare.py PROGRAMS FROM TO: random scenarios of these seeds on a real Grid Engine 8.1.9 and on ours, side by side.

A scenario sets up queues, environments, consumables, quotas and the scheduler, submits jobs while the queues are disabled, enables them, and
looks who runs where, and which queues are suspended; then some jobs are deleted, others submitted, and it looks again. Queue instances have
sequence numbers of their own, or hosts loads of their own, because 8.1.9 takes hosts that are equal in an order of its own. What differs by
design is not drawn (master/COMPATIBILITY.md "Choosing queue instances"): a master among several queues of a host is not looked at, environments are named or are
alike, no environment has `job_is_first_task FALSE`, ours has `LOAD_PER_SLOT=FALSE`, ranges of slots are not drawn with loads. These are:
under a quota that a larger job in front has failed, 8.1.9 lets others wait as well, though it leaves enough for them; what jobs add to a
load counts in 8.1.9 only from when they run; a load value is less in ours by what was booked since its sample.

Root; before: `real.sh up; real.sh fresh simulated`; users u1 u2 u3 here too. PROGRAMS is the folder of our release programs; a cell is
brought up in /var/tmp/compare and left there with the answers. Seconds a scenario; exit status 1 if any differs.
"""
import os
import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CELL = Path("/var/tmp/compare")
HOSTS = ["sim0001", "sim0002", "sim0003", "sim0004"]
RULES = {"make": "$round_robin", "mpi": "$fill_up", "mpi2": "$fill_up", "smp": "$pe_slots", "fx1": "1", "fx2": "2"}
LINES = ["lic lic INT <= YES YES 0 0", "gm gm MEMORY <= YES YES 0 0", "tk tk INT <= YES JOB 0 0", "ft ft CSTRING == YES NO NONE 0",
         "ex ex BOOL EXCL YES YES 0 0", "w1 w1 DOUBLE >= YES NO 0 0", "w2 w2 DOUBLE <= YES NO 0 0", "w3 w3 MEMORY <= YES NO 0 0",
         "load_report_host load_report_host STRING == YES NO NONE 0"]
# What all hosts report; they differ by `load_scaling`.
LOADS = {"w1": "2.0", "w2": "10", "w3": "8G"}

# Runs in both cells: `as USER COMMAND`, and what waits for something that can be seen.
PRELUDE = r"""
export SGE_SINGLE_LINE=1 TZ=UTC; mkdir -p $WORK; cd $WORK; RUNLOG=$SGE_ROOT/$SGE_CELL/common/schedd_runlog
as() { U=$1; shift; runuser -u $U -- env HOME=/home/$U USER=$U LOGNAME=$U SHELL=/bin/bash PATH=$PATH bash -c 'cd /tmp; exec "$@"' x "$@" </dev/null; }
quiet() { "$@" >/dev/null 2>&1 </dev/null; }
wait_until() { for i in $(seq 200); do eval "$1" && return; sleep 0.05; done; echo "waited in vain: $1"; }
change() { F=$1 N=$2; shift 2; qconf -s$F $N </dev/null | sed "$@" > changed; quiet qconf -M$F changed; }
settle() { touch $RUNLOG; chown $OWNER $RUNLOG; : > $RUNLOG; quiet qconf -tsm; wait_until 'test -s $RUNLOG'; }
reset() { quiet qmod -d '*'; quiet qdel -f -u '*'; wait_until "test -z \"\$(qstat -u '*' 2>/dev/null)\""; wait_until "! qstat -f | grep -q '[0-9] *S$'"; for s in $(qconf -srqsl 2>/dev/null); do quiet qconf -drqs $s; done; }
ids() { for n in "$@"; do qstat -u '*' | awk -v n=$n '$3 == n { print $1 }'; done | sort -u; }
remove() { quiet qmod -d '*'; quiet qdel -f $(ids "$@"); wait_until "! qstat -u '*' | grep -q ' d[rt]'"; }
show() {
  quiet qmod -e '*'; settle; settle; settle; wait_until "! qstat -s r -u '*' | grep -q ' [A-Z]*t  '"; echo "== who runs where"
  qstat -f | awk '$1 ~ /@sim/ { gsub("a", "", $6); print $1, $3, $6 }'; qstat -g t -u '*' | awk 'NR > 2 { if ($1 ~ /@/) { print name, state, $1, task; next }
    name = $3; state = $5; task = $10; if ($8 ~ /@/) print $3, $5, $8, $10; else print $3, $5, $8, $9 }' | sort | uniq -c
}
"""


# The real cell reports for its simulated hosts what its one host reports.
REPORTING = r"""
loads() {
  printf '#!/bin/sh\nwhile read -r line; do [ "$line" = quit ] && exit; printf "begin\\n%send\\n"; done\n' "SENSED" > /var/tmp/sensor.sh; chmod 755 /var/tmp/sensor.sh
  qconf -sconf </dev/null | sed -e 's#^load_sensor .*#load_sensor /var/tmp/sensor.sh#' -e 's/^load_report_time .*/load_report_time 0:0:1/' > global; quiet qconf -Mconf global
  for host in HOSTS; do quiet qconf -rattr exechost complex_values load_report_host=vm $host; done
  pgrep -r S,R,D sge_execd >/dev/null || SGE_EXECD_PIDFILE=/var/run/gridengine/execd.pid quiet /usr/lib/gridengine/sge_execd
}
""".replace("SENSED", "".join(f"vm:{name}:{value}\\\\n" for name, value in LOADS.items())).replace("HOSTS", " ".join(HOSTS))


def once():
    """What every scenario needs, as a script."""
    pe = "slots 999\\nuser_lists NONE\\nxuser_lists NONE\\nstart_proc_args NONE\\nstop_proc_args NONE\\nallocation_rule %s\\n" \
         "control_slaves TRUE\\njob_is_first_task TRUE\\nurgency_slots min\\naccounting_summary FALSE\\nqsort_args NONE\\n"
    weights = {"queue_sort_method": "seqno", "job_load_adjustments": "NONE", "weight_ticket": "0.01", "weight_urgency": "0.1",
               "weight_priority": "1", "weight_waiting_time": "0"}
    script = ["qconf -sc > complex"] + [f"echo '{line}' >> complex" for line in LINES] + ["quiet qconf -Mc complex"]
    for group, hosts in ("@sim", HOSTS), ("@half", HOSTS[::2]):
        script.append(f"printf 'group_name {group}\\nhostlist {' '.join(hosts)}\\n' > group; quiet qconf -Ahgrp group")
    for name, rule in RULES.items():
        script.append(f"printf 'pe_name {name}\\n{pe % rule}' > pe; quiet qconf -Ap pe")
    script.append("quiet qconf -au u1 team; quiet qconf -au u2 team; quiet qconf -au u3 bad; quiet qconf -rattr queue hostlist @sim all.q")
    script.append("qconf -sq all.q | sed 's/^qname .*/qname b.q/' > queue; quiet qconf -Aq queue")
    script.append("change sconf '' " + substitutions(weights))
    script.append("loads; wait_until 'qhost -F w1 -h sim0004 | grep -q w1='")
    return "\n".join(script)


def substitutions(fields):
    return " ".join(f"-e 's/^{name} .*/{name} {value}/'" for name, value in fields.items())


class Scenario:
    """One random scenario; `text` is its script."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        parts = ["load", "subordinate", "master", "slots", "queue values", "time", "access", "alone", "soft", "priority", "reserve", "quota",
                 "host values", "global values", "per user"]
        self.parts = {part for part in parts if self.chance(0.5)}
        self.jobs = 0
        lines = ["reset"] + self.hosts() + self.queues() + self.scheduler()
        if "quota" in self.parts:
            lines.append(self.quotas())
        for submitted in self.pick([5, 8, 12, 16]), 2, 2:
            if self.jobs:
                names = self.random.sample(range(1, self.jobs + 1), max(1, self.jobs // 4))
                lines.append("remove " + " ".join(f"j{name}" for name in names))
            lines += [self.job() for _ in range(submitted)] + ["show"]
        self.text = "\n".join(lines)

    def chance(self, share):
        return self.random.random() < share

    def pick(self, of):
        return self.random.choice(of)

    def some(self, part, offers):
        """Values of consumables, each with its chance."""
        return [self.pick(values) for share, values in offers if part in self.parts and self.chance(share)]

    def hosts(self):
        lines = []
        for host in HOSTS:
            values = self.some("host values", [(0.5, ["lic=0", "lic=1", "lic=2", "lic=5"]), (0.5, ["gm=2G", "gm=4G", "gm=8G"]),
                                               (0.3, ["tk=1", "tk=2", "tk=4"]), (0.5, ["ft=a", "ft=b"]), (0.2, ["slots=1", "slots=3"])])
            values += self.some("alone", [(0.7, ["ex=TRUE"])])
            lines.append(f"quiet qconf -rattr exechost complex_values '{','.join(['load_report_host=vm', *values])}' {host}")
            factors = [f"{name}={self.random.randrange(100, 1000) / 500}" for name in LOADS if "load" in self.parts]
            lines.append(f"quiet qconf -rattr exechost load_scaling '{','.join(factors) or 'NONE'}' {host}")
        values = self.some("global values", [(0.7, ["lic=1", "lic=2", "lic=6"]), (0.3, ["gm=6G", "gm=12G"]), (0.3, ["tk=2", "tk=5"])])
        return lines + [f"quiet qconf -rattr exechost complex_values '{','.join(values) or 'NONE'}' global"]

    def queues(self):
        """Hosts have an order of their own, and both queues of a host come one after the other."""
        order, first = self.random.sample([1, 3, 5, 7], 4), self.pick([0, 1])
        lines, is_flat = [], self.chance(0.5)
        for place, queue in enumerate(["all.q", "b.q"]):
            numbers = ",".join(f"[{host}={number + (place ^ first)}]" for host, number in zip(HOSTS, order))
            environments = " ".join(name for name in RULES if self.chance(0.8)) or "NONE"
            fields = {"seq_no": f"0,{numbers}", "pe_list": environments, "slots": "4", "complex_values": "NONE", "h_rt": "INFINITY",
                      "user_lists": "NONE", "xuser_lists": "NONE"}
            if "slots" in self.parts:
                fields["slots"] = self.by_host(["1", "2", "3", "4"], ["0", "1", "2", "4", "6"])
            if "queue values" in self.parts:
                fields["complex_values"] = self.by_host(["NONE", "lic=2", "gm=6G"], ["lic=1", "lic=3", "gm=4G,lic=2", "ft=b", "tk=2"])
            if "time" in self.parts:
                fields["h_rt"] = self.by_host(["INFINITY"], ["0:10:0", "1:0:0"])
            if "access" in self.parts:
                fields |= {"user_lists": self.pick(["NONE", "NONE", "team"]), "xuser_lists": self.pick(["NONE", "NONE", "bad"])}
            fields["subordinate_list"] = "NONE"
            if "subordinate" in self.parts and queue == "all.q":
                fields["subordinate_list"] = self.by_host(["b.q", "b.q=1", "b.q=2", "b.q=3"], ["NONE", "b.q=1", "b.q=3", "b.q=4"])
            fields["load_thresholds"] = "NONE"
            if "load" in self.parts:
                if is_flat:
                    fields["seq_no"] = str(place ^ first)
                fields["load_thresholds"] = self.by_host(["NONE", "w1=3.1", "w2=4"], ["NONE", "w1=2.3", "w1=3.3,w2=3", "w3=5G", "w2=6"])
            lines.append(f"change q {queue} {substitutions(fields)}")
        return lines + [f"change p {name} {substitutions({'slots': self.pick([999, 999, 4, 7])})}" for name in RULES]

    def by_host(self, usual, others):
        return ",".join([self.pick(usual)] + [f"[{host}={self.pick(others)}]" for host in HOSTS if self.chance(0.4)])

    def scheduler(self):
        fields = {"maxujobs": self.pick([0, 2, 4]) if "per user" in self.parts else 0,
                  "max_reservation": 20 if "reserve" in self.parts else 0, "default_duration": self.pick(["INFINITY", "0:20:0", "1:0:0"])}
        fields |= {"queue_sort_method": "seqno", "job_load_adjustments": "NONE", "load_formula": "np_load_avg",
                   "load_adjustment_decay_time": "1000:0:0"}
        if "load" in self.parts:
            formula = self.pick(["w1", "-w1", "w1+w2", "w1-w2*0.3", "w3", "-w3", "w1*2+w2*0.01"])
            fields |= {"queue_sort_method": self.pick(["load", "load", "seqno"]), "load_formula": formula,
                       "job_load_adjustments": self.pick(["NONE", "w1=0.37", "w1=1.13", "w1=0.71,w2=0.9"])}
        return ["change sconf '' " + substitutions(fields)]

    def quotas(self):
        scopes = [(0.5, "users", ["{*}", "*", "u1", "{u1,u2}", "*,!u3"]), (0.4, "queues", ["all.q", "{*}", "b.q"]),
                  (0.4, "hosts", ["{*}", "@half", "{@half}", "sim0003", "!@half"])]
        rules = []
        for _ in range(self.pick([1, 1, 2, 3])):
            scope = [f"{kind} {self.pick(names)}" for share, kind, names in scopes if self.chance(share)]
            rules.append(" ".join(["limit", *scope, "to", self.pick(["slots=2", "slots=4", "lic=2", "slots=4,lic=1"])]))
        text = "\\n".join(["{", "name r", "description NONE", "enabled TRUE", *rules, "}", ""])
        return f"printf '{text}' > quota; quiet qconf -Arqs quota"

    def job(self):
        self.jobs += 1
        wishes = [(0.35, ["lic=1", "lic=2", "lic=3"]), (0.3, ["gm=1G", "gm=2G", "gm=5G"]), (0.12, ["tk=1", "tk=2"]),
                  (0.12, ["ft=a", "ft=!a", "ft=a|b", "ft=*"]), (0.1, ["h=sim000[13]", "h=!sim0001"]), (0.1, ["q=b.q", "q=all.q"]),
                  (0.1 if "load" in self.parts else 0, ["w1=3", "w2=8", "w3=6G", "w1=2.5,w2=5"])]
        hard = [self.pick(values) for share, values in wishes if self.chance(share)]
        hard += self.some("alone", [(0.1, ["ex=TRUE"])]) + self.some("time", [(0.6, ["h_rt=300", "h_rt=1800", "h_rt=7200"])])
        words = ["-l", ",".join(hard)] if hard else []
        if self.chance(0.12):
            words += ["-q", self.pick(["all.q", "b.q", "*@sim000[12]", "all.q@sim0003,b.q", "*@@half"])]
        is_parallel = self.chance(0.5)
        if is_parallel:
            # A range gets more than the room that 8.1.9 itself leaves below a threshold.
            sizes = ["1", "2", "3", "4", "6", "8"] + ([] if "load" in self.parts else ["2-6", "1-", "-3", "4-12", "2,4,8", "1,5"])
            words += ["-pe", self.pick([*RULES, "mpi*"]), self.pick(sizes)]
        if is_parallel and "master" in self.parts and self.chance(0.5):
            words += ["-masterq", self.pick(["all.q", "b.q", "*@sim000[12]", "all.q@sim0003,b.q", "*@@half"])]
        if "soft" in self.parts and self.chance(0.25):
            wish = self.pick([["-l", "h=sim0003"], ["-l", "h=sim000[24]"], ["-q", "b.q"], ["-q", "*@sim0002"]])
            words += ["-soft", *wish, "-hard"]
        if self.chance(0.08 if is_parallel else 0.25):
            words += ["-t", self.pick(["1-3", "1-5", "2-8:3", "1-12"])] + self.pick([[], ["-tc", "2"]])
        if "priority" in self.parts and self.chance(0.3):
            words += ["-p", self.pick(["-10", "-100", "-1000"])]
        if "reserve" in self.parts and self.chance(0.4):
            words += ["-R", "y"]
        if self.jobs > 1 and self.chance(0.05):
            words += ["-hold_jid", f"j{self.random.randrange(1, self.jobs)}"]
        quoted = " ".join(f"'{word}'" for word in words)
        return f"quiet as {self.pick(['u1', 'u2', 'u3'])} qsub -N j{self.jobs} -b y {quoted} sleep 100000"


def run(command, environment, script):
    """A script that runs in one of the cells."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    process.stdin.write(f"{environment}\n{PRELUDE}\n{script}\n")
    process.stdin.close()
    return process


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    programs, first, last = Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3])
    up = [programs / "gridwright", "up", "--dir", CELL, "--slots", "4", "--sim-hosts", "4", "--sim-load", CELL.with_suffix(".load")]
    CELL.with_suffix(".load").write_text((HERE.parent / "22sched.load").read_text() + "".join(f"{n}={v}\n" for n, v in LOADS.items()))
    subprocess.run([*up, "--detach"], check=True, stdout=subprocess.DEVNULL)
    owner = os.stat(CELL / "default/common/accounting").st_uid if (CELL / "default/common/accounting").exists() else 0
    real = ([HERE / "real.sh", "run", "bash"], "export SGE_ROOT=/var/lib/gridengine SGE_CELL=default SGE_ARCH=lx-amd64 WORK=/var/tmp/work "
            "OWNER=sgeadmin PATH=/usr/lib/gridengine:/usr/bin:/bin:/usr/sbin:/sbin\n" + REPORTING)
    ours = (["bash"], f'eval "$({programs}/gridwright env --dir {CELL})"; export WORK={CELL}/work OWNER={owner}\n'
            'loads() { change sconf "" -e "s/^params .*/params LOAD_PER_SLOT=FALSE/"; }')
    differ = 0
    for seed in [None, *range(first, last + 1)]:
        script = once() if seed is None else Scenario(seed).text
        processes = [run(*cell, script) for cell in (real, ours)]
        answers = [process.stdout.read() for process in processes]
        if seed is None:
            continue
        for name, answer in zip(["real", "ours"], answers):
            (CELL / f"{seed}.{name}").write_text(answer)
        (CELL / f"{seed}.sh").write_text(script)
        differ += answers[0] != answers[1]
        print(f"{seed}: {'the same' if answers[0] == answers[1] else 'DIFFERS'}, {answers[1].count('@')} slots given", flush=True)
    print(f"{differ} of {last - first + 1} differ; diff {CELL}/SEED.real {CELL}/SEED.ours")
    sys.exit(differ > 0)


main()
