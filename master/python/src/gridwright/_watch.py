"""Follows jobs by the event stream of the master, without polling.

One thread per cell reads ``gridwright events``. It learns of each end of a task as it happens.
After a break of the stream, and for jobs that were submitted elsewhere, it asks ``qstat`` and
``qacct`` once what happened before.
"""

from __future__ import annotations

import atexit
import json
import os
import pwd
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from ._commands import CommandError, Commands, find
from ._records import Record

_KINDS = "task-started,task-ended,task-ending,tasks-deleted,error-cleared,job-finished,complete"
#: How long a stream that cannot be read is tried again before waiting fails.
_PATIENCE_S = 60.0


class Change(Enum):
    """What can become of a task."""

    STARTED = "started"
    ENDED = "ended"
    DELETED = "deleted"
    ERROR = "error"
    CLEARED = "cleared"


@dataclass(frozen=True)
class TaskChange:
    """A change of one task. ``record`` is there after an end and an error."""

    change: Change
    #: The number of the task; 1 if the job is not an array.
    task: int
    record: Optional[Record] = None


@dataclass
class FollowedJob:
    """What is known of a job that is followed."""

    number: int
    #: Whether tasks may have ended before the job was followed: its records are read at its end.
    is_known_in_part: bool
    records: Dict[int, Record] = field(default_factory=dict)
    deleted: Set[int] = field(default_factory=set)
    errors: Dict[int, Record] = field(default_factory=dict)
    is_finished: bool = False
    listeners: List[Callable[[TaskChange], None]] = field(default_factory=list)


class Watcher:
    """The reader of the event stream of one cell, for the jobs of this user."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._changed = threading.Condition(threading.RLock())
        self._followed: Dict[int, FollowedJob] = {}
        self._is_reading = False
        self._is_complete = False
        self._failure: Optional[CommandError] = None
        #: Elements about jobs that are not followed, kept while a submission is under way.
        self._early: List[Dict[str, Any]] = []
        self._submissions = 0
        self._process: Optional[subprocess.Popen[bytes]] = None

    @contextmanager
    def submitting(self) -> Iterator[None]:
        """Keeps what happens to jobs that are submitted meanwhile, until they are followed."""
        self._begin()
        with self._changed:
            self._submissions += 1
        try:
            yield
        finally:
            with self._changed:
                self._submissions -= 1
                if self._submissions == 0:
                    self._early.clear()

    def follow(
        self, number: int, *, is_new: bool, listener: Optional[Callable[[TaskChange], None]] = None
    ) -> FollowedJob:
        """Follows a job. ``is_new``: it was submitted within :meth:`submitting`."""
        self._begin()
        with self._changed:
            job = self._followed.get(number)
            if job is None:
                job = FollowedJob(number, is_known_in_part=not is_new)
                self._followed[number] = job
                if listener:
                    job.listeners.append(listener)
                for element in [element for element in self._early if element["job"] == number]:
                    self._apply(job, element)
                if not is_new:
                    self._look_up([job])
        return job

    def wait(self, jobs: Iterable[FollowedJob], is_enough: Callable[[], bool], timeout: Optional[float]) -> bool:
        """Waits until ``is_enough``. Returns whether it is, within ``timeout`` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: is_enough() or self._failure is not None, timeout)
            if is_enough():
                return True
            if self._failure is not None:
                raise self._failure
            return False

    def _begin(self) -> None:
        """Starts the reader, and waits until nothing can be missed any more."""
        with self._changed:
            if not self._is_reading:
                self._is_reading, self._failure = True, None
                threading.Thread(target=self._read, name="gridwright-events", daemon=True).start()
                atexit.register(self._end)
            self._changed.wait_for(lambda: self._is_complete or self._failure is not None)
            if self._failure is not None:
                raise self._failure

    def _end(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def _read(self) -> None:
        since = time.monotonic()
        while True:
            try:
                error, was_complete = self._read_stream()
            except (CommandError, KeyError, TypeError, ValueError) as failure:
                # Nothing here may end this thread without a word: others wait for it.
                self._end()
                error, was_complete = CommandError(["gridwright", "events"], 1, f"unreadable: {failure!r}"), False
            with self._changed:
                self._is_complete = False
                since = time.monotonic() if was_complete else since
                if time.monotonic() - since > _PATIENCE_S or error.status == 127:
                    self._is_reading, self._failure = False, error
                    self._changed.notify_all()
                    return
            time.sleep(0.2)

    def _read_stream(self) -> Tuple[CommandError, bool]:
        """Reads one stream to its end. Returns why it ended, and whether it had been complete."""
        environment = self._commands.environment()
        user = pwd.getpwuid(os.geteuid()).pw_name
        words = ["gridwright", "events", "--fmt", "json", "--full", "--owner", user, "--kind", _KINDS]
        try:
            process = subprocess.Popen(
                find(words, environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            return CommandError(words, 127, str(error)), False
        self._process = process
        was_complete = False
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            element = json.loads(line)
            was_complete = was_complete or element["kind"] == "complete"
            self._take(element)
        said = process.stderr.read().decode("utf-8", "replace").strip()
        return CommandError(words, process.wait(), said), was_complete

    def _take(self, element: Dict[str, Any]) -> None:
        with self._changed:
            if element["kind"] == "complete":
                self._look_up([job for job in self._followed.values() if not job.is_finished])
                self._is_complete = True
            else:
                job = self._followed.get(element["job"])
                if job is not None:
                    self._apply(job, element)
                elif self._submissions and self._is_complete:
                    self._early.append(element)
            self._changed.notify_all()

    def _apply(self, job: FollowedJob, element: Dict[str, Any]) -> None:
        kind, data = element["kind"], element["data"]
        if kind == "task-started":
            self._change(job, TaskChange(Change.STARTED, data["task"]["task"]))
        elif kind == "task-ended" and data["task"]["pe_task"] == 0:
            self._apply_end(job, data)
        elif kind == "tasks-deleted":
            for task in _numbers(data["tasks"]):
                self._change(job, TaskChange(Change.DELETED, task))
        elif kind == "error-cleared":
            for task in _numbers(data["tasks"]):
                self._change(job, TaskChange(Change.CLEARED, task))
        elif kind == "job-finished":
            if job.is_known_in_part:
                self._read_records(job)
            job.is_finished = True
            del self._followed[job.number]

    def _apply_end(self, job: FollowedJob, data: Dict[str, Any]) -> None:
        # `{"error": …}` says why, too.
        then = data["then"] if isinstance(data["then"], str) else next(iter(data["then"]))
        change = {"done": Change.ENDED, "error": Change.ERROR}.get(then)
        if change is not None:
            record = Record.from_json(data["record"])
            self._change(job, TaskChange(change, data["task"]["task"], record))

    def _change(self, job: FollowedJob, change: TaskChange) -> None:
        if change.change is Change.ENDED and change.record:
            job.records[change.task] = change.record
        elif change.change is Change.DELETED and change.task not in job.records:
            job.deleted.add(change.task)
        elif change.change is Change.ERROR and change.record:
            job.errors[change.task] = change.record
        if change.change in (Change.CLEARED, Change.DELETED):
            job.errors.pop(change.task, None)
        for listener in job.listeners:
            listener(change)

    def _look_up(self, jobs: List[FollowedJob]) -> None:
        """Asks what happened to jobs while the stream was not read."""
        if not jobs:
            return
        listed = self._commands.document(["qstat", "-j", ",".join(str(job.number) for job in jobs)], may_fail=True)
        there = {entry["row"]["number"] for entry in listed.get("jobs", [])}
        for job in jobs:
            job.is_known_in_part = True
            if job.number not in there:
                self._read_records(job)
                job.is_finished = True
                self._followed.pop(job.number, None)

    def _read_records(self, job: FollowedJob) -> None:
        document = self._commands.document(["qacct", "-j", str(job.number)], may_fail=True)
        last: Dict[int, Dict[str, Any]] = {}
        for raw in document.get("accounting", []):
            key = raw["key"]
            if key["pe_task"] == 0 and key["attempt"] >= last.get(key["task"], raw)["key"]["attempt"]:
                last[key["task"]] = raw
        for task, raw in last.items():
            if task not in job.records and task not in job.deleted:
                self._change(job, TaskChange(Change.ENDED, task, Record.from_json(raw)))


def _numbers(ranges: List[str]) -> Iterator[int]:
    """The task numbers of ranges such as ``2-8:3``."""
    for text in ranges:
        ends, _, step = text.partition(":")
        first, _, last = ends.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))
