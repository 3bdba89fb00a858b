"""The functions of the Python array API standard, of NumPy, JAX and torch, over the ops of PTIR.

PTIR is small and strict; this layer has the names, argument orders and defaults that people know.
A function records the ops that there are; it is no op itself, so a program shows none of it. Each
is declared by `gptrs.numpy_api.function.public`, which enters it in `gptrs.ir.dispatch.FUNCTIONS`:
operators and methods of tensors find it there, ``ptir`` too.

| module | functions |
|---|---|
| `function` | `public`, the decorator; operands as tensors |
| `arithmetic` | operators and element-wise functions whose meaning depends on the dtype |
| `elementary` | abs, sign, floor, ceil, trunc, round of every dtype; logaddexp, float_power |
| `number_parts` | frexp, ldexp, modf, fmod, spacing; questions about infinities and parts |
| `integers` | lcm, bitwise_count |
| `error_function` | erfc, erfcx, erfinv; the normal distribution: ndtr, ndtri, log_ndtr |
| `airy_function` | airy_ai |
| `bessel_i` | i0, i0e, i1e, modified_bessel_i1 |
| `bessel_j_y` | bessel_j0, bessel_j1, bessel_y0, bessel_y1 |
| `bessel_k` | modified_bessel_k0 and k1, scaled_modified_bessel_k0 and k1 |
| `gamma_function` | gamma, lgamma, multigammaln, digamma, beta, betaln, factorial |
| `zeta_function` | zeta, polygamma |
| `incomplete_functions` | gammainc, gammaincc, betainc |
| `approximation` | polynomials in f64, for these |
| `special` | degrees, sinc, xlogy, fmax and fmin, divmod, nan_to_num, isclose, array_equal |
| `complex_numbers` | complex, real, imag, conj, angle |
| `creation` | asarray, arange, zeros, ones, full, eye, linspace, tril, triu |
| `data_types` | astype, can_cast, finfo, iinfo, isdtype, result_type |
| `statistics` | sum, prod, max, min, mean, var, std, all, any, cumulative sums |
| `quantiles` | quantile, percentile, median |
| `missing_values` | reductions that leave out NaN |
| `counting` | bincount, digitize, histogram, histogramdd, isin |
| `sampled` | interp, gradient, trapezoid, convolve, cov, corrcoef, polyval |
| `grids` | meshgrid, logarithmic ranges, positions of triangles and flat indices |
| `editing` | append, delete, insert, put_along_axis, lexsort, hsplit, trim_zeros |
| `conditions` | select, piecewise, choose, compress, extract, place, put |
| `diagonals` | fill_diagonal; positions of diagonals, triangles and masks; ix |
| `sets` | union1d, intersect1d, setdiff1d, setxor1d, unique_consecutive |
| `distances` | cdist, dist, norm, renorm |
| `windows` | hanning, hann_window and their like; ``ptir.signal.windows`` has all |
| `spectra` | stft, istft |
| `polynomials` | polyadd, polymul, polydiv, polyder, polyint, polyfit, roots |
| `axis_slices` | slice_in_dim, dynamic_slice_in_dim, dynamic_update_index_in_dim |
| `lax`, `lax_convolution` | broadcast_in_dim, select_n, reduce, clz; conv_general_dilated |
| `bits` | packbits, unpackbits |
| `inspection` | ndim, shape, size, isscalar, issubdtype, common_type |
| `slicewise` | apply_along_axis, apply_over_axes, vectorize |
| `searching` | argmax, argmin, nonzero, searchsorted, sort, argsort, unique |
| `manipulation` | reshape, broadcast_to, transpose, flip, roll, repeat, squeeze, expand_dims |
| `joining`, `padding` | concat, stack, vstack, split, unstack; pad |
| `indexing`, `selection`, `index_keys` | x[key], x[key] = v, x.at[key] |
| `taking` | take, take_along_axis, diff, unwrap |
| `products` | vecdot, matvec, tensordot, dot, inner, outer, cross, kron |
| `einsum`, `contraction_order` | einsum, and the order of its products |
| `loops` | fori_loop, map, switch, associative_scan |
| `linalg` | ``ptir.linalg``: factorisations, equations, norms (a package) |
| `effects` | print, callback and check at run time |
| `numpy_functions`, `ufuncs` | NumPy's own functions and ufuncs, called with tensors |
| `scattering` | gather, index_select, index_add, scatter, masked_select in torch's words |
| `sections` | chunk, narrow, unflatten, block_diag, diag_embed, combinations |
| `paired_results` | topk, kthvalue, mode, aminmax, std_mean, var_mean; msort, bucketize |
| `element_views` | is_complex, numel; view, view_as_real, view_as_complex, bitcast |
| `fused_arithmetic` | addmm, baddbmm, addcmul and what else adds a product to something |
| `einops_backend` | einops' functions, called with tensors |
| `matrices` | matrix_transpose, diagonal, trace, diag |

Modules are imported on first use of one of their names (`MODULES`), so that a start does not wait
for them.
"""

from __future__ import annotations

from typing import Any

from gptrs.locks import late_import

MODULES: dict[str, tuple[str, ...]] = {
    "arithmetic": (
        *("add", "bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor", "clip"),
        *("divide", "floor_divide", "logical_and", "logical_not", "logical_or"),
        *("logical_xor", "maximum", "minimum", "multiply", "positive", "where"),
    ),
    "elementary": (
        *("abs", "ceil", "float_power", "floor", "logaddexp", "logaddexp2", "round", "sign"),
        *("square", "trunc"),
    ),
    "number_parts": (
        *("fmod", "frexp", "iscomplex", "isneginf", "isposinf", "isreal", "ldexp", "modf"),
        "spacing",
    ),
    "integers": ("bitwise_count", "lcm"),
    "error_function": ("erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"),
    "airy_function": ("airy_ai",),
    "bessel_i": ("i0", "i0e", "i1e", "modified_bessel_i1"),
    "bessel_j_y": ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"),
    "bessel_k": (
        *("modified_bessel_k0", "modified_bessel_k1"),
        *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
    ),
    "gamma_function": (
        *("beta", "betaln", "digamma", "factorial", "gamma", "gammasgn", "lgamma"),
        "multigammaln",
    ),
    "zeta_function": ("polygamma", "zeta"),
    "incomplete_functions": ("betainc", "gammainc", "gammaincc"),
    "special": (
        *(
            "allclose",
            "array_equal",
            "array_equiv",
            "deg2rad",
            "divmod",
            "entr",
            "fmax",
            "fmin",
            "frac",
            "heaviside",
        ),
        *("isclose", "logit", "nan_to_num", "lerp", "rad2deg", "rel_entr", "sinc", "xlog1py"),
        "xlogy",
    ),
    "complex_numbers": (*("angle", "complex", "conj", "imag", "polar", "real"),),
    "creation": (
        *("arange", "array", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full"),
        *("full_like", "identity", "linspace", "ones", "ones_like", "scalar_tensor"),
        *("tri", "tril", "triu", "zeros", "zeros_like"),
    ),
    "data_types": (
        *("astype", "can_cast", "finfo", "iinfo", "isdtype", "promote_types", "result_type"),
    ),
    "statistics": (
        *("all", "any", "average", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum"),
        *("cumulative_prod", "cumulative_sum", "logsumexp", "max", "mean", "min", "prod", "ptp"),
        *("std", "sum", "var"),
    ),
    "quantiles": (
        *("median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"),
    ),
    "missing_values": (
        *("nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin"),
        *("nanprod", "nanstd", "nansum", "nanvar"),
    ),
    "counting": (
        *("bincount", "digitize", "histc", "histogram", "histogram2d", "histogram_bin_edges"),
        *("histogramdd", "isin"),
    ),
    "sampled": (
        *("convolve", "corrcoef", "correlate", "cov", "cumulative_trapezoid", "gradient"),
        *("interp", "polyval", "trapezoid", "vander"),
    ),
    "grids": (
        *("broadcast_shapes", "diag_indices", "diagflat", "fromfunction", "geomspace", "indices"),
        *("logspace", "meshgrid", "ravel_multi_index", "tril_indices", "triu_indices"),
        "unravel_index",
    ),
    "editing": (
        *("append", "argpartition", "delete", "dsplit", "ediff1d", "hsplit", "insert"),
        *("lexsort", "partition", "put_along_axis", "resize", "rollaxis", "sort_complex"),
        *("trim_zeros", "vsplit"),
    ),
    "conditions": ("choose", "compress", "extract", "piecewise", "place", "put", "select"),
    "diagonals": (
        *("diag_indices_from", "fill_diagonal", "ix", "mask_indices", "tril_indices_from"),
        "triu_indices_from",
    ),
    "sets": ("intersect1d", "setdiff1d", "setxor1d", "union1d", "unique_consecutive"),
    "distances": ("cdist", "dist", "norm", "renorm"),
    "spectra": ("istft", "stft"),
    "windows": (
        *("bartlett", "bartlett_window", "blackman", "blackman_window", "hamming"),
        *("hamming_window", "hann_window", "hanning", "kaiser", "kaiser_window"),
    ),
    "polynomials": (
        *("poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub"),
        "roots",
    ),
    "axis_slices": (
        *("dynamic_index_in_dim", "dynamic_slice_in_dim", "dynamic_update_index_in_dim"),
        *("dynamic_update_slice_in_dim", "index_in_dim", "slice_in_dim"),
    ),
    "lax": (
        *("broadcast_in_dim", "broadcasted_iota", "clz", "convert_element_type", "cumlogsumexp"),
        *("integer_pow", "population_count", "reduce", "reduce_and", "reduce_or", "reduce_xor"),
        *("rev", "select_n", "shift_right_arithmetic", "shift_right_logical", "sort_key_val"),
    ),
    "lax_convolution": ("conv_general_dilated",),
    "bits": ("packbits", "unpackbits"),
    "inspection": (
        *("common_type", "iscomplexobj", "isrealobj", "isscalar", "issubdtype"),
        *("min_scalar_type", "ndim", "shape", "size"),
    ),
    "slicewise": ("apply_along_axis", "apply_over_axes", "vectorize"),
    "searching": (
        *("argmax", "argmin", "argsort", "argwhere", "flatnonzero", "nonzero"),
        *("searchsorted", "sort", "unique", "unique_all", "unique_counts", "unique_inverse"),
        *("unique_values",),
    ),
    "manipulation": (
        *("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to"),
        *("expand_dims", "flatten", "flip", "fliplr", "flipud", "moveaxis", "permute_dims"),
        *("ravel", "repeat", "reshape", "roll", "rot90", "squeeze", "swapaxes", "tile"),
        *("transpose",),
    ),
    "joining": (
        *("array_split", "block", "column_stack", "concat", "dstack", "hstack", "split", "stack"),
        *("unstack", "vstack"),
    ),
    "padding": ("pad",),
    "loops": ("associative_scan", "fori_loop", "map", "switch"),
    "namespace": ("namespace_info",),
    "indexing": ("at", "getitem"),
    "taking": ("diff", "take", "take_along_axis", "unwrap"),
    "products": (
        *("cross", "dot", "inner", "kron", "matvec", "outer", "tensordot", "vdot", "vecdot"),
        "vecmat",
    ),
    "einsum": ("einsum", "einsum_path"),
    "effects": ("callback", "check", "print"),
    "matrices": (*("diag", "diagonal", "matrix_transpose", "trace"),),
    "scattering": (
        *("diagonal_scatter", "gather", "index_add", "index_copy", "index_fill", "index_put"),
        *("index_reduce", "index_select", "masked_fill", "masked_scatter", "masked_select"),
        *("scatter", "scatter_add", "scatter_reduce", "select_scatter", "slice_scatter"),
        "take_along_dim",
    ),
    "sections": (
        *("adjoint", "block_diag", "broadcast_tensors", "cartesian_prod", "chunk"),
        *("combinations", "diag_embed", "narrow", "repeat_interleave", "split_with_sizes", "t"),
        *("tensor_split", "unflatten", "unfold"),
    ),
    "paired_results": (
        *("aminmax", "bucketize", "kthvalue", "mode", "msort", "std_mean", "topk", "var_mean"),
    ),
    "element_views": (
        *("bitcast", "is_complex", "is_floating_point", "is_signed", "is_tensor", "numel"),
        *("view", "view_as_complex", "view_as_real"),
    ),
    "fused_arithmetic": (
        *("addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "baddbmm", "rsub"),
    ),
}
"""The public names of each module, its ``__all__``."""

ALIASES: dict[str, str] = {
    "__array_namespace_info__": "namespace_info",
    "subtract": "sub",
    "negative": "neg",
    "true_divide": "divide",
    "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
    "left_shift": "shift_left",
    "right_shift": "shift_right",
    "bitwise_not": "bitwise_invert",
    "invert": "bitwise_invert",
    "isfinite": "is_finite",
    "isinf": "is_inf",
    "isnan": "is_nan",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "fix": "trunc",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "sgn": "sign",
    "clone": "array",
    "detach": "stop_gradient",
    "from_numpy": "asarray",
    "logcumsumexp": "cumlogsumexp",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "modified_bessel_i0": "i0",
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "psi": "digamma",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "mvlgamma": "multigammaln",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "mod": "remainder",
    "power": "pow",
    "absolute": "abs",
    "fabs": "abs",
    "around": "round",
    "rint": "round",
    "bitcast_convert_type": "bitcast",
    "as_tensor": "asarray",
    "asanyarray": "asarray",
    "ascontiguousarray": "asarray",
    "copy": "array",
    "erf_inv": "erfinv",
    "logistic": "sigmoid",
    "rem": "fmod",
    "ix_": "ix",
    "concatenate": "concat",
    "cat": "concat",
    "row_stack": "vstack",
    "unbind": "unstack",
    "amax": "max",
    "amin": "min",
    "swapdims": "swapaxes",
    "movedim": "moveaxis",
    "permute": "permute_dims",
    "unsqueeze": "expand_dims",
    "trapz": "trapezoid",
    "in1d": "isin",
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "ger": "outer",
    "inverse": "inv",
    "pinverse": "pinv",
}
"""Names of the neighbours for functions and ops that have another name here."""

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "nn": (
        *("adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "bilinear"),
        *("binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d", "conv3d"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss"),
        *("cosine_similarity", "ctc_loss", "dropout", "embedding_bag", "feature_alpha_dropout"),
        *("group_norm", "hardshrink", "hinge_embedding_loss", "instance_norm", "kl_div"),
        *("margin_ranking_loss", "max_pool1d", "max_pool3d", "native_channel_shuffle"),
        *("pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss"),
        *("prelu", "rrelu", "selu", "threshold", "triplet_margin_loss"),
    ),
    "linalg": (
        *("cholesky_inverse", "cholesky_solve", "logdet", "lstsq", "matrix_exp", "matrix_power"),
        *("matrix_rank", "pinv"),
    ),
}
"""Names of torch's first level for functions of ``ptir.nn`` and ``ptir.linalg``, as they are."""

_PLACES = {name: module for module, names in MODULES.items() for name in names}
_SPACES = {name: space for space, names in ELSEWHERE.items() for name in names}
NAMES = frozenset({*_PLACES, *ALIASES, *_SPACES})


def load(name: str) -> Any:
    """The function or op called ``name``. Raises `KeyError` where there is none."""
    from gptrs.ir.dispatch import FUNCTIONS, OPS

    name = ALIASES.get(name, name)
    if (space := _SPACES.get(name)) is not None:
        return getattr(late_import(f"gptrs.numpy_api.{space}"), name)
    if (module := _PLACES.get(name)) is None:
        return OPS[name]
    late_import(f"gptrs.numpy_api.{module}")
    return FUNCTIONS[name]
