"""Submits a job with limits, waits for it, and shows what it used."""

import gridwright

job = gridwright.submit(
    ["sh", "-c", "echo hello from $JOB_NAME; exit 0"],
    name="first",
    resources={"h_vmem": "1G", "h_rt": 600},
)
print(f"submitted {job.name}: {job.status()}")
outcome = job.wait(timeout=120)
for record in outcome.records:
    print(f"{record.name} on {record.queue}: failed {record.failed}, exit status {record.exit_status}")
print(job.output().strip())
