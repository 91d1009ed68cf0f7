# Containers with systemd as process 1 for tests that source this: set `work` before, and `given` to it if it is to stay.
# Needs root, systemd-nspawn, and mmdebstrap with a Debian mirror unless $work/base holds a root directory already.

net=gridwright-$$
group=/sys/fs/cgroup/unified
[ -d "$group" ] || group=/sys/fs/cgroup
declare -A leader=()

say() { printf '%s %s\n' "$(date +%T)" "$*"; }
fail() { say "FAILED: $*" >&2; exit 1; }

# Until SECONDS, try a command ten times a second.
within() {
    local end=$((SECONDS + $1)); shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "not within its time: $*"
        sleep 0.1
    done
}

inside() { local name=$1; shift; nsenter --target "${leader[$name]}" --mount --uts --ipc --net --pid --cgroup -- "$@"; }
as_alice() { inside node1 runuser -u alice -- env -C /home/alice "$@"; }

boot() {
    local name=$1 cgroup=$group/gridwright-test-$1-$$
    mkdir -p "$cgroup"
    ( echo $BASHPID >"$cgroup/cgroup.procs"
      SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 exec systemd-nspawn --quiet --boot --register=no --keep-unit --machine="$name" \
          --hostname="$name" --directory="$work/$name" --network-namespace-path="/run/netns/$net" \
          </dev/null >>"$work/$name.console" 2>&1 ) &
    nspawn=$!
    local end=$((SECONDS + 20))
    until leader[$name]=$(pgrep -P $nspawn | head -1) && [ -n "${leader[$name]}" ] &&
        inside "$name" systemctl is-system-running 2>/dev/null | grep -q -E 'running|degraded'; do
        [ $SECONDS -lt $end ] || fail "$name does not boot: $(tail -3 "$work/$name.console")"
        sleep 0.1
    done
    eval "nspawn_$name=$nspawn"
    say "$name booted"
}

# nspawn makes a group of the same name in the tree of systemd's own, where that is mounted.
remove_groups() {
    find /sys/fs/cgroup/{,unified/,systemd/}gridwright-test-$1-$$ -depth -type d -exec rmdir {} + 2>/dev/null || true
}

halt() {
    local name=$1 pid
    pid=$(eval "echo \$nspawn_$name")
    inside "$name" systemctl poweroff || true
    within 100 sh -c "! kill -0 $pid"
    leader[$name]=
    remove_groups "$name"
    say "$name powered off"
}

clean() {
    local name pid
    for name in node1 node2; do
        pid=$(eval "echo \${nspawn_$name:-}")
        if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
            kill -TERM "$pid"; for _ in $(seq 200); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
            kill -KILL "$pid" 2>/dev/null || true
        fi
        remove_groups "$name"
    done
    ip netns del "$net" 2>/dev/null || true
    rm -rf "$work"/node[12] "$work"/node[12].console
    [ -n "$given" ] || rm -rf "$work"
}
trap clean EXIT

# The root directory of a container, as a copy of $work/base.
make_root() {
    local root=$work/$1
    cp -a --one-file-system "$work/base" "$root"
    printf '127.0.0.1 localhost\n127.0.0.1 node1 node2\n' >"$root/etc/hosts"
    echo "$1" >"$root/etc/hostname"
    chroot "$root" useradd -m -u 2001 alice
    rm -f "$root/etc/machine-id"; : >"$root/etc/machine-id"
}

# Submits a job of alice and prints its number.
submit() { as_alice qsub -terse "$@"; }
state_of() { as_alice qstat -u '*' | awk -v id="$1" '$1 == id { print $5 }'; }
runs() { [ "$(state_of "$1")" = r ]; }
has_record() { as_alice qacct -j "$1"; }

mkdir -p "$work"
[ -d "$work/base" ] || mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,iproute2,procps,udev \
    bookworm "$work/base"
ip netns add "$net"
ip -n "$net" link set lo up
