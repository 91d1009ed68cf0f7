"""Runs the commands of a cell, and turns refusals into exceptions."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Sequence

#: Exit status of ``qsub`` beyond a limit on jobs: the same submission may succeed later.
_LIMIT_STATUS = 25
#: Exit status of a command whose connection broke after it had sent a change.
_UNKNOWN_STATUS = 75


class CommandError(Exception):
    """A command was refused, or did not reach the master."""

    def __init__(self, command: Sequence[str], status: int, message: str) -> None:
        super().__init__(message or f"{command[0]} ended with exit status {status}")
        #: The words of the command.
        self.command = list(command)
        #: Its exit status; 127 if the program does not exist.
        self.status = status


class SubmissionLimit(CommandError):
    """A limit on jobs was reached. The same submission may succeed later."""


class OutcomeUnknown(CommandError):
    """The connection broke after a change had been sent. Look before you repeat it."""


class Commands:
    """The commands of one cell."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)

    def environment(self, more: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
        """The environment of the commands: that of this process, and the settings of the cell."""
        return {**os.environ, **self._environment, **(more or {})}

    def run(
        self,
        words: Sequence[str],
        *,
        text: str = "",
        cwd: Optional[str] = None,
        variables: Optional[Mapping[str, str]] = None,
        may_fail: bool = False,
    ) -> str:
        """Runs a command, and returns what it printed on standard output.

        With ``may_fail``, an exit status of 1 is an answer, not an error.
        """
        environment = self.environment(variables)
        try:
            done = subprocess.run(
                find(words, environment),
                input=text.encode("utf-8", "surrogateescape"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=environment,
                check=False,
            )
        except FileNotFoundError as error:
            raise CommandError(words, 127, f"{error}: is the bin directory of the cell in PATH?") from error
        printed = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0 or (may_fail and done.returncode == 1):
            return printed
        kind = {_LIMIT_STATUS: SubmissionLimit, _UNKNOWN_STATUS: OutcomeUnknown}.get(done.returncode, CommandError)
        raise kind(words, done.returncode, done.stderr.decode("utf-8", "replace").strip())

    def document(self, words: Sequence[str], *, may_fail: bool = False) -> Dict[str, Any]:
        """Runs a command that prints a JSON document, and returns the document.

        With ``may_fail``, a command that printed nothing returns an empty document.
        """
        printed = self.run([*words, "-fmt", "json"], may_fail=may_fail)
        if may_fail and not printed.strip():
            return {}
        document: Dict[str, Any] = json.loads(printed)
        if document.get("version") != 1:
            raise CommandError(words, 0, f"unknown version {document.get('version')} of the JSON of {words[0]}")
        return document


def find(words: Sequence[str], environment: Mapping[str, str]) -> List[str]:
    """The words of a command whose program is searched for along the PATH of ``environment``."""
    for directory in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory or ".", words[0])
        if os.access(path, os.X_OK):
            return [path, *words[1:]]
    return list(words)
