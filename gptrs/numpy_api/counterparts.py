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

_OF_TORCH: dict[str, str] = {
    "leave it out: the CPU is the only device": """
        cuda get_device ipu is_cpu is_cuda is_ipu is_maia is_meta is_mps is_mtia is_pinned is_shared
        is_vulkan is_xla is_xpu mtia pin_memory record_stream share_memory_ xpu
    """,
    _NO_GRADIENT: """
        grad_dtype grad_fn is_inference is_leaf output_nr register_hook
        register_post_accumulate_grad_hook reinforce requires_grad requires_grad_ retain_grad
        retains_grad volatile
    """,
    "there are no derivatives": "backward grad",
    "leave it out: elements are dense, in row-major order": """
        coalesce dense_dim dim_order is_coalesced is_mkldnn is_nested is_sparse is_sparse_csr layout
        sparse_dim storage_offset stride strides to_dense to_mkldnn
    """,
    "ptir has dense tensors alone": """
        ccol_indices col_indices crow_indices indices row_indices slice_inverse smm sparse_mask
        sparse_resize_ sparse_resize_and_clear_ sspaddmm to_padded_tensor to_sparse to_sparse_bsc
        to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr resize_as_sparse_
    """,
    "x.numpy() shares the memory of its elements": """
        const_data_ptr data data_ptr is_set_to set_ storage storage_type untyped_storage
    """,
    "ptir.dequantize and ptir.quantize take scales as arguments": """
        dequantize int_repr is_quantized q_per_channel_axis q_per_channel_scales
        q_per_channel_zero_points q_scale q_zero_point qscheme
    """,
    "leave it out: names of axes, subclasses and processes are torch's own": """
        as_subclass is_distributed module_load name
    """,
    "leave it out: conjugates and negatives are computed at once": "is_conj is_neg",
    "ptir.reshape, ptir.unfold or x[key] select elements": """
        as_strided as_strided_ as_strided_scatter
    """,
    "ptir.callback(function, x) calls Python, operations on arrays need none": "apply_ map2_ map_",
    "ptir.linalg.solve solves equations, ptir.linalg.qr, lu_factor and cholesky factorise": """
        geqrf lu lu_solve orgqr ormqr
    """,
    "ptir.stft(x, n_fft, ...), or ptir.istft": "istft stft",
    "x.reshape(shape), or x[key] for fewer elements": "resize_ resize_as resize_as_",
}
"""Names of torch's tensors that have no method, by what to write or to know instead."""

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
        **{name: text for text, names in _OF_TORCH.items() for name in names.split()},
        "bernoulli": "ptir.random.bernoulli(key, x)",
        "bernoulli_": "x = ptir.random.bernoulli(key, p, x.shape)",
        "block_until_ready": _NO_WAIT,
        "cauchy_": "x = ptir.random.cauchy(key, x.shape)",
        "chalf": "x.astype(ptir.cf32)",
        "eig": "ptir.linalg.eig(x)",
        "exponential_": "x = ptir.random.exponential(key, x.shape)",
        "fill": "x[...] = value",
        "fill_": "x[...] = value",
        "geometric_": "x = ptir.random.geometric(key, p, x.shape)",
        "hash_tensor": "hash(x.numpy().tobytes())",
        "index": "x[i, j]",
        "is_nonzero": "bool(x)",
        "log_normal_": "x = ptir.random.lognormal(key, shape=x.shape)",
        "median": "ptir.median(x), or torch's lower one: x.kthvalue((n + 1) // 2)",
        "multinomial": "ptir.random.categorical(key, ptir.log(x))",
        "nanmedian": "ptir.nanmedian(x)",
        "new": "ptir.zeros(shape, dtype=x.dtype)",
        "new_empty_strided": "x.new_empty(shape)",
        "nonzero_static": "ptir.nonzero(x, size=n)",
        "normal_": "x = ptir.random.normal(key, x.shape)",
        "put": "x.at[i].set(values)",
        "qr": "ptir.linalg.qr(x)",
        "random_": "x = ptir.random.randint(key, x.shape, low, high)",
        "resize": "ptir.resize(x, shape)",
        "scatter_": "x[index] = values",
        "setflags": "elements are immutable, x[key] = v gives x new ones",
        "solve": "ptir.linalg.solve(a, x)",
        "sum_to_size": "x.sum(axis, keepdims=True)",
        "svd": "ptir.linalg.svd(x), whose last part is the adjoint of torch's",
        "symeig": "ptir.linalg.eigh(x)",
        "tobytes": "x.numpy().tobytes()",
        "triangular_solve": "ptir.linalg.solve_triangular(a, x)",
        "uniform_": "x = ptir.random.uniform(key, x.shape)",
        "unsafe_split": "x.split(size)",
        "unsafe_split_with_sizes": "x.split_with_sizes(sizes)",
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
    if base in functions or (base != name and base in methods):
        call = f"x.{base}(...)" if base in methods else f"ptir.{base}(x, ...)"
        return call if base == name else f"x = {call}: tensors are immutable"
    near = nearest(name, {*methods, *functions})
    return _either(f"x.{each}" if each in methods else f"ptir.{each}(x, ...)" for each in near)


def _either(texts: Iterable[str]) -> str:
    return " or ".join(texts)
