#!/bin/bash
# cell.sh fresh [simulated]: empties the real cell of real.sh and sets it up as `gridwright up --slots 2` does ours, `simulated` with four
# simulated hosts and a scheduler that runs every second. Runs inside of it, $WORK set.
set -u; cd /
export SGE_ROOT=/var/lib/gridengine SGE_CELL=default PATH=/usr/lib/gridengine:/usr/bin:/bin:/usr/sbin:/sbin SGE_SINGLE_LINE=1
S=/var/spool/gridengine
of() { ps -eo pid,args | awk -v n="/usr/lib/gridengine/$1" '$2==n{print $1}'; }
for daemon in sge_execd sge_qmaster; do
  for pid in $(of $daemon); do
    kill "$pid"; for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done; kill -9 "$pid" 2>/dev/null
  done
done
rm -rf $S/qmaster/* $S/spooldb/* $S/execd/* $SGE_ROOT/default/common/{accounting,reporting,sched_configuration,local_conf}
mkdir -p $S/{qmaster/job_scripts,spooldb,execd} /var/run/gridengine; chown -R sgeadmin:sgeadmin $S /var/run/gridengine
echo vm > $SGE_ROOT/default/common/act_qmaster
su -s /bin/sh -c "/usr/share/gridengine/scripts/init_cluster $SGE_ROOT default $S/spooldb sgeadmin" sgeadmin >/dev/null
/usr/lib/gridengine/sge_qmaster </dev/null >/dev/null 2>&1
for _ in $(seq 100); do qconf -sh >/dev/null 2>&1 && break; sleep 0.1; done
qconf -as vm >/dev/null
[ "${2:-}" = simulated ] || { SGE_EXECD_PIDFILE=/var/run/gridengine/execd.pid /usr/lib/gridengine/sge_execd </dev/null >/dev/null 2>&1; }
for _ in $(seq 100); do qconf -sel 2>/dev/null | grep -qx vm && break; sleep 0.1; done
T=$(mktemp -d)
printf 'group_name @allhosts\nhostlist vm\n' > $T/hg; qconf -Ahgrp $T/hg
for pe in make:'$round_robin' mpi:'$fill_up' smp:'$pe_slots'; do
  printf 'pe_name %s\nslots 999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\nstop_proc_args NONE\nallocation_rule %s\ncontrol_slaves TRUE\njob_is_first_task TRUE\nurgency_slots min\naccounting_summary FALSE\nqsort_args NONE\n' "${pe%%:*}" "${pe#*:}" > $T/pe
  qconf -Ap $T/pe
done
qconf -sq > $T/q
sed -i -e 's/^qname .*/qname all.q/' -e 's/^hostlist .*/hostlist @allhosts/' -e 's/^pe_list .*/pe_list make mpi smp/' \
  -e 's/^slots .*/slots 2/' -e 's/^shell .*/shell \/bin\/sh/' -e 's/^load_thresholds .*/load_thresholds NONE/' $T/q
qconf -Aq $T/q
rm -rf $T "$WORK" /tmp/[0-9]*; mkdir -p "$WORK"
[ "${2:-}" = simulated ] || exit 0
# SIMULATE_EXECDS is only taken at the start of the master.
mkdir -p $T; qconf -sconf | sed 's/^qmaster_params.*/qmaster_params SIMULATE_EXECDS=true/' > $T/global; qconf -Mconf $T/global
for pid in $(of sge_qmaster); do
  kill "$pid"; for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
done
/usr/lib/gridengine/sge_qmaster </dev/null >/dev/null 2>&1
for _ in $(seq 100); do qconf -sh >/dev/null 2>&1 && break; sleep 0.1; done
for i in 1 2 3 4; do
  grep -q sim000$i /etc/hosts || echo "10.77.0.$i sim000$i" >> /etc/hosts
  printf 'hostname sim000%s\nload_scaling NONE\ncomplex_values NONE\nuser_lists NONE\nxuser_lists NONE\nprojects NONE\nxprojects NONE\nusage_scaling NONE\nreport_variables NONE\n' $i > $T/h
  qconf -Ae $T/h
done
qconf -ssconf | sed 's/^schedule_interval.*/schedule_interval 0:0:1/; s/^flush_submit_sec.*/flush_submit_sec 1/; s/^flush_finish_sec.*/flush_finish_sec 1/' > $T/s
qconf -Msconf $T/s; rm -rf $T
