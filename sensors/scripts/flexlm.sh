#!/bin/sh
# Load sensor: free FlexLM licences, for the whole cluster.
#
# Needs:    lmutil (comes with every FlexLM product) on PATH or named by LMUTIL, and the licence server in LM_LICENSE_FILE or as
#           the first argument. Run it on ONE host only: what it reports is for the host `global`.
# Usage:    flexlm.sh [PORT@SERVER [FEATURE ...]]     without features: all that the server knows
# Reports:  global:FEATURE:NUMBER of free licences, issued minus in use. Nothing about a server that does not answer: the
#           figures are then withdrawn, which is not the same as 0.
# Complex:  FEATURE  FEATURE  INT  <=  YES  YES  0  0
#           consumable, with the number of licences in complex_values of the host global (qconf -me global): jobs then wait
#           for the smaller of what the cluster booked and what the server says. Use the feature's name in lower case, with
#           `_` for everything but letters, digits, `.` and `-`.
# Attach:   qconf -mconf HOST of one host, load_sensor /path/to/flexlm.sh

lmutil=${LMUTIL:-lmutil}
if [ $# -gt 0 ]; then
    LM_LICENSE_FILE=$1
    export LM_LICENSE_FILE
    shift
fi
wanted=" $* "

# Lines of interest:  Users of FEATURE:  (Total of 5 licenses issued;  Total of 2 licenses in use)
# A feature that several pools offer is there several times: the figures add up.
free() {
    "$lmutil" lmstat -a 2>/dev/null | sed -n \
        's/^ *Users of \([^:]*\): *(Total of \([0-9][0-9]*\) licen[cs]es* issued; *Total of \([0-9][0-9]*\) licen[cs]es* in use).*/\1 \2 \3/p' |
        awk -v wanted="$wanted" '
            wanted ~ /^ *$/ || index(wanted, " " $1 " ") {
                name = tolower($1)
                gsub(/[^a-z0-9.-]/, "_", name)
                left[name] += $2 - $3
            }
            END { for (name in left) print "global:" name ":" left[name] }' | sort
}

while read request; do
    if [ "$request" = quit ]; then
        exit 0
    fi
    values=`free`
    if [ -n "$values" ]; then
        echo begin
        echo "$values"
        echo end
    else
        echo "flexlm.sh: no licences from '$lmutil lmstat -a' (LM_LICENSE_FILE=$LM_LICENSE_FILE)" >&2
        echo begin
        echo end
    fi
done
exit 0
