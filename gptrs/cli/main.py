"""Entry point of the ``gptrs`` command: fast start, signals, exit without a traceback."""

from __future__ import annotations

import signal
import sys

from gptrs.cli import interrupt


def main() -> None:
    """Run the command line and exit; Ctrl-C is quiet, at any time."""
    interrupt.listen()
    if sys.platform != "win32":
        # Ends quietly when the reader of its output goes away: `gptrs generate | head`.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        code = _run()
    except KeyboardInterrupt:
        code = 130
    if code == 130:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_line()
    sys.exit(code)


def _run() -> int:
    """What takes long enough to be interrupted, imports too. Returns the exit code."""
    from gptrs.errors import MissingPackageError
    from gptrs.extras import needed_for

    try:
        with needed_for("the gptrs command"):
            from gptrs.cli.app import run

            return run()
    except MissingPackageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _end_line() -> None:
    """Leave the shell a line of its own."""
    for stream in (sys.stdout, sys.stderr):
        if stream.isatty():
            stream.write("\n")
            return


if __name__ == "__main__":
    main()
