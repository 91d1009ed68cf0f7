#!/bin/bash
# real.sh up|down|fresh|run [USER] COMMAND…: a real Grid Engine 8.1.9 (Debian 12's packages) on a host `vm` of its own: an overlay of
# the machine's files in memory, with name spaces for mounts, net, host name and processes. Nothing of the machine changes.
# `fresh` empties the cell and sets it up again: one host, @allhosts, make mpi smp, all.q with 2 slots, users u1 u2 u3; `fresh simulated`
# has hosts sim0001 to sim0004 besides, whose jobs are simulated.
# Root, Debian 12, network for apt at the first `up`. GEREAL names its directory, WORK the one in the cell where root works.
set -u; export WORK=${WORK:-/var/tmp/work}; SELF=$(cd "$(dirname "$0")" && pwd); cd /
G=${GEREAL:-/var/tmp/ge-real}; R=$G/root

inside() { exec nsenter -t "$(cat "$G/pid")" -m -n -u -p -r -- env -C / "$@"; }

mounts() {
  mountpoint -q "$R" && return
  mkdir -p "$G/lower" "$G/memory" "$R"
  mount -t tmpfs -o size=2G memory "$G/memory" && mkdir -p "$G/memory/upper" "$G/memory/work"
  mount --bind / "$G/lower" && mount -o remount,bind,ro "$G/lower"
  mount -t overlay overlay -o "lowerdir=$G/lower,upperdir=$G/memory/upper,workdir=$G/memory/work" "$R"
  mount -t proc proc "$R/proc"; mount -t tmpfs tmp "$R/tmp"; chmod 1777 "$R/tmp"
  # Nodes of its own: whoever removes the directory while it is mounted must not empty the machine's /dev.
  mount -t tmpfs -o mode=755 dev "$R/dev" && cp -a /dev/{null,zero,full,random,urandom,tty} "$R/dev/"
  ln -s /proc/self/fd "$R/dev/fd"; ln -s fd/0 "$R/dev/stdin"; ln -s fd/1 "$R/dev/stdout"; ln -s fd/2 "$R/dev/stderr"
}

packages() {
  chroot "$R" dpkg -s gridengine-master >/dev/null 2>&1 && return
  chroot "$R" bash -s <<'I'
export DEBIAN_FRONTEND=noninteractive
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d
debconf-set-selections <<D
gridengine-common shared/gridengineconfig boolean true
gridengine-common shared/gridenginecell string default
gridengine-exec shared/gridenginemaster string vm
gridengine-client shared/gridenginemaster string vm
gridengine-master shared/gridenginemaster string vm
D
apt-get update -q && apt-get install -qy --no-install-recommends gridengine-master gridengine-exec gridengine-client gridengine-common tcsh
I
}

holder() {
  [ -s "$G/pid" ] && kill -0 "$(cat "$G/pid")" 2>/dev/null && return
  cp "$SELF/cell.sh" "$R/root/cell.sh"
  unshare --mount --net --uts --pid --fork chroot "$R" bash -c '
    umount /proc; mount -t proc proc /proc; hostname vm; ip link set lo up; ip addr add 192.0.2.10/32 dev lo
    printf "127.0.0.1 localhost\n192.0.2.10 vm\n192.0.2.11 n1\n192.0.2.12 n2\n192.0.2.13 n3\n192.0.2.14 n4\n" > /etc/hosts
    for u in 1 2 3; do id u$u >/dev/null 2>&1 || useradd -m -u 200$u -s /bin/bash u$u; done
    touch /run/held; exec sleep infinity' >"$G/holder.log" 2>&1 &
  until pgrep -P $! > "$G/pid"; do sleep 0.05; done
  until (inside test -e /run/held); do sleep 0.05; done
}

case ${1:-} in
  up) mounts; packages; holder; inside bash /root/cell.sh fresh ;;
  fresh) cp "$SELF/cell.sh" "$R/root/cell.sh"; inside bash /root/cell.sh "$@" ;;
  run) shift; inside "$@" ;;
  down) kill -9 "$(cat "$G/pid")"; rm -f "$G/pid"; sleep 0.5; umount "$R/tmp" "$R/dev" "$R/proc" "$R" "$G/lower" "$G/memory" && rmdir "$R" "$G/lower" "$G/memory" ;;
  *) sed -n 2,6p "$0"; exit 2 ;;
esac
