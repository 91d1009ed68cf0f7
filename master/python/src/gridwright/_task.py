"""Runs a call of an executor on the host of its task: ``python -m gridwright._task DIRECTORY``."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import Any, Tuple

import cloudpickle  # type: ignore[import-untyped]


class RemoteTraceback(Exception):
    """The traceback of an exception that a call raised on the host of its task."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


class _RaisedError:
    """An exception with its traceback as a text, which pickling would lose."""

    def __init__(self, error: BaseException) -> None:
        self.error, self.text = error, "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def __reduce__(self) -> Tuple[Any, ...]:
        return _with_traceback, (self.error, self.text)


def _with_traceback(error: BaseException, text: str) -> BaseException:
    error.__cause__ = RemoteTraceback(text)
    return error


def main(directory: str) -> int:
    """Runs the call of this task. Returns the exit status: 0 if there is a result, or an exception."""
    task = os.environ.get("SGE_TASK_ID", "undefined")
    number = 1 if task == "undefined" else int(task)
    result: Tuple[str, Any]
    try:
        with open(os.path.join(directory, f"call-{number}"), "rb") as file:
            fn, args, kwargs = pickle.load(file)
        result = ("value", fn(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 - whatever the call raises belongs to its caller
        result = ("error", _RaisedError(error))
    try:
        content = cloudpickle.dumps(result)
    except Exception as error:  # noqa: BLE001 - results that cannot be pickled are the caller's to know
        content = cloudpickle.dumps(("error", TypeError(f"the result cannot be pickled: {error}")))
    path = os.path.join(directory, f"result-{number}")
    with open(f"{path}.new", "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)
    return 0


if __name__ == "__main__":
    # Pickles name the class below the module's own name, not below that of a program.
    from gridwright._task import main as run

    sys.exit(run(sys.argv[1]))
