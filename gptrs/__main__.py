"""``python -m gptrs``."""

from gptrs.cli.main import main

main()
