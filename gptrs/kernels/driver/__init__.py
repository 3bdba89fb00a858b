"""Drivers: execution of a plan's step table on threads, without a return to Python between steps.

| module | content |
|---|---|
| `step_table` | the instruction format: steps, status, chunks of an extent |
| `driver` | the interface: ``run(table, status, threads=...)`` |
| `current` | selection of the driver: ``GPTRS_DRIVER``, else the pool where it is supported |
| `pool_driver` | the pool driver: starts and stops native worker threads |
| `worker_pool` | the worker pool's code, as LLVM IR |
| `chunks` | claiming and running chunks of a step, as LLVM IR |
| `recording` | timestamps of steps and chunks, for profiles |
| `live_tables` | step tables by address, with reports of their steps |
| `repetition` | a step table run again and again: the iterations of a loop |
| `waiting` | spinning, yielding and futex sleeps, as LLVM IR |
| `control_block` | the pool's shared memory, and an IR builder for it |
| `main_thread` | the ident of the main thread, which handles signals |
| `polling` | signals while a kernel runs for long |
| `prange` | the Numba driver: a `prange` over chunks, or fused loops as parallel functions |
| `threads` | the number of threads: affinity, cgroups, settings |

What runs when: a backend binds a plan to a `StepTable` (kernel, argument block, extent, chunks per
step) and calls ``current_driver().run``. The driver runs the steps in order, with the GIL released:

    step table:  | kernel | arguments | extent | chunks |      one row per step
    step:        extent 0 ────────────────────────────── extent
    chunks:      |  0  |  1  |  2  |  3  |  ...                 fixed by (extent, chunks) alone
    threads:     the caller takes chunks from the front, workers from the middle

All chunks of a step end before the next step starts. A step with one chunk runs in the calling
thread. A kernel that fails stores a code in the plan's `Status`; the driver stops after that step.
"""
