"""Python worker processes that answer requests, one line of JSON each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from gptrs.errors import BenchError
from gptrs.isolated import start_python
from gptrs_bench.peers import PeerError
from gptrs_bench.processes import last_words

_PATIENCE = 10.0  # seconds in which a process must end that nobody asks any more


class Worker:
    """A Python process that runs ``module`` and answers requests.

    It starts at once, on the cores that this process has then and with the variables ``settings``,
    and ends when it is closed. With ``quiet`` what it says on stderr is not shown; its last line is
    said where it ends by itself.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        settings: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> None:
        pipe: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._said: IO[bytes] | None = None
        if quiet:
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `close`)
        env = os.environ | dict(settings or {})
        self.process = start_python("-m", module, *arguments, env=env, stderr=self._said, **pipe)

    def ask(self, *request: Any) -> Any:
        """The answer to ``request``, which is a function of the module's and its arguments.

        Raises `BenchError`.
        """
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        if not (line := process.stdout.readline()):
            raise BenchError(f"its process ended with {process.wait()}{self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["value"]

    def _last_words(self) -> str:
        return "" if self._said is None else last_words(self._said)

    def close(self) -> None:
        """End the process."""
        process = self.process
        with suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:  # in the middle of an answer
            process.kill()
            process.wait()
        for stream in (process.stdout, self._said):
            if stream is not None:
                stream.close()


def serve(begin: Callable[[], dict[str, Callable[..., Any]]]) -> None:
    """Answer the requests of a `Worker` with the functions that ``begin`` returns by name; where
    it or one of them raises an error, with that.

    Whatever else is printed, by ``begin`` too, goes to stderr.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    functions: dict[str, Callable[..., Any]] = {}
    failed = ""
    try:
        functions = begin()
    except Exception as error:  # of any library
        failed = _words(error)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(_answer(functions, failed, name, arguments)), file=answers, flush=True)


def _answer(
    functions: dict[str, Callable[..., Any]], failed: str, name: str, arguments: list[Any]
) -> dict[str, Any]:
    if failed:
        return {"error": failed}
    try:
        return {"value": functions[name](*arguments)}
    except Exception as error:  # of any library
        return {"error": _words(error)}


def _words(error: Exception) -> str:
    """What ``error`` says, in a line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, PeerError | BenchError) else f"{type(error).__name__}: {text}"
