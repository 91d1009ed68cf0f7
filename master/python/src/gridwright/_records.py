"""Records of accounting."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Mapping, Optional


@dataclass(frozen=True)
class Record:
    """What one attempt of a task used, and how it ended."""

    job: int
    #: The number of the task; ``None`` if the job is not an array.
    task: Optional[int]
    name: str
    owner: str
    host: str
    queue: str
    slots: int
    #: The code of ``failed`` in accounting(5): 0 if the task ran to its own end.
    failed: int
    #: The exit status; 128 and the signal if a signal ended the task.
    exit_status: int
    #: Why the task failed, in words. Empty if it did not.
    reason: str
    #: The limit that ended the task, as ``qacct`` prints it. ``None`` if none did.
    limit: Optional[Mapping[str, Any]]
    submitted: Optional[datetime]
    #: ``None`` if the task did not begin.
    started: Optional[datetime]
    ended: Optional[datetime]
    wallclock_s: float
    cpu_s: float
    max_rss_bytes: int
    max_vmem_bytes: int
    io_bytes: int
    #: The whole record, as ``qacct -fmt json`` prints it.
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def is_ok(self) -> bool:
        """Whether the task ran, and ended with exit status 0."""
        return self.failed == 0 and self.exit_status == 0

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Record:
        """The record of an element of ``accounting``."""
        usage = raw["usage"]
        return cls(
            job=raw["job_number"],
            task=raw["task_number"] or None,
            name=raw["job_name"],
            owner=raw["owner"],
            host=raw["host"],
            queue=raw["queue"],
            slots=raw["slots"],
            failed=raw["failed"],
            exit_status=raw["exit_status"],
            reason=raw["reason"],
            limit=raw["limit"],
            submitted=_time(raw["submitted"]),
            started=_time(raw["started"]),
            ended=_time(raw["ended"]),
            wallclock_s=raw["wallclock_ms"] / 1000,
            cpu_s=usage["cpu_ms"] / 1000,
            max_rss_bytes=usage["maxrss_bytes"],
            max_vmem_bytes=usage["maxvmem_bytes"],
            io_bytes=usage["io_bytes"],
            raw=raw,
        )


def _time(milliseconds: Optional[int]) -> Optional[datetime]:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc) if milliseconds else None
