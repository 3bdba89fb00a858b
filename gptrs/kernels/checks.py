"""The kernel of a check: it fails where a truth value does not hold.

arguments:  | address of the i1 | address of its copy, the token | status |
"""

from __future__ import annotations

from gptrs.kernels.compiler.compile import Kernel, compile_source

CHECKED = 2
"""The code of a check that failed; in a loop with several, the next ones are of the others."""

_SOURCE = f"""
def check(holds: uint8s, token: uint8s, status: int64, first, last):
    token[0] = holds[0]
    if holds[0] == 0:
        report_failure(status, {CHECKED})
"""


def check_kernel() -> Kernel:
    """The kernel; its extent is 1."""
    return compile_source(_SOURCE, "check")
