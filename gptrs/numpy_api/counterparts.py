"""What to write for a name that ``ptir`` lacks: a slip, or a name of NumPy, torch or JAX."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from gptrs.ir.dispatch import OPS
from gptrs.ir.names import nearest
from gptrs.locks import late_import
from gptrs.numpy_api import NAMES

_NO_GRADIENT = "leave it out: there are no derivatives"
_NO_DEVICE = "leave it out: the CPU is the only device"
_NO_WAIT = "leave it out: a call returns when its results are there"

COUNTERPARTS: dict[str, dict[str, str]] = {
    "ptir": {
        "asnumpy": "x.numpy()",
        "bernoulli": "ptir.random.bernoulli(key, p)",
        "binomial": "ptir.random.binomial(key, n, p)",
        "block_until_ready": _NO_WAIT,
        "compile": "ptir.jit",
        "cuda": _NO_DEVICE,
        "device_put": _NO_DEVICE,
        "enable_grad": _NO_GRADIENT,
        "fft2": "ptir.fft.fft2",
        "gather_nd": "x[i, j]",
        "grad": "there are no derivatives",
        "inference_mode": _NO_GRADIENT,
        "initial_seed": "key = ptir.random.key(seed), an argument of its functions",
        "lax": "its functions are in ptir: ptir.scan, ptir.while_loop, ptir.cond",
        "manual_seed": "key = ptir.random.key(seed), an argument of its functions",
        "multinomial": "ptir.random.categorical(key, logits)",
        "ndarray": "ptir.Tensor",
        "njit": "ptir.jit",
        "no_grad": _NO_GRADIENT,
        "normal": "mean + std * ptir.random.normal(key, shape)",
        "numpy": "its functions are in ptir",
        "poisson": "ptir.random.poisson(key, rate)",
        "prange": "ptir.vmap, or operations on whole arrays",
        "rand": "ptir.random.uniform(key, shape)",
        "rand_like": "ptir.random.uniform(key, x.shape)",
        "randint": "ptir.random.randint(key, shape, low, high)",
        "randint_like": "ptir.random.randint(key, x.shape, low, high)",
        "randn": "ptir.random.normal(key, shape)",
        "randn_like": "ptir.random.normal(key, x.shape)",
        "randperm": "ptir.random.permutation(key, n)",
        "seed": "key = ptir.random.key(seed), an argument of its functions",
        "set_default_dtype": "dtypes are arguments: dtype='f64'",
        "set_grad_enabled": _NO_GRADIENT,
        "uint": "ptir.ui64",
    },
    "ptir.linalg": {
        "eigs": "ptir.linalg.eig",
        "lu": "ptir.linalg.solve solves equations, ptir.linalg.det multiplies the pivots",
        "lu_factor": "ptir.linalg.solve solves equations",
        "mm": "ptir.matmul",
        "tensorsolve": "ptir.linalg.solve(a.reshape(n, n), b.reshape(n))",
        "tensorinv": "ptir.linalg.inv(a.reshape(n, n))",
        "vander": "ptir.vander",
    },
    "ptir.nn": {
        "grouped_mm": "ptir.einsum or a loop over groups multiplies matrices",
        "scaled_grouped_mm": "ptir.einsum or a loop over groups multiplies matrices",
        "scaled_mm": "quantized products are ptir.dot_general of ptir.dequantize",
        "Module": "gptrs.nn.Module",
        "Linear": "gptrs.nn.Linear",
        "Parameter": "ptir.Parameter",
    },
    "ptir.random": {
        "default_rng": "ptir.random.key(seed)",
        "multinomial": "ptir.random.categorical(key, logits)",
        "rand": "ptir.random.uniform(key, shape)",
        "randn": "ptir.random.normal(key, shape)",
        "random": "ptir.random.uniform(key, shape)",
        "seed": "ptir.random.key(seed)",
        "shuffle": "ptir.random.permutation(key, x)",
        "standard_normal": "ptir.random.normal(key, shape)",
    },
    "ptir.signal.windows": {
        name: f"ptir.tensor(scipy.signal.windows.{name}(m, ...))"
        for name in ("chebwin", "dpss", "kaiser_bessel_derived", "taylor")
    },
    "Tensor": {
        "backward": "there are no derivatives",
        "block_until_ready": _NO_WAIT,
        "cuda": _NO_DEVICE,
        "data": "the Tensor itself, or x.numpy()",
        "fill": "x[...] = value",
        "fill_": "x[...] = value",
        "grad": "there are no derivatives",
        "is_cuda": _NO_DEVICE,
        "put": "x.at[i].set(values)",
        "requires_grad": _NO_GRADIENT,
        "requires_grad_": _NO_GRADIENT,
        "scatter_": "x[index] = values",
        "setflags": "elements are immutable, x[key] = v gives x new ones",
        "strides": "leave it out: elements are in row-major order",
        "stride": "leave it out: elements are in row-major order",
        "tobytes": "x.numpy().tobytes()",
        "values": "x.max(axis) is the values, x.argmax(axis) the positions",
        "zero_": "x[...] = 0",
    },
}
"""Names of the neighbours, and what has their meaning here."""


def counterpart(owner: str, name: str) -> str:
    """What to write instead of ``name``, which ``owner`` does not have; empty where nothing is
    near."""
    if (known := COUNTERPARTS.get(owner, {}).get(name)) is not None:
        return known
    if owner == "Tensor":
        return _of_tensor(name)
    own = _names(owner)
    if name.endswith("_") and name[:-1] in own:
        return f"{owner}.{name[:-1]}, which returns the result: tensors are immutable"
    if owner != "ptir" and (name in NAMES or name in OPS):
        return f"ptir.{name}"
    return _either(f"{owner}.{each}" for each in nearest(name, own))


def _names(owner: str) -> list[str]:
    if owner == "ptir":
        return dir(sys.modules["gptrs.ptir"])
    if owner == "ptir.ops":
        return [*OPS]
    return dir(late_import(f"gptrs.numpy_api.{owner.removeprefix('ptir.')}"))


def _of_tensor(name: str) -> str:
    methods = [each for each in dir(late_import("gptrs.ir.tensor").Tensor) if each[0] != "_"]
    functions = {*NAMES, *OPS}
    base = name.rstrip("_")
    if base in functions:
        call = f"x.{base}(...)" if base in methods else f"ptir.{base}(x, ...)"
        return call if base == name else f"x = {call}: tensors are immutable"
    near = nearest(name, {*methods, *functions})
    return _either(f"x.{each}" if each in methods else f"ptir.{each}(x, ...)" for each in near)


def _either(texts: Iterable[str]) -> str:
    return " or ".join(texts)
