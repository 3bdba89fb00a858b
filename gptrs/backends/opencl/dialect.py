"""The OpenCL dialect: a kernel of the C family as a ``__kernel`` function."""

from __future__ import annotations

from gptrs.backends.c_family.device_function import Words

OPENCL = Words(
    function="__kernel void",
    memory="__global ",
    restrict="restrict",
    shared="__local",
    item="get_global_id(0)",
    group="get_group_id(0)",
    lane="get_local_id(0)",
)
