#!/bin/sh
# Load sensor: free space of file systems, as an ordinary user may use it.
#
# Needs:    df with -P and -k (POSIX). A hung network server hangs df: list local directories only.
# Usage:    diskfree.sh [DIRECTORY ...]     default: /tmp /scratch; a directory that does not exist is left out
# Reports:  HOST:NAME_free:SIZE with a suffix K; NAME is the directory with `_` for each `/`: tmp_free, var_tmp_free, root_free
# Complex:  scratch_free  scf  MEMORY  <=  YES  NO  0  0
#           one such line for each directory (tmp_free is a built-in load value of the agent; this one overrides it)
# Attach:   qconf -mconf, load_sensor /path/to/diskfree.sh

host=`uname -n`
if [ $# -eq 0 ]; then
    set -- /tmp /scratch
fi

name_of() {
    name=`echo "$1" | sed -e 's,^//*,,' -e 's,//*$,,' -e 's,[^A-Za-z0-9.-],_,g'`
    echo "${name:-root}_free"
}

while read request; do
    if [ "$request" = quit ]; then
        exit 0
    fi
    echo begin
    for directory in "$@"; do
        if [ -d "$directory" ]; then
            # The fourth column of the last line; -P keeps long device names on one line.
            free=`df -Pk "$directory" 2>/dev/null | awk 'NR > 1 { free = $4 } END { print free }'`
            case $free in
                '' | *[!0-9]*) echo "diskfree.sh: df says nothing about $directory" >&2 ;;
                *) echo "$host:`name_of "$directory"`:${free}K" ;;
            esac
        fi
    done
    echo end
done
exit 0
