"""A program that forks while its other threads compile, trace, bind and generate.

Each child does what they do, and ends with 0. ``python -m tests.support.forking COUNT`` prints
the codes of the children that ended otherwise; one that hangs is ended by a signal.
"""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gptrs
from gptrs import ptir

AT_ONCE = 4  # children
EVERY = 20  # of which one compiles, which takes longest
SECONDS = 60  # of a child, which needs one

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
model = gptrs.load("stories")
known = ptir.jit(lambda x: ptir.softmax(x + 1))
any_rows = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: ptir.tanh(x) + 1)
numbers = itertools.count(1)


def compile_one(number: int) -> None:
    """Run a function whose kernel nobody has compiled."""
    factor = 1 + number / 2**20
    made = ptir.jit(lambda x: ptir.tanh(x) * factor + x)
    np.testing.assert_allclose(made(X).numpy(), np.tanh(X) * factor + X, rtol=1e-5)


def trace() -> None:
    """Run a function that was not traced, whose kernels are there."""
    ptir.jit(lambda x: ptir.softmax(x @ x.T))(X)


def bind(rows: int) -> None:
    """Run a plan for a size that it may not know."""
    x = np.ones((rows, 8), np.float32)
    np.testing.assert_allclose(any_rows(x).numpy(), np.tanh(x) + 1, rtol=1e-6)


def generate() -> str:
    """Two words."""
    return model.generate("Once upon", max_tokens=2)


def work(job: Callable[[int], object]) -> None:
    """Do it for ever, in a thread, and leave some time to others."""
    for number in numbers:
        job(number)
        time.sleep(0.01)


def do_all(number: int, text: str) -> None:
    """What child ``number`` does."""
    np.testing.assert_array_equal(known(X).numpy(), expected)
    bind(500 + number)
    trace()
    assert generate() == text
    if number % EVERY == 0:
        compile_one(-number - 1)


def fork(number: int, text: str) -> int:
    """Start a child."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(SECONDS)
            do_all(number, text)
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    return pid


def codes(count: int, text: str) -> Iterator[int]:
    """The exit codes of ``count`` children, a few of which run at once."""
    running = 0
    for number in range(count):
        fork(number, text)
        running += 1
        if running == AT_ONCE:
            yield os.waitstatus_to_exitcode(os.wait()[1])
            running -= 1
    for _ in range(running):
        yield os.waitstatus_to_exitcode(os.wait()[1])


expected: Any = known(X).numpy()

if __name__ == "__main__":
    text = generate()
    for each in (compile_one, bind):
        each(next(numbers))
    trace()
    jobs: tuple[Callable[[int], object], ...] = (
        *(compile_one, lambda _: trace()),
        *(lambda number: bind(number % 500), lambda _: generate()),
    )
    for job in jobs:
        threading.Thread(target=work, args=(job,), daemon=True).start()
    print([code for code in codes(int(sys.argv[1]), text) if code != 0], flush=True)
    os._exit(0)
