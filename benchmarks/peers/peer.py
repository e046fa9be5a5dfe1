"""A framework's step in a separate process, for programs that run contenders in turns."""
import json
import os
import pathlib
import select
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
START_LIMIT = 180  # seconds
WINDOW_LIMIT = 60


class Failed(Exception):
    pass


class Peer:
    """A framework's step in a separate process, which measures a window on request."""

    def __init__(self, python, command, log):
        script, *arguments = command.split()
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            environment.pop(name, None)
        self.command = command
        self.pending = b""
        self.process = subprocess.Popen(
            [python, HERE / script, *arguments, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, bufsize=0, env=environment, start_new_session=True)
        try:
            self.description = self.answer(START_LIMIT)["ready"]
        except BaseException:
            self.stop()
            raise

    def answer(self, limit):
        deadline = time.monotonic() + limit
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"{self.command} did not answer within {limit} s")
            part = os.read(self.process.stdout.fileno(), 4096)
            if not part:
                raise Failed(f"{self.command} ended")
            self.pending += part
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def measure(self):
        try:
            self.process.stdin.write(b"\n")
        except BrokenPipeError:
            raise Failed(f"{self.command} ended") from None
        return self.answer(WINDOW_LIMIT)["per_second"]

    def stop(self):
        """Kills the process and its children."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
