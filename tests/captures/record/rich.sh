#!/bin/bash
# rich.sh: fills a fresh real cell (cell.sh) with one of everything, runs jobs, saves it with 8.1.9's own save_sge_config.sh and shows
# every object. Runs inside of the cell; leaves `saved` (what was saved) and `shown` (one file for each qconf -s…) in $WORK.
set -eu
export SGE_ROOT=/var/lib/gridengine SGE_CELL=default PATH=/usr/lib/gridengine:/usr/bin:/bin:/usr/sbin:/sbin SGE_SINGLE_LINE=1 TZ=UTC
cd "$WORK"; mkdir -p in; cd in
user() { su "$1" -s /bin/bash -c "cd; export SGE_ROOT=$SGE_ROOT SGE_CELL=$SGE_CELL PATH=$PATH; $2"; }

# Attributes: a floating licence, a consumed built-in, an exclusive one, a string, one that has to be asked for.
{ qconf -sc | grep -v -e '^#' -e '^virtual_free ' -e '^h_fsize '
  echo 'lic      lic  INT    <= YES    YES 0    50'
  echo 'disk     dsk  MEMORY <= YES    JOB 1G   0'
  echo 'excl     ex   BOOL   EXCL YES  YES 0    1000'
  echo 'site     sit  CSTRING == YES   NO  NONE 0'
  echo 'special  spc  BOOL   == FORCED NO  FALSE 0'
  echo 'speed    sp   DOUBLE >= YES    NO  0    0'
  echo 'virtual_free vf MEMORY <= YES  YES 500M 0'
  echo 'h_fsize  h_fsize MEMORY <= YES YES 1G   0'; } > centry
qconf -Mc centry

# Users, groups of users, departments, projects.
qconf -au u1,@u3 team; qconf -au u2 guests; qconf -au u1 deadlineusers; qconf -au u2,u3 arusers
printf 'name physics\ntype DEPT\nfshare 200\noticket 0\nentries u1,@u3\n' > dept; qconf -Au dept
printf 'name mixed\ntype ACL DEPT\nfshare 50\noticket 10\nentries u2\n' > dept; qconf -Au dept
for i in $(seq 40); do echo "worker$i"; done | paste -sd, > many; qconf -au "$(cat many)" crowd
printf 'name apollo\noticket 0\nfshare 300\nacl team\nxacl guests\n' > p; qconf -Aprj p
printf 'name gemini\noticket 50\nfshare 100\nacl NONE\nxacl NONE\n' > p; qconf -Aprj p
printf 'name skylab\noticket 0\nfshare 0\nacl team physics\nxacl NONE\n' > p; qconf -Aprj p
printf 'name u1\noticket 7\nfshare 100\ndelete_time 0\ndefault_project gemini\n' > u; qconf -Auser u
printf 'name u2\noticket 0\nfshare 300\ndelete_time 0\ndefault_project NONE\n' > u; qconf -Auser u
printf 'id=0\nname=Root\ntype=0\nshares=1\nchildnodes=1,3,6\nid=1\nname=apollo\ntype=1\nshares=100\nchildnodes=2\nid=2\nname=default\ntype=0\nshares=10\nchildnodes=NONE\nid=3\nname=staff\ntype=0\nshares=300\nchildnodes=4,5\nid=4\nname=u1\ntype=0\nshares=1\nchildnodes=NONE\nid=5\nname=u2\ntype=0\nshares=2\nchildnodes=NONE\nid=6\nname=gemini\ntype=1\nshares=50\nchildnodes=NONE\n' > tree; qconf -Astree tree

# Hosts and groups of hosts.
host() { printf 'hostname %s\nload_scaling %s\ncomplex_values %s\nuser_lists %s\nxuser_lists %s\nprojects %s\nxprojects %s\nusage_scaling %s\nreport_variables %s\n' "$@" > h; qconf -Ae h; }
host n1 NONE 'slots=16,virtual_free=64G,excl=true,site=north' NONE NONE NONE NONE NONE NONE
host n2 'np_load_avg=2.0,mem_free=0.9' 'slots=8,virtual_free=32G,speed=2.5,site=south' team NONE 'apollo gemini' NONE 'cpu=0.8,mem=0.5' 'cpu,np_load_avg'
host n3 NONE 'slots=8,special=TRUE' NONE guests NONE skylab NONE NONE
qconf -rattr exechost complex_values slots=4,virtual_free=16G,h_fsize=100G vm
qconf -rattr exechost complex_values lic=5,disk=1T global
for g in 'old n3' 'new n1 n2' 'compute @new @old'; do set -- $g; n=$1; shift; printf 'group_name @%s\nhostlist %s\n' "$n" "$*" > g; qconf -Ahgrp g; done
qconf -ah n1; qconf -as n1,n2; qconf -am u3; qconf -ao u2

# Calendars, checkpointing, parallel environments.
printf 'calendar_name night\nyear 1.1.2030,25.12.2030-26.12.2030=on\nweek mon-fri=8-20=suspended\n' > c; qconf -Acal c
printf 'calendar_name closed\nyear NONE\nweek sat,sun=off\n' > c; qconf -Acal c
printf 'ckpt_name blcr\ninterface application-level\nckpt_command /opt/ckpt/checkpoint $job_id $job_owner\nmigr_command /opt/ckpt/migrate\nrestart_command none\nclean_command NONE\nckpt_dir /var/tmp\nsignal usr2\nwhen xsmr\n' > c; qconf -Ackpt c
printf 'ckpt_name byhand\ninterface userdefined\nckpt_command none\nmigr_command none\nrestart_command none\nclean_command none\nckpt_dir /tmp\nsignal none\nwhen sx\n' > c; qconf -Ackpt c
printf 'pe_name orte\nslots 64\nuser_lists team\nxuser_lists guests\nstart_proc_args /opt/pe/start.sh -catch_rsh $pe_hostfile\nstop_proc_args /opt/pe/stop.sh\nallocation_rule 4\ncontrol_slaves TRUE\njob_is_first_task FALSE\nurgency_slots avg\naccounting_summary TRUE\nqsort_args NONE\n' > p; qconf -Ap p

# Queues: per-host and per-group settings, lists, limits, calendars, subordinates.
queue() { n=$1; shift; qconf -sq > q; sed -i -e "s#^qname .*#qname $n#" q; for s in "$@"; do sed -i -e "s#^${s%% *} .*#$s#" q; done; qconf -Aq q; }
queue low.q 'hostlist @compute vm' 'slots 2,[@new=8],[n1=16]' 'seq_no 30,[@old=40]' 'priority 10' 'calendar night,[n3=closed]' 'load_thresholds np_load_avg=1.75,[n1=np_load_avg=2.5,mem_free=1G]' 'suspend_thresholds np_load_avg=3' 'nsuspend 2' 'suspend_interval 00:02:00' 'xuser_lists guests' 'rerun TRUE' 'ckpt_list blcr byhand' 'pe_list make,[@new=make orte smp]'
queue high.q 'hostlist @compute' 'slots 4' 'seq_no 10' 'subordinate_list low.q=2' 'user_lists NONE,[@new=team],[n3=physics]' 'projects apollo gemini' 's_rt 11:55:00' 'h_rt 12:00:00,[n1=24:00:00]' 'h_vmem 4G' 'complex_values lic=3,[n1=lic=1,speed=3]' 'owner_list u1 u2' 'shell_start_mode unix_behavior' 'prolog /bin/true' 'notify 00:01:30' 'tmpdir /scratch,[vm=/tmp]'
queue preempt.q 'hostlist n1 n2' 'slots 4' 'subordinate_list slots=4(low.q:1:sr,high.q:2:lr)' 'xprojects skylab' 'starter_method /bin/env' 'initial_state disabled' 'min_cpu_interval 00:10:00' 'qtype BATCH'
qconf -rattr queue slots 4 all.q; qconf -rattr queue load_thresholds NONE all.q

# Quotas.
printf '{\n   name         licences\n   description  "no user takes all licences"\n   enabled      TRUE\n   limit        name each users {*} to lic=2\n   limit        name guests users @guests projects !apollo to lic=1,slots=4\n}\n{\n   name         hosts\n   description  NONE\n   enabled      TRUE\n   limit        hosts {@compute} to slots=$num_proc*2\n   limit        hosts * queues low.q,high.q pes !orte to virtual_free=200G\n}\n{\n   name         off\n   description  two words\n   enabled      FALSE\n   limit        users u1,u2,@team projects * hosts {@allhosts} to slots=100\n}\n' > r; qconf -Arqs r

# Configurations.
qconf -ssconf > s
for c in 'schedule_interval 0:0:2' 'flush_submit_sec 1' 'flush_finish_sec 1' 'queue_sort_method seqno' 'load_formula np_load_avg+0.1*slots' 'weight_ticket 0.3' 'weight_urgency 0.2' 'weight_priority 1' 'weight_tickets_functional 10000' 'weight_tickets_share 50000' 'weight_user 0.4' 'weight_project 0.3' 'weight_department 0.2' 'weight_job 0.1' 'halftime 336' 'max_reservation 20' 'default_duration 8:00:00' 'share_override_tickets FALSE' 'policy_hierarchy OSF' 'maxujobs 500' 'usage_weight_list cpu=0.700000,mem=0.200000,io=0.100000' 'halflife_decay_list cpu=100:mem=100:io=100'; do sed -i -e "s#^${c%% *} .*#$c#" s; done
sed -i 's/np_load_avg+0.1\*slots/np_load_avg/' s; qconf -Msconf s
qconf -sconf > global
for c in 'max_u_jobs 2000' 'max_aj_instances 500' 'xuser_lists crowd' 'finished_jobs 50' 'max_unheard 00:03:00' 'reschedule_unknown 00:10:00' 'shell_start_mode unix_behavior' 'qmaster_params ENABLE_FORCED_QDEL=true' 'execd_params KEEP_ACTIVE=false,H_MEMORYLOCKED=infinity' 'reporting_params accounting=true reporting=true flush_time=00:00:15 joblog=true sharelog=00:10:00' 'auto_user_fshare 10' 'administrator_mail root@example.org' 'jsv_allowed_mod ac,h,i,e,o,j,M,N,p,w'; do sed -i -e "s#^${c%% *} .*#$c#" global; done
qconf -Mconf global
printf 'mailer /usr/bin/mailx\nload_sensor /opt/sensors/licence.sh\nload_report_time 00:00:20\n' > n1; qconf -Aconf n1
printf 'execd_spool_dir /var/tmp/spool\nprolog root@/opt/site/prolog.sh\n' > n2; qconf -Aconf n2

# Jobs and a reservation: accounting and numbers.
ar=$(date -d '+2 days' +%Y%m%d%H%M); user u2 "qrsub -a $ar -d 3600 -q all.q" >/dev/null
user u1 'qsub -terse -N one -P apollo -q all.q -b y true; qsub -terse -N arr -t 1-3 -q all.q -b y sleep 1; qsub -terse -N bad -q all.q -b y false' >/dev/null
user u2 'qsub -terse -N par -pe smp 2 -q all.q -b y sleep 1; qsub -terse -N waits -h -q all.q -b y sleep 1' >/dev/null
for _ in $(seq 120); do test "$(grep -c ':vm:' $SGE_ROOT/default/common/accounting 2>/dev/null)" = 6 && break; sleep 0.5; done
printf -- '-j y\n' > $SGE_ROOT/default/common/sge_request

cd "$WORK"; rm -rf saved shown
sh /usr/share/gridengine/util/upgrade_modules/save_sge_config.sh "$WORK/saved"
unset SGE_SINGLE_LINE
mkdir shown; cd shown
show() { n=$(echo "$*" | tr ' /@' '_.='); qconf "$@" > "${n#-}" 2>&1 || :; }
for o in -sc -scall -sckptl -sconfl -sconf -sel -sh -shgrpl -sm -so -spl -sprjl -sql -srqsl -srqs -ss -ssconf -sst -sstree -sul -suserl -sq; do show $o; done
show -se global; show -sstnode /; show -rsstnode /staff
for x in $(qconf -scall); do show -scal $x; done; for x in $(qconf -sckptl); do show -sckpt $x; done
for x in $(qconf -sconfl); do show -sconf $x; done; for x in $(qconf -sel); do show -se $x; done
for x in $(qconf -shgrpl); do show -shgrp $x; show -shgrp_tree $x; show -shgrp_resolved $x; done
for x in $(qconf -spl); do show -sp $x; done; for x in $(qconf -sprjl); do show -sprj $x; done
for x in $(qconf -sql); do show -sq $x; done; for x in $(qconf -srqsl); do show -srqs $x; done
for x in $(qconf -sul); do show -su $x; done; for x in $(qconf -suserl); do show -suser $x; done
for x in low.q@n1 low.q@n3 high.q@n1 high.q@n3 high.q@n2; do show -sq $x; done
