"""A cell: submitting jobs, waiting for several of them, and accounting."""

from __future__ import annotations

import os
import time
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._commands import CommandError, Commands
from ._jobs import Job, default_output
from ._records import Record
from ._watch import TaskChange, Watcher

Value = Union[str, int, float, bool]
Tasks = Union[int, range]


class Cell:
    """A cell, and the user's way into it.

    ``Cell()`` is the cell of the environment. ``Cell("/var/lib/gridwright")`` is the one with that
    state directory, whatever the environment says.
    """

    def __init__(self, directory: Optional[str] = None) -> None:
        settings: Dict[str, str] = {}
        if directory is not None:
            directory = os.path.abspath(directory)
            settings = {"GRIDWRIGHT_DIR": directory, "SGE_ROOT": directory}
        self._commands = Commands(settings)
        self._watcher = Watcher(self._commands)

    def submit(
        self,
        command: Union[str, Sequence[str]],
        *,
        name: Optional[str] = None,
        resources: Optional[Mapping[str, Value]] = None,
        queue: Optional[str] = None,
        pe: Optional[Tuple[str, Union[int, str]]] = None,
        tasks: Optional[Tasks] = None,
        max_running: Optional[int] = None,
        directory: Optional[str] = None,
        environment: Optional[Mapping[str, str]] = None,
        output: Optional[str] = None,
        after: Iterable[Union[Job, int]] = (),
        project: Optional[str] = None,
        priority: Optional[int] = None,
        options: Sequence[str] = (),
        _listener: Optional[Callable[[TaskChange], None]] = None,
    ) -> Job:
        """Submits a job.

        :param command: a list of words, of which the first is a program: they reach it unchanged.
            Or a text, which ``/bin/sh`` runs as a script; its lines with ``#$`` are options.
        :param name: the job's name. Default: the base name of the program, or ``script``.
        :param resources: hard requests, such as ``{"h_vmem": "2G", "h_rt": 600}`` (``-l``).
        :param queue: the wanted queues, as in ``-q``.
        :param pe: a parallel environment and the number of slots, or a range such as ``"2-8"``.
        :param tasks: makes the job an array: a number of tasks from 1 on, or a range.
        :param max_running: the most tasks of the array that run at once (``-tc``).
        :param directory: where the job runs. Default: the current directory.
        :param environment: variables of the job. It gets none of this process by itself.
        :param output: the file for output and errors, with ``$JOB_ID`` and ``$TASK_ID`` as in
            qsub(1). Default: ``NAME.oJOB`` or ``NAME.oJOB.TASK`` in ``directory``.
        :param after: jobs that have to end before this one starts (``-hold_jid``).
        :param project: the project of the job (``-P``).
        :param priority: from -1023 to 0; managers may raise it to 1024 (``-p``).
        :param options: further words of ``qsub``. They may not change names or paths given above.
        :raises CommandError: the job was refused; the text says why and how to mend it.
        """
        is_text = isinstance(command, str)
        if not command:
            raise ValueError("the command is empty: give a program and its arguments, or a script")
        name = name or ("script" if is_text else os.path.basename(command[0]))
        directory = os.path.abspath(directory or os.getcwd())
        path = os.path.join(directory, output) if output else default_output(directory, name, tasks is not None)
        words = ["-N", name, "-wd", directory, "-o", path, "-j", "y"]
        words += _request_words(resources, queue, pe, tasks, max_running)
        words += _place_words(after, project, priority)
        words += ["-v", ",".join(environment)] if environment else []
        words += options
        words += ["-S", "/bin/sh", "-"] if is_text else ["-b", "y", "-shell", "n", *command]
        text = str(command) if is_text else ""
        return self._submit(words, text, _range(tasks), name, path, environment, _listener)

    def submit_script(self, path: str, *arguments: str, options: Sequence[str] = ()) -> Job:
        """Submits a script file as ``qsub OPTIONS PATH ARGUMENTS`` does.

        Its lines with ``#$`` count, also for the name and the place of the output. So the job does
        not know its :meth:`Job.output_path`.
        """
        return self._submit([*options, path, *arguments], "", None, os.path.basename(path), None, None)

    def _submit(
        self,
        words: Sequence[str],
        text: str,
        tasks: Optional[range],
        name: str,
        output: Optional[str],
        environment: Optional[Mapping[str, str]],
        listener: Optional[Callable[[TaskChange], None]] = None,
    ) -> Job:
        with self._watcher.submitting():
            said = self._commands.run(["qsub", "-terse", *words], text=text, variables=environment)
            number, _, ranges = said.split()[0].partition(".")
            followed = self._watcher.follow(int(number), is_new=True, listener=listener)
        if tasks is None and ranges:
            ends, _, step = ranges.partition(":")
            first, _, last = ends.partition("-")
            tasks = range(int(first), int(last) + 1, int(step or 1))
        return Job(self, followed, tasks, name, output)

    def job(self, number: int) -> Job:
        """A job that was submitted elsewhere, by the same user. It may have ended.

        :raises CommandError: no such job is there, and accounting knows none.
        """
        listed = self._commands.document(["qstat", "-j", str(number)], may_fail=True)
        rows = [entry["row"] for entry in listed.get("jobs", [])]
        name, array = (rows[0]["name"], rows[0]["array"]) if rows else ("", None)
        records = [] if rows else self.accounting(job=number)
        if not rows and not records:
            raise CommandError(["qstat", "-j", str(number)], 1, f"job {number} does not exist")
        tasks = None
        if array:
            ends, _, step = array.partition(":")
            first, _, last = ends.partition("-")
            tasks = range(int(first), int(last or first) + 1, int(step or 1))
        elif records:
            name = records[0].name
            numbers = [record.task for record in records if record.task is not None]
            tasks = range(min(numbers), max(numbers) + 1) if numbers else None
        return Job(self, self._watcher.follow(number, is_new=False), tasks, name, None)

    def as_completed(self, jobs: Iterable[Job], timeout: Optional[float] = None) -> Iterator[Job]:
        """Yields each job when it has ended, the first to end first.

        A job whose remaining tasks could not start counts as well, see :meth:`Job.wait`.

        :raises TimeoutError: not all have ended within ``timeout`` seconds since the first call.
        """
        waiting = list(jobs)
        deadline = None if timeout is None else time.monotonic() + timeout
        while waiting:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            followed = [job._followed for job in waiting]
            if not self._watcher.wait(followed, lambda: any(job._is_settled() for job in waiting), left):
                raise TimeoutError(f"{len(waiting)} jobs have not ended within {timeout} s")
            settled = [job for job in waiting if job._is_settled()]
            waiting = [job for job in waiting if job not in settled]
            yield from settled

    def accounting(
        self, *, job: Optional[int] = None, owner: Optional[str] = None, days: Optional[int] = None
    ) -> List[Record]:
        """Records of accounting, in the order in which they were written.

        :param job: only those of this job.
        :param owner: only those of jobs of this user.
        :param days: only those of tasks that started within so many days.
        """
        words = ["qacct"]
        words += ["-o", owner] if owner is not None else []
        words += ["-d", str(days)] if days is not None else []
        words += ["-j", "*" if job is None else str(job)]
        document = self._commands.document(words, may_fail=True)
        return [Record.from_json(raw) for raw in document.get("accounting", [])]


def _request_words(
    resources: Optional[Mapping[str, Value]],
    queue: Optional[str],
    pe: Optional[Tuple[str, Union[int, str]]],
    tasks: Optional[Tasks],
    max_running: Optional[int],
) -> List[str]:
    words: List[str] = []
    for attribute, value in (resources or {}).items():
        words += ["-l", f"{attribute}={str(value).upper() if isinstance(value, bool) else value}"]
    if queue is not None:
        words += ["-q", queue]
    if pe is not None:
        words += ["-pe", pe[0], str(pe[1])]
    whole = _range(tasks)
    if whole is not None:
        words += ["-t", f"{whole[0]}-{whole[-1]}:{whole.step}"]
    if max_running is not None:
        words += ["-tc", str(max_running)]
    return words


def _place_words(after: Iterable[Union[Job, int]], project: Optional[str], priority: Optional[int]) -> List[str]:
    numbers = [str(job.id if isinstance(job, Job) else job) for job in after]
    words = ["-hold_jid", ",".join(numbers)] if numbers else []
    words += ["-P", project] if project is not None else []
    words += ["-p", str(priority)] if priority is not None else []
    return words


def _range(tasks: Optional[Tasks]) -> Optional[range]:
    if tasks is None:
        return None
    whole = range(1, tasks + 1) if isinstance(tasks, int) else tasks
    if len(whole) == 0 or whole[0] < 1 or whole.step < 1:
        raise ValueError(f"tasks={tasks!r}: tasks are numbered from 1 upwards, and there is at least one")
    return whole


