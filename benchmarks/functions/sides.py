"""How a case is called by each side, and how its arguments and results become that side's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.functions.case import Case
from gptrs import ptir, tree
from gptrs.ir.tensor import Tensor

Call = Callable[[], Any]
NAMES = ("numpy", "torch", "jax", "numba")


def installed() -> tuple[str, ...]:
    """The peers that can be imported here."""
    return tuple(name for name in NAMES if find_spec(name))


def prepare(name: str, threads: int) -> None:
    """Import a peer and limit its threads; before anything of it runs."""
    if name == "torch":
        _torch().set_num_threads(threads)
    elif name == "numba":
        import numba

        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))  # pyright: ignore
    elif name == "jax":  # as many threads as the process has cores
        _jax()


def ours(case: Case, arguments: tuple[Any, ...]) -> Call:
    """A call of the jitted function with NumPy arrays; its result is finished when it returns."""
    function: Any = ptir.jit(case.ours)
    return lambda: function(*arguments)


def peer(name: str, case: Case, arguments: tuple[Any, ...]) -> Call | None:
    """A call of a peer's function with arrays of its own; None where it has none."""
    return _PEERS[name](case, arguments)


def as_arrays(result: Any) -> list[Any]:
    """The arrays of a result of any side."""
    leaves, _ = tree.flatten(result, is_leaf=lambda leaf: not isinstance(leaf, _CONTAINERS))
    return [_as_array(leaf) for leaf in leaves]


_CONTAINERS = (tuple, list, dict)


def _as_array(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.numpy()
    if type(leaf).__module__ == "torch":
        return leaf.float().numpy() if str(leaf.dtype) == "torch.bfloat16" else leaf.numpy()
    return np.asarray(leaf)


def _mapped(function: Callable[[Any], Any], arguments: tuple[Any, ...]) -> Any:
    leaves, structure = tree.flatten(arguments)
    made = [function(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    return tree.unflatten(structure, made)


def _numpy_call(case: Case, arguments: tuple[Any, ...]) -> Call:
    return partial(case.xp, np, *arguments)


def _torch_call(case: Case, arguments: tuple[Any, ...]) -> Call | None:
    if case.torch is None:
        return None
    torch = _torch()

    def own(array: Any) -> Any:
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    return partial(case.torch, torch, *_mapped(own, arguments))


def _jax_call(case: Case, arguments: tuple[Any, ...]) -> Call | None:
    if case.jax is None:
        return None
    jax = _jax()
    function, own = jax.jit(partial(case.jax, jax)), _mapped(jax.numpy.asarray, arguments)
    return lambda: jax.block_until_ready(function(*own))


def _numba_call(case: Case, arguments: tuple[Any, ...]) -> Call | None:
    return None if case.numba is None else partial(case.numba, _compiled, *arguments)


_PEERS: dict[str, Callable[[Case, tuple[Any, ...]], Call | None]] = {
    "numpy": _numpy_call,
    "torch": _torch_call,
    "jax": _jax_call,
    "numba": _numba_call,
}


@cache
def _torch() -> Any:
    import torch

    torch.set_grad_enabled(False)
    return torch


@cache
def _jax() -> Any:
    import jax  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)  # pyright: ignore[reportUnknownMemberType]
    jax.config.update("jax_platforms", "cpu")  # pyright: ignore[reportUnknownMemberType]
    return jax  # pyright: ignore[reportUnknownVariableType]


@cache
def _compiled(function: Callable[..., Any]) -> Any:
    import numba

    return numba.njit(parallel=True, fastmath=True)(function)  # pyright: ignore
