#!/bin/bash
# The units under systemd as process 1, in containers: start, jobs across restarts and kill -9, two boots, a host that joins.
#
#   systemd.sh BIN [WORK]    BIN: directory with the built programs; WORK: where the root directories are made (default: mktemp);
#                             WORK/base stays for the next run
#
# Needs root, systemd-nspawn, and mmdebstrap with a Debian mirror unless WORK/base holds a root directory already.
set -euo pipefail

bin=$(realpath "$1")
units=$(realpath "$(dirname "$0")/../../systemd")
given=${2:-}
work=$(realpath "${given:-$(mktemp -d /var/tmp/gridwright-systemd.XXXXXX)}")
source "$(dirname "$0")/containers.sh"

# The steps of systemd/README.md, below a root directory.
install_into() {
    local root=$work/$1 name
    make_root "$1"
    install -m 755 "$bin"/gridwright{,-master,-agent,-shepherd} "$root/usr/bin/"
    for name in qsub qstat qconf qhost qdel qacct; do ln -sf gridwright "$root/usr/bin/$name"; done
    install -d "$root/usr/lib/gridwright/sensors"
    install -m 755 "$units"/../sensors/scripts/*.sh "$root/usr/lib/gridwright/sensors/"
    # Stand-ins for a driver and a licence server that the container does not have.
    printf '%s\n' '#!/bin/sh' 'case $1 in --query-gpu*) echo "0, GPU-1, 4096, 3, Some GPU" ;; esac' >"$root/usr/bin/nvidia-smi"
    printf '%s\n' '#!/bin/sh' 'echo "Users of tool:  (Total of 5 licenses issued;  Total of 2 licenses in use)"' >"$root/usr/bin/lmutil"
    chmod 755 "$root/usr/bin/nvidia-smi" "$root/usr/bin/lmutil"
    install -m 644 "$units"/*.service "$units"/*.socket "$units"/*.slice "$root/usr/lib/systemd/system/"
    install -D -m 644 "$units/gridwright.sysusers" "$root/usr/lib/sysusers.d/gridwright.conf"
    install -D -m 644 "$units/gridwright.tmpfiles" "$root/usr/lib/tmpfiles.d/gridwright.conf"
    install -D -m 644 "$units/gridwright.sysctl" "$root/usr/lib/sysctl.d/60-gridwright.conf"
    # A mailer that needs its group to write, as those that put mail into a spool do.
    chroot "$root" groupadd -g 2100 spool
    chroot "$root" install -d -m 2770 -g spool /var/spool/letters
    chroot "$root" install -m 2755 -g spool /usr/bin/tee /usr/bin/spool-tee
    printf '%s\n' '#!/bin/sh' 'exec /usr/bin/spool-tee "/var/spool/letters/$3"' >"$root/usr/bin/mail"
    chmod 755 "$root/usr/bin/mail"
}

settle() { inside "$1" systemd-sysusers; inside "$1" systemd-tmpfiles --create gridwright.conf; }

daemons=(gridwright-master gridwright-launcher gridwright-agent)

all_active() { inside node1 systemctl is-active "${daemons[@]}"; }

main_pid() { inside node1 systemctl show -p MainPID --value "$1"; }
came_back() { [ "$(main_pid "$1")" != "$2" ] && [ "$(main_pid "$1")" != 0 ] && inside node1 systemctl is-active "$1"; }

check_verify() {
    local said
    said=$(inside node1 systemd-analyze verify "${daemons[@]/%/.service}" gridwright-jobs.service gridwright.slice 2>&1) || fail "verify: $said"
    # Before version 254 systemd does not know the line, and goes on without it.
    said=$(printf '%s' "$said" | grep -v "Unknown key 'DelegateSubgroup' in section \[Service\], ignoring" || true)
    [ -z "$said" ] || fail "systemd-analyze verify says: $said"
    say "systemd-analyze verify is silent"
}

create_cell() {
    inside node1 gridwright up --dir /var/lib/gridwright --detach
    inside node1 gridwright down --dir /var/lib/gridwright
    inside node1 cat /var/lib/gridwright/etc/accounts.toml
    inside node1 systemctl enable --now "${daemons[@]}"
    all_active
    for unit in "${daemons[@]}"; do
        say "$unit: $(inside node1 systemctl show -p Type,StatusText,NotifyAccess,User,ControlGroup "$unit" | paste -sd' ')"
    done
}

# A job's rights and limits against those of a login.
check_inherits_nothing() {
    local job
    cat >"$work/node1/home/alice/look.sh" <<'END'
#!/bin/bash
grep -E '^(Seccomp|NoNewPrivs|Cap)' /proc/self/status
cat /proc/self/limits
tr '\0' '\n' </proc/self/environ | grep -E '^(NOTIFY|INVOCATION|JOURNAL|SYSTEMD|LISTEN)'
readlink /proc/self/ns/{mnt,net,pid,user,uts,ipc}
umask
exit 0
END
    chmod 755 "$work/node1/home/alice/look.sh"
    job=$(submit -j y -o /home/alice/rights /home/alice/look.sh)
    within 20 has_record "$job"
    # As a descendant of process 1: nspawn gives the whole container a filter and a bounding set, which nsenter does not have.
    inside node1 systemd-run --quiet --pipe --wait su -l alice -c /home/alice/look.sh >"$work/login"
    diff "$work/login" "$work/node1/home/alice/rights" || fail "a job has other rights or limits than a login"
    say "a job has the rights and limits of a login: $(head -7 "$work/login" | paste -sd' ' | tr '\t' ' ')"
}

# The load values of node1, a line for each: those that are the same from report to report with their value, the others by name.
values() {
    as_alice qhost -F -h node1 | awk -F: '/^ +[gh][lfcv]:/ { split($2, value, "=")
        if (value[1] ~ /^(load_|np_load_|cpu|mem_[fu]|swap_[fu]|virtual_[fu]|tmp_free|var_free|uptime|cpu_idle|psi_|logins)/) print value[1]; else print $2 }' | sort
}
has_values() { values | grep -q '^psi_cpu_some' && values | grep -q '^gpu.0.name=' && values | grep -q '^tool=' && values | grep -q '^logins'; }
has_no_values() { ! values | grep -q '^psi_cpu_some'; }

# What the agent and the sensors measure below the unit against what they measure when they are started by hand.
check_values() {
    local attribute sensors=/usr/lib/gridwright/sensors
    {
        inside node1 qconf -sc
        for attribute in uptime cpu_idle_time cgroup_version gpu_count gpu_free logins tool psi_{cpu,memory,io}_{some,full}; do
            echo "$attribute $attribute DOUBLE <= YES NO 0 0"
        done
        for attribute in tmp_free var_free gpu_mem_free gpu.0.mem_free; do echo "$attribute $attribute MEMORY <= YES NO 0 0"; done
        for attribute in gpu_util gpu.0.util; do echo "$attribute $attribute DOUBLE >= YES NO 0 0"; done
        echo 'gpu.0.name gpu.0.name STRING == YES NO NONE 0'
    } >"$work/node1/root/complex"
    inside node1 qconf -Mc /root/complex >/dev/null
    inside node1 env SGE_SINGLE_LINE=1 qconf -sconf | sed -e 's/^load_report_time.*/load_report_time 0:0:1/' \
        -e "s|^load_sensor.*|load_sensor $sensors/logins.sh,$sensors/nvidia.sh,$sensors/flexlm.sh,$sensors/diskfree.sh /var|" >"$work/node1/root/global"
    inside node1 qconf -Mconf /root/global >/dev/null
    within 60 has_values
    values >"$work/under-unit"
    inside node1 systemctl stop gridwright-agent
    inside node1 setpriv --reuid gridwright-agent --regid gridwright --init-groups setsid gridwright-agent run --dir /var/lib/gridwright \
        --sensor-user gridwright-sensor </dev/null >"$work/by-hand.log" 2>&1 &
    within 60 grep -q . "$work/by-hand.log"
    within 60 inside node1 pgrep -u gridwright-agent -x gridwright-agen
    within 60 has_values
    values >"$work/by-hand"
    inside node1 pkill -TERM -u gridwright-agent -x gridwright-agen
    wait $! || true
    inside node1 systemctl start gridwright-agent
    diff "$work/by-hand" "$work/under-unit" || fail "the unit changes what the agent measures"
    say "$(wc -l <"$work/under-unit") load values are the same under the unit as by hand: $(paste -sd' ' "$work/under-unit")"
}

has_mail() { inside node1 grep -q 'Exit Status *= 0' /var/spool/letters/alice@site; }
was_refused() { inside node1 journalctl -u gridwright-master --no-pager | grep -q 'no mail.*/usr/bin/env is not run: gridwright-mail@.service admits'; }

# Mail under the unit of the master, which takes a mailer's group away.
check_mail() {
    inside node1 env SGE_SINGLE_LINE=1 qconf -sconf | sed 's|^mailer.*|mailer /usr/bin/mail|' >"$work/node1/root/global"
    inside node1 qconf -Mconf /root/global >/dev/null
    within 20 has_record "$(submit -b y -m e -M alice@site /bin/true)"
    within 20 has_mail
    inside node1 sed -i 's|^mailer.*|mailer /usr/bin/env|' /root/global
    inside node1 qconf -Mconf /root/global >/dev/null
    within 20 has_record "$(submit -b y -m e -M alice@site /bin/true)"
    within 20 was_refused
    say "a setgid mailer sent mail of the master, and a mailer that the unit does not name was refused"
}

check_restarts() {
    local job unit pid
    job=$(submit -b y /bin/sleep 60)
    within 20 runs "$job"
    pid=$(inside node1 pgrep -u alice -x sleep)
    inside node1 grep -q -E '^0::/.*gridwright-jobs.service/[0-9a-f]{16}[.]' "/proc/$pid/cgroup" ||
        fail "job $job is in no group of its own: $(inside node1 cat "/proc/$pid/cgroup" | paste -sd' ')"
    say "job $job has a group of its own: $(inside node1 sed -n 's/^0:://p' "/proc/$pid/cgroup")"
    for unit in "${daemons[@]}"; do
        inside node1 systemctl restart "$unit"
        inside node1 kill -0 "$pid" || fail "restart of $unit ended the job"
        within 20 runs "$job"
    done
    say "systemctl restart of each unit left job $job running"
    for unit in "${daemons[@]}" "${daemons[@]}"; do
        local before; before=$(main_pid "$unit")
        inside node1 kill -9 "$before"
        within 20 came_back "$unit" "$before"
        inside node1 kill -0 "$pid" || fail "kill -9 of $unit ended the job"
    done
    within 20 runs "$job"
    say "kill -9 of each unit, twice: each came back and job $job runs"
    inside node1 kill "$pid"
    within 20 has_record "$job"
}

tasks=500
all_run() { [ "$(inside node1 pgrep -u alice -x cat | wc -l)" = $tasks ]; }
recorded() { as_alice qacct -j "$1" | awk '$1 == "taskid" { print $2 }' | sort -n; }
all_recorded() { [ "$(recorded "$1" | wc -l)" -ge $tasks ]; }

# Restarts, and programs that are replaced, below many running tasks.
check_many() {
    local job unit program pids
    inside node1 qconf -rattr queue slots $((tasks + 2)) all.q >/dev/null
    inside node1 mkfifo -m 644 /home/alice/gate
    job=$(submit -t 1-$tasks -b y /bin/cat /home/alice/gate)
    job=${job%%.*}
    within 60 all_run
    pids=$(inside node1 pgrep -u alice -x cat | sort)
    for unit in "${daemons[@]}"; do inside node1 systemctl restart "$unit"; done
    for program in gridwright gridwright-master gridwright-agent gridwright-shepherd; do
        inside node1 install -m 755 "/usr/bin/$program" "/usr/bin/$program.new"
        inside node1 mv "/usr/bin/$program.new" "/usr/bin/$program"
    done
    inside node1 systemctl restart "${daemons[@]}"
    [ "$(inside node1 pgrep -u alice -x cat | sort)" = "$pids" ] || fail "a restart disturbed a task"
    inside node1 sh -c ': >/home/alice/gate'
    within 60 all_recorded "$job"
    [ "$(recorded "$job")" = "$(seq $tasks)" ] || fail "the tasks of $job are not recorded once each"
    as_alice qacct -j "$job" | awk '/^(failed|exit_status)/ && $2 != 0' | grep . && fail "a task of $job failed"
    say "$tasks tasks ran through restarts and replaced programs: each ended well and is recorded once"
}

check_down() {
    inside node1 gridwright down --dir /var/lib/gridwright
    sleep 2
    ! all_active >/dev/null || fail "gridwright down was undone"
    inside node1 systemctl start "${daemons[@]}"
    all_active >/dev/null
    say "gridwright down ends the units, systemctl start brings them back"
}

# As a power cut: nothing gets to say a last word.
cut() {
    local pid
    pid=$(eval "echo \$nspawn_$1")
    kill -9 "${leader[$1]}"
    within 20 sh -c "! kill -0 $pid"
    leader[$1]=
    remove_groups "$1"
    say "$1 lost its power"
}

is_lost() { as_alice qacct -j "$1" | grep -q -E '^failed +18 '; }
ran_again() { as_alice qacct -j "$1" | grep -q -E '^failed +0 '; }

# Jobs that ran when the host went down, by HOW: one is recorded as lost, the other runs again.
check_boot_after() {
    local how=$1 once again
    once=$(submit -b y -r n /bin/sleep 600)
    again=$(submit -b y -r y /bin/sleep 5)
    within 20 runs "$once"; within 20 runs "$again"
    "$how" node1
    boot node1
    within 20 all_active
    within 30 is_lost "$once"
    within 60 ran_again "$again"
    as_alice qacct -j "$once" | grep -E '^(jobnumber|failed|exit_status)' | paste -sd' '
    as_alice qacct -j "$again" | grep -E '^(jobnumber|failed|exit_status)' | paste -sd' '
    [ -z "$(as_alice qstat -u '*')" ] || fail "qstat shows jobs that ended"
    inside node1 qhost
    say "$how, then a boot: all three units are active, job $once is lost, job $again ran again"
}

check_join() {
    local token job
    install_into node2
    boot node2
    settle node2
    token=$(inside node1 gridwright token | grep -oE '\S{30,}' | tail -1)
    inside node2 gridwright join node1 "$token"
    inside node2 gridwright down
    inside node2 systemctl enable --now gridwright-launcher gridwright-agent
    job=$(submit -b y -l hostname=node2 -sync y /bin/true | head -1)
    within 20 has_record "$job"
    as_alice qacct -j "$job" | grep -E 'hostname|failed'
    inside node2 systemctl is-enabled gridwright-master && fail "the master is enabled on a host that joined"
    say "node2 joined, its units are active and ran job $job"
}

install_into node1
boot node1
settle node1
check_verify
create_cell
check_inherits_nothing
check_values
check_mail
check_restarts
check_many
check_down
check_boot_after halt
check_boot_after cut
check_join
say "all checks passed"
