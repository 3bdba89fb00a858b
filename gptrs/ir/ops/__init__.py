"""The op set. Importing this package fills `gptrs.ir.dispatch.OPS`.

| module | ops |
|---|---|
| `elementwise` | unary, binary, comparison, select, clamp, cast |
| `elementary` | log1p, expm1, tan, inverse and hyperbolic functions, atan2, hypot, nextafter, gcd |
| `bitcast` | bitcast: bits as another dtype |
| `complex_numbers` | complex, real, imag, conj |
| `reduce` | sum, product, max, min, any, all, argmax, argmin, cumsum, cumprod, cummax, cummin |
| `contract` | dot_general |
| `fft` | fft_c2c, fft_r2c, fft_c2r: Fourier transforms |
| `linalg` | cholesky, solve, inv, det, svd, eigh, eig: LAPACK |
| `shape` | reshape, transpose, broadcast_to, slice, concat, pad, tile |
| `dynamic` | dynamic_slice, dynamic_update_slice |
| `index` | take, gather, scatter_add, scatter_reduce |
| `segment` | segment_reduce |
| `sort` | sort, top_k, searchsorted |
| `window` | reduce_window, extract_patches |
| `literal` | constant, full, iota |
| `random` | rng_uniform, rng_normal, random_bits (Philox4x32-10) |
| `control` | cond, while_loop, scan: ops with regions |
| `effects` | print, callback, check: effects at run time, in program order |
| `custom` | custom_call: a subprogram that a backend has a kernel for |
| `composite` | matmul, linear, softmax, norms, activations, attention |
| `language` | rms_norm, rotary, cross_entropy |
| `experts` | grouped_linear |
| `vision` | conv2d, depthwise_conv2d, batch_norm, pooling |
| `quantize` | quantize, dequantize, requantize |
| `widening` | the f32 arithmetic of composites over narrow floats |

A module declares each op in one place: signature (schema), type rule, NumPy meaning; composites
have a definition instead.
"""

from gptrs.ir.ops import (
    bitcast,
    complex_numbers,
    composite,
    contract,
    control,
    custom,
    dynamic,
    effects,
    elementary,
    elementwise,
    experts,
    fft,
    index,
    language,
    linalg,
    literal,
    quantize,
    random,
    reduce,
    segment,
    shape,
    sort,
    vision,
    window,
)

__all__ = [
    "bitcast",
    "complex_numbers",
    "composite",
    "contract",
    "control",
    "custom",
    "dynamic",
    "effects",
    "elementary",
    "elementwise",
    "experts",
    "fft",
    "index",
    "language",
    "linalg",
    "literal",
    "quantize",
    "random",
    "reduce",
    "segment",
    "shape",
    "sort",
    "vision",
    "window",
]
