"""Tries three settings, each in an array of its own, and takes each result as it comes."""

import gridwright

settings = {}
for delay in (3, 0, 1):
    job = gridwright.submit(
        f"sleep {delay}; echo $((SGE_TASK_ID * SETTING))",
        name=f"sweep{delay}",
        tasks=2,
        environment={"SETTING": str(delay)},
    )
    settings[job] = delay

for job in gridwright.as_completed(settings, timeout=120):
    outcome = job.wait()
    results = [job.output(record.task).strip() for record in outcome.records]
    print(f"setting {settings[job]}: ok={outcome.is_ok}, results {results}")
