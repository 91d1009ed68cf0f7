"""Jobs: what they are, how they are doing, and how they ended."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

from ._records import Record
from ._watch import FollowedJob

if TYPE_CHECKING:
    from ._cell import Cell


@dataclass(frozen=True)
class Status:
    """How many tasks of a job are in which state. A task counts once."""

    pending: int = 0
    held: int = 0
    running: int = 0
    suspended: int = 0
    #: Tasks that wait for ``qmod -cj`` after they could not start.
    error: int = 0

    @property
    def is_over(self) -> bool:
        """Whether no task of the job is left in the cell."""
        return self == Status()


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    job: int
    #: The last record of each task that ran, in the order of the tasks.
    records: Tuple[Record, ...]
    #: The tasks that were deleted before they ran, in ascending order; 1 if the job is not an array.
    deleted: Tuple[int, ...]
    #: The records of tasks that could not start, and wait for ``qmod -cj``.
    errors: Tuple[Record, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether all tasks ran, and ended with exit status 0."""
        return not self.deleted and not self.errors and all(record.is_ok for record in self.records)

    @property
    def exit_status(self) -> int:
        """The largest exit status of all tasks; 1 if a task did not run and the others ended with 0."""
        largest = max((record.exit_status for record in self.records), default=0)
        return largest or int(not self.is_ok)


class Job:
    """A job of this user in a cell."""

    def __init__(
        self, cell: Cell, followed: FollowedJob, tasks: Optional[range], name: str, output: Optional[str]
    ) -> None:
        self._cell = cell
        self._followed = followed
        self._output = output
        #: The numbers of its tasks; ``None`` if the job is not an array.
        self.tasks = tasks
        self.name = name

    @property
    def id(self) -> int:
        """The number of the job."""
        return self._followed.number

    def __repr__(self) -> str:
        tasks = f", tasks={self.tasks!r}" if self.tasks is not None else ""
        return f"Job({self.id}, {self.name!r}{tasks})"

    def wait(self, timeout: Optional[float] = None) -> Outcome:
        """Waits until the job has ended, or until none of its tasks can go on without help.

        The second is the case if all remaining tasks could not start and wait for ``qmod -cj``:
        ``Outcome.errors`` names them. Waiting again after ``qmod -cj`` waits for their end.

        :raises TimeoutError: it takes longer than ``timeout`` seconds. The job goes on.
        :raises CommandError: the master cannot be reached for a minute.
        """
        if not self._cell._watcher.wait([self._followed], self._is_settled, timeout):
            raise TimeoutError(f"job {self.id} has not ended within {timeout} s")
        return self._outcome()

    def is_done(self) -> bool:
        """Whether the job has ended. Costs nothing: the answer comes from the event stream."""
        return self._followed.is_finished

    def status(self) -> Status:
        """Counts the tasks of the job by state."""
        listed = self._cell._commands.document(["qstat", "-j", str(self.id)], may_fail=True)
        counts: Dict[str, int] = {}
        for entry in listed.get("jobs", []):
            row = entry["row"]
            for pending in row["pending"]:
                kind = _state_of(pending["state"])
                counts[kind] = counts.get(kind, 0) + len(_tasks_of(pending))
            for task in row["tasks"]:
                kind = _state_of(task["state"])
                counts[kind] = counts.get(kind, 0) + 1
        return Status(**counts)

    def cancel(self, *tasks: int) -> None:
        """Deletes the job, or only the tasks that are named. What has ended stays as it is."""
        if not self._followed.is_finished:
            words = [f"{self.id}.{task}" for task in tasks] or [str(self.id)]
            self._cell._commands.run(["qdel", *words], may_fail=True)

    def hold(self) -> None:
        """Holds the tasks that do not run yet."""
        self._cell._commands.run(["qhold", str(self.id)])

    def release(self) -> None:
        """Releases what :meth:`hold` held."""
        self._cell._commands.run(["qrls", str(self.id)])

    def accounting(self) -> List[Record]:
        """All records of the job, also of attempts that were repeated."""
        return self._cell.accounting(job=self.id)

    def output_path(self, task: Optional[int] = None) -> str:
        """The file with what the job, or a task of it, printed.

        :raises ValueError: the job is an array and no task is given, or the reverse; or the job was
            not submitted by this program.
        """
        if self._output is None:
            raise ValueError(f"where job {self.id} prints is not known: it was not submitted here")
        if (task is None) != (self.tasks is None):
            raise ValueError(f"job {self.id} is {'an array: give a task' if self.tasks else 'not an array'}")
        path = self._output.replace("$JOB_ID", str(self.id)).replace("$JOB_NAME", self.name)
        return path.replace("$TASK_ID", "undefined" if task is None else str(task))

    def output(self, task: Optional[int] = None) -> str:
        """What the job, or a task of it, has printed until now: output and errors.

        :raises OSError: the file cannot be read, for example because the task has not started, or
            because this host does not share the directory with the host of the task.
        """
        with open(self.output_path(task), encoding="utf-8", errors="replace") as file:
            return file.read()

    def _is_settled(self) -> bool:
        if self._followed.is_finished:
            return True
        known = len(self._followed.records) + len(self._followed.deleted) + len(self._followed.errors)
        return bool(self._followed.errors) and known >= len(self.tasks or range(1))

    def _outcome(self) -> Outcome:
        followed = self._followed
        return Outcome(
            job=self.id,
            records=tuple(record for _, record in sorted(followed.records.items())),
            deleted=tuple(sorted(followed.deleted)),
            errors=tuple(record for _, record in sorted(followed.errors.items())),
        )


def default_output(directory: str, name: str, is_array: bool) -> str:
    """The file that ``qsub -cwd -j y`` would choose, with a pseudo variable for each number."""
    end = ".$TASK_ID" if is_array else ""
    return os.path.join(directory, f"{name}.o$JOB_ID{end}")


def _state_of(letters: str) -> str:
    if "E" in letters:
        return "error"
    if "h" in letters:
        return "held"
    if "s" in letters.lower() or "T" in letters:
        return "suspended"
    return "pending" if "q" in letters else "running"


def _tasks_of(pending: Dict[str, object]) -> range:
    tasks = pending["tasks"]
    assert isinstance(tasks, list)
    return range(sum(_length(str(part)) for part in tasks))


def _length(part: str) -> int:
    ends, _, step = part.partition(":")
    first, _, last = ends.partition("-")
    return len(range(int(first), int(last or first) + 1, int(step or 1)))
