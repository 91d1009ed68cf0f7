"""Submits jobs to a Gridwright cell, waits for them, and reads their accounting.

The functions of this module use the cell that the environment names (``gridwright env``). For
another cell, make a :class:`Cell` and call its methods of the same names. Nothing here needs a
compiler: all questions go through the commands ``qsub``, ``qstat``, ``qacct`` and ``gridwright``.
"""

from __future__ import annotations

from ._cell import Cell
from ._commands import CommandError, OutcomeUnknown, SubmissionLimit
from ._executor import Executor, TaskFailed
from ._jobs import Job, Outcome, Status
from ._records import Record

__all__ = [
    "Cell",
    "CommandError",
    "Executor",
    "Job",
    "Outcome",
    "OutcomeUnknown",
    "Record",
    "Status",
    "SubmissionLimit",
    "TaskFailed",
    "accounting",
    "as_completed",
    "job",
    "submit",
    "submit_script",
]

_default = Cell()

submit = _default.submit
submit_script = _default.submit_script
job = _default.job
accounting = _default.accounting
as_completed = _default.as_completed
