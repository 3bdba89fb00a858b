"""``gptrs.profile``: where the time of a block of code went.

| module | contents |
|---|---|
| `recorder` | `profile`: one recording, from the driver's timestamps to spans and steps |
| `steps` | `ProfiledStep`: what a step is: kernel, line, module, arithmetic, traffic; `Row` |
| `profile` | `Profile`: tables by kernel, op, line, module; comparison; export |
| `roofline` | the machine's limits and the kernels as a figure |
| `exports` | files: Chrome's trace events (Perfetto), speedscope, JSON lines |

    driver's threads: timestamps ──▶ runs and chunks ┐
    Python steps: `live_tables.tell` ────────────────┼─▶ spans by thread ──▶ totals by step
    trace, passes, plan, kernels: `gptrs.events` ────┘

Timestamps are taken while a recording is on, two of the CPU's counter a step. Everything else is
done when a profile is read.
"""
