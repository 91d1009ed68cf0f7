"""Calls Python functions on the hosts of the cell."""

import os

from gridwright import Executor, TaskFailed


def square(number: int) -> int:
    return number * number


def fail() -> None:
    raise ValueError("no such thing")


with Executor(name="squares", max_running=2) as executor:
    print(list(executor.map(square, range(1, 5))))
    print(executor.submit(lambda: os.environ["JOB_NAME"]).result())
    try:
        executor.submit(fail).result()
    except ValueError as error:
        print(f"raised there, caught here: {error}")
    try:
        executor.submit(os._exit, 3).result()
    except TaskFailed as error:
        assert error.record is not None
        print(f"ended without a result: exit status {error.record.exit_status}")
