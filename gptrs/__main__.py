"""``python -m gptrs``: the command line of `gptrs.cli`."""

from gptrs.cli.main import main

main()
