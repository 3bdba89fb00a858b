"""The ``gptrs`` command: one module per subcommand, and their shared options and output.

| module | contents |
|---|---|
| `main` | entry point: signals, exit codes, late import of the rest |
| `app` | the typer application; errors as one message |
| `generate`, `chat`, `forward` | run a model |
| `info`, `fit` | files of a model; memory |
| `convert`, `export` | formats |
| `validate`, `trace` | comparison with torch |
| `bench` | measurement beside other libraries |
| `view` | the program of a model as an HTML page |
| `bisect`, `patterns` | miscompiled rewrites; the list of rewrite rules |
| `env`, `environment` | this machine and what gptrs uses of it |
| `cache` | the compiled kernels on disk |
| `sampling`, `running`, `dumps`, `profiling`, `model_argument` | shared options |
| `conversation`, `turns` | state and commands of a chat; what the user says |
| `completions`, `predictions`, `times`, `lines`, `comparison` | output as tables and JSON |
| `shell_completion` | models, backends and files for the Tab key |
| `progress`, `interrupt`, `names` | progress bars, Ctrl-C, printable names |

Order of a command: `main` → `app` → the subcommand parses and checks its options, and only then
imports the engine, so that ``--help`` and usage errors are fast. Docstrings of
subcommands are their help texts.
"""
