#!/bin/sh
# Load sensor: NVIDIA GPUs of this host.
#
# Needs:    nvidia-smi (comes with the driver). Without it, or when it fails, gpu_count 0 is reported.
# Reports:  HOST:gpu_count:NUMBER          all GPUs
#           HOST:gpu_free:NUMBER           those that no process computes on and that are at most 5 % busy
#           HOST:gpu_mem_free:SIZE         the most memory that is free on one GPU, suffix M
#           HOST:gpu_util:PERCENT          the average over all GPUs
#           HOST:gpu.I.mem_free:SIZE, HOST:gpu.I.util:PERCENT, HOST:gpu.I.name:TEXT    each GPU, I from 0
# Complex:  gpu_count     gpuc  INT     <=  YES  NO  0  0
#           gpu_free      gpuf  INT     <=  YES  NO  0  0
#           gpu_mem_free  gpum  MEMORY  <=  YES  NO  0  0
#           gpu_util      gpuu  DOUBLE  >=  YES  NO  0  0
#           and one line for each per-GPU value that you use
# Attach:   qconf -mconf HOST of a host with GPUs, load_sensor /path/to/nvidia.sh

host=`uname -n`

gpus() {
    nvidia-smi --query-gpu=index,uuid,memory.free,utilization.gpu,name --format=csv,noheader,nounits 2>/dev/null
}

busy() {
    nvidia-smi --query-compute-apps=gpu_uuid --format=csv,noheader 2>/dev/null
}

report() {
    # One stream: the busy GPUs first, then all of them.
    { busy | sed 's/^/busy, /'; gpus | sed 's/^/gpu, /'; } | awk -F ', *' -v host="$host" '
        $1 == "busy" { used[$2] = 1; next }
        $1 == "gpu" && $2 ~ /^[0-9]+$/ {
            count++
            # A figure that the driver does not have is printed as [N/A].
            free = ($4 ~ /^[0-9]+$/) ? $4 : ""
            util = ($5 ~ /^[0-9]+$/) ? $5 : ""
            if (free != "") {
                print host ":gpu." $2 ".mem_free:" free "M"
                if (free + 0 > most + 0) most = free
            }
            if (util != "") {
                print host ":gpu." $2 ".util:" util
                sum += util
                known++
            }
            print host ":gpu." $2 ".name:" $6
            if (!($3 in used) && util + 0 <= 5) idle++
        }
        END {
            print host ":gpu_count:" count + 0
            if (count > 0) {
                print host ":gpu_free:" idle + 0
                print host ":gpu_mem_free:" most + 0 "M"
            }
            if (known > 0) printf "%s:gpu_util:%.1f\n", host, sum / known
        }'
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
