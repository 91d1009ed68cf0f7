#!/bin/sh
# How many jobs Slurm's controller starts a second: nodes that are powered down and never come up, so that it decides and allocates
# and nothing else happens. Debian's package: apt-get install slurm-wlm munge. Run as root; everything is in a directory of its own.
# usage: tests/bench/peers/slurm.sh NODES CPUS JOBS
set -eu
NODES=$1 CPUS=$2 JOBS=$3 DIR=$(mktemp -d /tmp/slurm-bench.XXXXXX) HOST=$(hostname -s)
export SLURM_CONF="$DIR/slurm.conf"
chmod 755 "$DIR"
mkdir "$DIR/state" "$DIR/munge"
chown munge: "$DIR/munge"
dd if=/dev/urandom of="$DIR/munge/key" bs=1024 count=1 2>/dev/null
chown munge: "$DIR/munge/key" && chmod 400 "$DIR/munge/key"
su munge -s /bin/sh -c "munged --key-file=$DIR/munge/key --socket=$DIR/munge/socket --pid-file=$DIR/munge/pid \
    --log-file=$DIR/munge/log --seed-file=$DIR/munge/seed --force"
cat > "$SLURM_CONF" <<CONF
ClusterName=bench
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=27817
SlurmdPort=27818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$DIR/munge/socket
CredType=cred/munge
StateSaveLocation=$DIR/state
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmctldLogFile=$DIR/slurmctld.log
SlurmdSpoolDir=$DIR/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=3600,default_queue_depth=$JOBS,max_sched_time=100,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PriorityType=priority/basic
MaxJobCount=$((JOBS + 1000))
MaxArraySize=$((JOBS + 1))
ReturnToService=2
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=3600
ResumeTimeout=3600
ResumeRate=0
NodeName=n[1-$NODES] CPUS=$CPUS State=CLOUD
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
slurmctld -f "$SLURM_CONF"
trap 'kill "$(cat "$DIR/slurmctld.pid")" "$(cat "$DIR/munge/pid")"; sleep 2; rm -rf "$DIR"' EXIT
until scontrol ping > /dev/null 2>&1; do sleep 0.2; done
scontrol update PartitionName=all State=DOWN
# Separate jobs, as an array is one to Slurm only until its tasks start.
printf '#!/bin/sh\nsleep 900\n' > "$DIR/job"
seq 1 "$JOBS" | xargs -P 4 -n 1 sh -c "exec sbatch -Q -n1 -D /tmp -o /dev/null $DIR/job" > /dev/null
echo "pending: $(squeue -h -t PD | wc -l), load $(cut -d' ' -f1 /proc/loadavg)"
sdiag -r > /dev/null 2>&1 || true
PID=$(cat "$DIR/slurmctld.pid")
used() { awk '{ s += $1 } END { printf "%.3f", s / 1e9 }' /proc/"$PID"/task/*/schedstat; }
cpu=$(used) begin=$(date +%s.%N)
scontrol update PartitionName=all State=UP
WANTED=$((NODES * CPUS < JOBS ? NODES * CPUS : JOBS))
LEFT=$((JOBS - WANTED))
limit=$(($(date +%s) + ${LIMIT:-120}))
while [ "$(squeue -h -t PD | wc -l)" -gt "$LEFT" ] && [ "$(date +%s)" -lt "$limit" ]; do sleep 0.2; done
end=$(date +%s.%N)
started=$((JOBS - $(squeue -h -t PD | wc -l)))
echo "$started of $JOBS jobs given to $NODES nodes of $CPUS processors in $(echo "$end - $begin" | bc) s: $(echo "$started / ($end - $begin)" | bc) a second," \
    "$(echo "($(used) - $cpu) * 1000000 / $started" | bc) us of CPU each (squeue that looks included)"
sdiag | grep -A 12 "Main schedule statistics"
