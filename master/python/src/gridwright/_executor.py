"""An executor of ``concurrent.futures`` whose calls are jobs."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import Executor as BaseExecutor
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, TypeVar, Union

import cloudpickle  # type: ignore[import-untyped]

from ._cell import Cell, Value
from ._jobs import Job
from ._records import Record
from ._watch import Change, TaskChange

T = TypeVar("T")

#: How long a result may need to appear on this host after its task has ended (NFS caches names).
_RESULT_PATIENCE_S = 10.0


class TaskFailed(Exception):
    """The task of a call ended without a result."""

    def __init__(self, message: str, record: Optional[Record]) -> None:
        super().__init__(message)
        #: The record of accounting. ``None`` if the task was deleted before it ran.
        self.record = record


class _Call(Future):  # type: ignore[type-arg]
    """The future of a call, which knows its task."""

    def __init__(self, batch: _Batch, task: int) -> None:
        super().__init__()
        self._batch, self.task = batch, task

    def cancel(self) -> bool:
        """Deletes the task, if it does not run yet. Returns whether the call is cancelled."""
        self._batch.cancel([self])
        return self.cancelled()

    def give_up(self) -> bool:
        """Cancels the call, and leaves its task. Returns whether it was not cancelled before."""
        return not self.cancelled() and super().cancel() and not self.set_running_or_notify_cancel()


class _Batch:
    """The calls of one job: one, or the tasks of an array."""

    def __init__(
        self, directory: str, count: int, run_later: Callable[..., Any], done: Callable[[_Batch], None]
    ) -> None:
        self.directory = directory
        self.calls = [_Call(self, task) for task in range(1, count + 1)]
        self._run_later, self._done = run_later, done
        self._job: Optional[Job] = None
        self._is_submitted = threading.Event()
        self._open = set(range(1, count + 1))
        #: Guards the states of the calls.
        self._lock = threading.Lock()

    def submitted(self, job: Job) -> None:
        """Learns the job of the calls."""
        self._job = job
        self._is_submitted.set()

    def cancel(self, calls: Iterable[_Call]) -> None:
        """Cancels those of the calls that do not run yet, and deletes their tasks."""
        with self._lock:
            cancelled = [call.task for call in calls if call.give_up()]
        self._delete(cancelled)

    def _delete(self, tasks: List[int]) -> None:
        self._is_submitted.wait()
        if tasks and self._job is not None:
            self._job.cancel(*(tasks if self._job.tasks is not None else []))

    def take(self, change: TaskChange) -> None:
        """Learns what became of a task. Called by the reader of the event stream."""
        call = self.calls[change.task - 1]
        if change.change is Change.STARTED:
            with self._lock:
                if not call.running() and not call.done():
                    call.set_running_or_notify_cancel()
        elif change.change is not Change.CLEARED:
            # Results may have to be waited for: not on the thread that reads the stream.
            self._run_later(self._settle, call, change)

    def _settle(self, call: _Call, change: TaskChange) -> None:
        with self._lock:
            if change.task not in self._open:
                return
            self._open.discard(change.task)
        if change.change is Change.ERROR:
            self._delete([change.task])
        if not call.cancelled():
            self._set(call, change)
        if not self._open:
            self._done(self)

    def _set(self, call: _Call, change: TaskChange) -> None:
        try:
            kind, value = self._result(change)
        except TaskFailed as failed:
            kind, value = "error", failed
        except Exception as error:  # noqa: BLE001 - the caller gets it, whatever unpickling raised
            kind, value = "error", error
        with self._lock:
            if call.cancelled():
                return
            if kind == "value":
                call.set_result(value)
            else:
                call.set_exception(value)

    def _result(self, change: TaskChange) -> Tuple[str, Any]:
        record = change.record
        if change.change is Change.DELETED:
            raise TaskFailed("the task was deleted before it had a result", None)
        path = os.path.join(self.directory, f"result-{change.task}")
        deadline = time.monotonic() + (_RESULT_PATIENCE_S if record is None or record.is_ok else 0.0)
        while True:
            try:
                with open(path, "rb") as file:
                    kind, value = pickle.load(file)
                return str(kind), value
            except FileNotFoundError:
                if time.monotonic() >= deadline:
                    raise TaskFailed(self._why(change), record) from None
            # Reading the directory makes NFS look for new names.
            os.listdir(self.directory)
            time.sleep(0.05)

    def _why(self, change: TaskChange) -> str:
        record = change.record
        if record is None:
            return "the task ended without a result"
        what = f"task {record.job}.{change.task} on {record.host} ended without a result"
        reason = f", {record.reason}" if record.reason else ""
        limit = f", limit {record.limit}" if record.limit else ""
        output = os.path.join(self.directory, f"output-{change.task}")
        return f"{what}: failed {record.failed}, exit status {record.exit_status}{reason}{limit}; it printed into {output}"


class Executor(BaseExecutor):
    """Runs calls as jobs of a cell.

    Calls, arguments and results are pickled (by cloudpickle, so functions of ``__main__`` and
    lambdas work) into files of a directory that all hosts share. The same Python program has to be
    at the same path on the hosts. :meth:`map` submits one array for all calls.
    """

    def __init__(
        self,
        cell: Optional[Cell] = None,
        *,
        directory: Optional[str] = None,
        name: str = "python",
        resources: Optional[Mapping[str, Value]] = None,
        queue: Optional[str] = None,
        pe: Optional[Tuple[str, Union[int, str]]] = None,
        max_running: Optional[int] = None,
        environment: Optional[Mapping[str, str]] = None,
        options: Iterable[str] = (),
    ) -> None:
        """Makes an executor; nothing is submitted yet.

        :param directory: where the files of the calls go. It is made, only the user may enter it,
            and what the executor puts there is removed at the end. Default: a new directory in the
            current one.
        :param environment: variables of the tasks. Default: ``PATH`` and ``PYTHONPATH`` of this
            process.

        The others are those of :meth:`Cell.submit`.
        """
        self._cell = cell or Cell()
        if directory is not None:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        self._directory = tempfile.mkdtemp(prefix="gridwright-", dir=os.path.abspath(directory or os.getcwd()))
        own = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        variables = dict(environment) if environment is not None else own
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [package, variables.get("PYTHONPATH", "")]))
        self._submission: Dict[str, Any] = {
            "name": name,
            "resources": resources,
            "queue": queue,
            "pe": pe,
            "environment": variables,
            "options": list(options),
        }
        self._max_running = max_running
        self._threads = ThreadPoolExecutor(4, "gridwright-results")
        self._batches: Set[_Batch] = set()
        self._changed = threading.Condition()
        self._count = 0
        self._is_shut_down = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Submits a call as a job of its own.

        :raises CommandError: the job was refused.
        """
        return self._submit([(fn, args, kwargs)])[0]

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: Optional[float] = None, chunksize: int = 1
    ) -> Iterator[T]:
        """Calls ``fn`` with the elements of the iterables, in tasks of one array.

        :param timeout: the most seconds from now on until the results are there.
        :param chunksize: how many calls one task makes, one after the other.
        :raises CommandError: the job was refused.
        """
        if chunksize < 1:
            raise ValueError("chunksize is at least 1")
        deadline = None if timeout is None else time.monotonic() + timeout
        every = list(zip(*iterables))
        parts = [every[begin : begin + chunksize] for begin in range(0, len(every), chunksize)]
        calls = self._submit([(_call_all, (fn, part), {}) for part in parts]) if parts else []
        return self._results(calls, deadline)

    def _results(self, calls: List[_Call], deadline: Optional[float]) -> Iterator[Any]:
        try:
            for call in calls:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                yield from call.result(left)
        finally:
            if calls:
                calls[0]._batch.cancel(calls)

    def _submit(self, calls: List[Tuple[Callable[..., Any], Tuple[Any, ...], Dict[str, Any]]]) -> List[_Call]:
        with self._changed:
            if self._is_shut_down:
                raise RuntimeError("cannot submit a call after shutdown")
            self._count += 1
            directory = os.path.join(self._directory, str(self._count))
        os.mkdir(directory, 0o700)
        for task, call in enumerate(calls, 1):
            with open(os.path.join(directory, f"call-{task}"), "wb") as file:
                cloudpickle.dump(call, file)
        batch = _Batch(directory, len(calls), self._threads.submit, self._forget)
        is_array = len(calls) > 1
        submission = {
            **self._submission,
            "directory": os.getcwd(),
            "output": os.path.join(directory, "output-$TASK_ID" if is_array else "output-1"),
            "tasks": len(calls) if is_array else None,
            "max_running": self._max_running if is_array else None,
        }
        with self._changed:
            self._batches.add(batch)
        try:
            program = [sys.executable, "-m", "gridwright._task", directory]
            batch.submitted(self._cell.submit(program, _listener=batch.take, **submission))
        except BaseException:
            self._forget(batch)
            raise
        return batch.calls

    def _forget(self, batch: _Batch) -> None:
        with self._changed:
            self._batches.discard(batch)
            self._changed.notify_all()
        if not any(isinstance(_error_of(call), TaskFailed) for call in batch.calls):
            shutil.rmtree(batch.directory, ignore_errors=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls.

        :param wait: returns only after all calls have ended.
        :param cancel_futures: cancels calls that do not run yet.

        Files of calls that ended without a result are kept, for what their tasks printed.
        """
        with self._changed:
            self._is_shut_down = True
            batches = list(self._batches)
        if cancel_futures:
            for batch in batches:
                batch.cancel(batch.calls)
        if wait:
            with self._changed:
                self._changed.wait_for(lambda: not self._batches)
            self._threads.shutdown()
            try:
                os.rmdir(self._directory)
            except OSError:
                pass


def _call_all(fn: Callable[..., T], arguments: List[Tuple[Any, ...]]) -> List[T]:
    return [fn(*one) for one in arguments]


def _error_of(call: Future[Any]) -> Optional[BaseException]:
    return call.exception(0) if call.done() and not call.cancelled() else None


