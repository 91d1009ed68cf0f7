#!/bin/sh
# Load sensor: NVIDIA GPUs of this host, and which of them are ill.
#
# Usage:    nvidia.sh [hot=DEGREES] [ecc=ERRORS]
# Needs:    nvidia-smi (comes with the driver). Without it, or when it fails, gpu_count 0 is reported.
# Reports:  HOST:gpu_count:NUMBER          all GPUs
#           HOST:gpu_free:NUMBER           those that no process computes on and that are at most 5 % busy
#           HOST:gpu_mem_free:SIZE         the most memory that is free on one GPU, suffix M
#           HOST:gpu_util:PERCENT          the average over all GPUs
#           each GPU, I from 0:
#           HOST:gpu.I.mem_free:SIZE, HOST:gpu.I.mem_total:SIZE, HOST:gpu.I.util:PERCENT, HOST:gpu.I.name:TEXT
#           HOST:gpu.I.temp:DEGREES        degrees Celsius
#           HOST:gpu.I.ecc:NUMBER          uncorrected ECC errors since the driver was loaded
#           HOST:gpu.I.mig:UUID;UUID...    its MIG instances
#           HOST:devices_ill.N:UUID=REASON;...    each GPU that no job is to get, with its MIG instances
# Ill:      a GPU of at least 95 degrees (hot=), with an uncorrected ECC error (ecc=), which the driver cannot
#           ask, or which this sensor has seen and the driver no longer lists. Ids of resource maps with such
#           a uuid are not given to jobs; running jobs keep theirs.
# Complex:  gpu_count     gpuc  INT     <=  YES  NO  0  0
#           gpu_free      gpuf  INT     <=  YES  NO  0  0
#           gpu_mem_free  gpum  MEMORY  <=  YES  NO  0  0
#           gpu_util      gpuu  DOUBLE  >=  YES  NO  0  0
#           and one line for each per-GPU value that you use; devices_ill.N needs none
# Attach:   qconf -mconf HOST of a host with GPUs, load_sensor /path/to/nvidia.sh

host=`uname -n`
hot=95
ecc=1
for argument in "$@"; do
    case $argument in
        hot=[0-9]*) hot=${argument#hot=} ;;
        ecc=[0-9]*) ecc=${argument#ecc=} ;;
        *) echo "nvidia.sh: $argument is neither hot=DEGREES nor ecc=ERRORS" >&2; exit 2 ;;
    esac
done
known=

gpus() {
    nvidia-smi --query-gpu=index,uuid,memory.free,utilization.gpu,name --format=csv,noheader,nounits 2>/dev/null
}

# Apart from the others: an old driver that does not know a figure answers none of a question.
health() {
    nvidia-smi --query-gpu=index,uuid,memory.total,temperature.gpu,ecc.errors.uncorrected.volatile.total,pci.bus_id \
        --format=csv,noheader,nounits 2>/dev/null
}

busy() {
    nvidia-smi --query-compute-apps=gpu_uuid --format=csv,noheader 2>/dev/null
}

# A line for each MIG instance: its GPU and itself.
instances() {
    nvidia-smi -L 2>/dev/null | sed -n 's/^\( *\)\(GPU\|MIG\).*(UUID: \([^)]*\)).*/\2 \3/p' | awk '
        $1 == "GPU" { card = $2 }
        $1 == "MIG" { print card ", " $2 }'
}

report() {
    list=`gpus`
    parts=`instances`
    # One stream: what is known of all GPUs first, then the GPUs.
    {
        for uuid in $known; do echo "known, $uuid"; done
        busy | sed 's/^/busy, /'
        echo "$parts" | sed 's/^/mig, /'
        health | sed 's/^/health, /'
        echo "$list" | sed 's/^/gpu, /'
    } | awk -F ', *' -v host="$host" -v hot="$hot" -v ecc="$ecc" '
        function is_number(text) { return text ~ /^[0-9]+$/ }
        function call_ill(uuid, why,    count, parts, i) {
            if (uuid in reason) return
            reason[uuid] = why
            ill = uuid "=" why
            count = split(parts_of[uuid], parts, ";")
            for (i = 1; i <= count; i++) ill = ill ";" parts[i] "=" why
            # A value each: the length of a value is limited.
            print host ":devices_ill." ++ill_count ":" ill
        }
        $1 == "known" { seen[++seen_count] = $2; next }
        $1 == "busy" { used[$2] = 1; next }
        $1 == "mig" && NF == 3 { listed[$3] = 1; parts_of[$2] = parts_of[$2] (parts_of[$2] == "" ? "" : ";") $3; next }
        $1 == "health" && NF == 7 {
            total[$3] = $4
            degrees[$3] = $5
            errors[$3] = $6
            next
        }
        $1 == "gpu" && is_number($2) {
            count++
            uuid = $3
            listed[uuid] = 1
            # A figure that the driver does not have is printed as [N/A].
            free = is_number($4) ? $4 : ""
            util = is_number($5) ? $5 : ""
            if (free != "") {
                print host ":gpu." $2 ".mem_free:" free "M"
                if (free + 0 > most + 0) most = free
            }
            if (is_number(total[uuid])) print host ":gpu." $2 ".mem_total:" total[uuid] "M"
            if (util != "") {
                print host ":gpu." $2 ".util:" util
                sum += util
                measured++
            }
            if (is_number(degrees[uuid])) print host ":gpu." $2 ".temp:" degrees[uuid]
            if (is_number(errors[uuid])) print host ":gpu." $2 ".ecc:" errors[uuid]
            if (uuid in parts_of) print host ":gpu." $2 ".mig:" parts_of[uuid]
            print host ":gpu." $2 ".name:" $6
            if ($4 ~ /lost|Unknown Error/) call_ill(uuid, "the driver cannot ask it")
            if (is_number(errors[uuid]) && errors[uuid] + 0 >= ecc + 0) call_ill(uuid, errors[uuid] " uncorrected ECC errors")
            if (is_number(degrees[uuid]) && degrees[uuid] + 0 >= hot + 0) call_ill(uuid, degrees[uuid] " degrees Celsius")
            if (!(uuid in used) && !(uuid in reason) && util + 0 <= 5) idle++
        }
        END {
            for (i = 1; i <= seen_count; i++)
                if (!(seen[i] in listed)) call_ill(seen[i], "the driver no longer lists it")
            print host ":gpu_count:" count + 0
            if (count > 0) {
                print host ":gpu_free:" idle + 0
                print host ":gpu_mem_free:" most + 0 "M"
            }
            if (measured > 0) printf "%s:gpu_util:%.1f\n", host, sum / measured
        }'
    known=`{ echo "$known" | tr ' ' '\n'; echo "$list" | awk -F ', *' '$1 ~ /^[0-9]+$/ { print $2 }'
        echo "$parts" | awk -F ', *' 'NF == 2 { print $2 }'; } | sort -u | tr '\n' ' '`
}

while read request; do
    if [ "$request" = quit ]; then
        exit 0
    fi
    echo begin
    report
    echo end
done
exit 0
