#!/bin/sh
# Load sensor: how many different users are logged in on this host.
#
# Needs:    who, sort, wc (in every base system).
# Reports:  HOST:logins:NUMBER
# Complex:  logins  logins  INT  <=  YES  NO  0  0
#           (qconf -mc, or append the line to the output of qconf -sc and load it with qconf -Mc)
# Attach:   qconf -mconf, load_sensor /path/to/logins.sh

host=`uname -n`

while read request; do
    if [ "$request" = quit ]; then
        exit 0
    fi
    # The first word of each line of who is the login name.
    logins=`who 2>/dev/null | while read name rest; do echo "$name"; done | sort -u | wc -l`
    echo begin
    # Unquoted, so that the blanks which some versions of wc print around the number go away.
    echo "$host:logins:"$logins
    echo end
done
exit 0
