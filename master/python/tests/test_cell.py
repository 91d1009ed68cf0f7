"""Tests within a real cell, which `tests/e2e/python.rs` brings up."""

import os
import subprocess
import threading
import time
import unittest
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait

import gridwright
from gridwright import Cell, CommandError, Executor, TaskFailed


def hold_until(path: str) -> str:
    """The text of a script that runs until a file is there."""
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def eventually(is_so, patience_s=60.0):
    """Waits until something outside is as expected."""
    deadline = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError("it did not become so")
        time.sleep(0.05)


class Jobs(unittest.TestCase):
    def test_an_array_ends_with_a_record_for_each_task_and_those_that_were_deleted(self):
        job = gridwright.submit("exit $SGE_TASK_ID", name="codes", tasks=range(2, 9, 3), options=["-h"])
        self.assertEqual(list(job.tasks), [2, 5, 8])
        self.assertEqual(job.status().held, 3)
        job.cancel(5)
        job.release()
        outcome = job.wait(60)
        self.assertEqual([(record.task, record.exit_status) for record in outcome.records], [(2, 2), (8, 8)])
        self.assertEqual(outcome.deleted, (5,))
        self.assertEqual((outcome.is_ok, outcome.exit_status), (False, 8))
        self.assertTrue(job.is_done() and job.status().is_over)

    def test_words_and_variables_reach_the_job_unchanged(self):
        odd = "a b\n'c' $HOME, \"d\"=e"
        job = gridwright.submit(
            ["sh", "-c", 'printf "%s|%s" "$1" "$ODD"', "sh", odd], name="odd", environment={"ODD": odd, "B": "1,2"}
        )
        self.assertTrue(job.wait(60).is_ok)
        self.assertEqual(job.output(), f"{odd}|{odd}")

    def test_a_job_of_somebody_else_s_program_is_waited_for_and_an_ended_one_is_known(self):
        said = subprocess.run(
            ["qsub", "-terse", "-t", "1-2", "-b", "y", "-N", "other", "true"], stdout=subprocess.PIPE, check=True
        )
        number = int(said.stdout.split(b".")[0])
        self.assertTrue(gridwright.job(number).wait(60).is_ok)
        again = gridwright.job(number)
        self.assertEqual((again.name, again.tasks, again.is_done()), ("other", range(1, 3), True))
        self.assertEqual(len(again.wait(0).records), 2)
        self.assertEqual(len(Cell(os.environ["GRIDWRIGHT_DIR"]).job(number).accounting()), 2)
        with self.assertRaisesRegex(CommandError, "does not exist"):
            gridwright.job(999_999)

    def test_a_job_that_cannot_start_is_an_outcome_and_goes_on_when_it_is_cleared(self):
        missing = os.path.abspath("not-yet")
        job = gridwright.submit(["true"], name="stuck", directory=missing, output="/dev/null")
        outcome = job.wait(60)
        self.assertFalse(outcome.is_ok)
        self.assertEqual((outcome.records, len(outcome.errors), outcome.exit_status), ((), 1, 1))
        self.assertIn("not-yet", outcome.errors[0].reason)
        self.assertEqual(job.status().error, 1)
        os.mkdir(missing)
        subprocess.run(["qmod", "-cj", str(job.id)], check=True, stdout=subprocess.DEVNULL)
        eventually(job.is_done)
        self.assertTrue(job.wait(60).is_ok)

    def test_waiting_ends_in_time_and_the_job_goes_on(self):
        job = gridwright.submit(hold_until(os.path.abspath("go-1")), name="long")
        with self.assertRaises(TimeoutError):
            job.wait(0.1)
        with self.assertRaises(TimeoutError):
            list(gridwright.as_completed([job], 0.1))
        open("go-1", "w").close()
        self.assertTrue(job.wait(60).is_ok)

    def test_refusals_say_what_is_wrong(self):
        with self.assertRaisesRegex(CommandError, "nosuch"):
            gridwright.submit(["true"], resources={"nosuch": 1})
        for tasks in (0, range(0, 3), range(3, 1, -1)):
            with self.assertRaisesRegex(ValueError, "numbered from 1"):
                gridwright.submit(["true"], tasks=tasks)
        with self.assertRaises(ValueError):
            gridwright.submit([])

    def test_many_jobs_that_end_at_once_are_all_seen(self):
        jobs = []
        threads = [threading.Thread(target=lambda: jobs.append(gridwright.submit(["true"]))) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({job.id for job in gridwright.as_completed(jobs, 60)}, {job.id for job in jobs})


class Calls(unittest.TestCase):
    def test_results_and_exceptions_come_back(self):
        with Executor(name="calls") as executor:
            doubled = executor.map(lambda a, b: a * b, range(5), range(5, 10), chunksize=2)
            self.assertEqual(list(doubled), [0, 6, 14, 24, 36])
            with self.assertRaisesRegex(ZeroDivisionError, "division") as raised:
                executor.submit(lambda: 1 // 0).result(60)
            self.assertIn("in <lambda>", str(raised.exception.__cause__))
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                executor.submit(threading.Lock).result(60)
        self.assertEqual([name for name in os.listdir(".") if name.startswith("gridwright-")], [])

    def test_a_call_without_a_result_says_how_its_task_ended(self):
        with Executor(name="killed", directory="kept") as executor:
            with self.assertRaisesRegex(TaskFailed, "exit status 137") as failed:
                executor.submit(os.kill, 0, 9).result(60)
            self.assertEqual(failed.exception.record.exit_status, 137)

    def test_calls_that_do_not_run_yet_are_cancelled(self):
        go = os.path.abspath("go-2")

        def until_go():
            while not os.path.exists(go):
                time.sleep(0.05)
            return "went"

        executor = Executor(name="cancelled")
        first = executor.submit(until_go)
        eventually(first.running)
        self.assertFalse(first.cancel())
        held = Executor(name="held", options=["-h"])
        waiting = held.submit(until_go)
        self.assertTrue(waiting.cancel())
        self.assertEqual(wait([waiting], 10).not_done, set())
        with self.assertRaises(CancelledError):
            waiting.result()
        with self.assertRaises(FutureTimeout):
            list(held.map(until_go_of, ["x", "y"], timeout=0.1))
        held.shutdown(cancel_futures=True)
        open(go, "w").close()
        self.assertEqual(first.result(60), "went")
        executor.shutdown()
        with self.assertRaises(RuntimeError):
            executor.submit(until_go)


def until_go_of(name):
    return name


if __name__ == "__main__":
    unittest.main()
