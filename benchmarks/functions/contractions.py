"""Products: matrices of six dtypes and of odd shapes, batches, vectors, einsum, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.functions.case import Arguments, Case, draw, sized
from gptrs import ptir


def cases() -> list[Case]:
    """Products of matrices, of vectors, of more axes, convolutions."""
    return [*_matrices(), *_batches(), *_einsum(), *_convolutions()]


def _square(n: int) -> tuple[tuple[int, int], ...]:
    return (n, n), (n, n)


def _matrices() -> list[Case]:
    def product(xp: Any, x: Any, y: Any) -> Any:
        return x @ y

    found: list[Case] = []
    sizes = {"f32": [64, 512, 1000], "f64": [64, 512, 1000], "f16": [64, 256], "bf16": [64, 256]}
    for dtype, extents in sizes.items():
        squares = [_square(n) for n in extents]
        found += sized("matmul", dtype, squares, lambda x, y: x @ y, product, dtype=dtype)
    odd = [((7, 13), (13, 5)), ((333, 257), (257, 129)), ((1000, 3), (3, 1000))]
    tall = [((100_000, 16), (16, 16)), ((16, 4000), (4000, 16))]
    short = [((100_000, 3), (3, 3)), ((100_000, 16), (16, 1))]
    return [
        *found,
        *sized(
            "matmul",
            "si8 to si32",
            [_square(64), _square(256), _square(512)],
            _wide_product,
            lambda xp, x, y: x.astype(np.int32) @ y.astype(np.int32),
            dtype="si8",
            torch=lambda torch, x, y: torch._int_mm(x, y),
            jax=lambda jax, x, y: jax.lax.dot(x, y, preferred_element_type=np.int32),
        ),
        *sized(
            "matmul",
            "si32",
            [_square(64), _square(256)],
            lambda x, y: x @ y,
            product,
            dtype="si32",
        ),
        *sized("matmul", "f32, odd shapes", odd, lambda x, y: x @ y, product),
        *sized("matmul", "f32, many short rows", short, lambda x, y: x @ y, product),
        *sized("matmul", "f32, long or deep", tall, lambda x, y: x @ y, product),
        *sized("matmul", "f32, x times xᵀ", [(64, 64), (512, 512)], lambda x: x @ x.T, _gram),
    ]


def _wide_product(x: Any, y: Any) -> Any:
    wide = ptir.si32
    axes = {"contract_lhs": (1,), "contract_rhs": (0,)}
    return ptir.dot_general(x, y, accum_dtype=wide, out_dtype=wide, **axes)


def _gram(xp: Any, x: Any) -> Any:
    return x @ x.T


def _batches() -> list[Case]:
    batches = [((10_000, 3, 3),) * 2, ((1000, 8, 8),) * 2, ((256, 32, 32),) * 2]
    square = [((64, 64), (64,)), ((1000, 1000), (1000,)), ((4096, 4096), (4096,))]
    turned = [(y, x) for x, y in square]
    return [
        *sized(
            "batched matmul", "f32", [*batches, ((16, 128, 64), (16, 64, 128))],
            lambda x, y: x @ y, lambda xp, x, y: x @ y,
        ),
        *sized(
            "batched matmul", "f64", batches,
            lambda x, y: x @ y, lambda xp, x, y: x @ y, dtype="f64",
        ),
        *sized("matrix, vector", "matrix · vector", square, lambda x, y: x @ y, _product),
        *sized(
            "matrix, vector",
            "matrix · vector, f64",
            square[1:],
            lambda x, y: x @ y,
            _product,
            dtype="f64",
        ),
        *sized(
            "matrix, vector",
            "transposed matrix · vector, f64",
            square[1:],
            lambda x, y: x.T @ y,
            lambda xp, x, y: x.T @ y,
            dtype="f64",
        ),
        *sized("matrix, vector", "vector · matrix", turned, lambda x, y: x @ y, _product),
        *sized(
            "matrix, vector",
            "dot",
            [((1_000,),) * 2, ((1_000_000,),) * 2],
            lambda x, y: x @ y,
            _product,
        ),
    ]  # fmt: skip


def _product(xp: Any, x: Any, y: Any) -> Any:
    return x @ y


def _einsum() -> list[Case]:
    heads = [((1, 4, 16, 32),) * 2, ((2, 12, 128, 64),) * 2]
    return [
        *sized(
            "einsum",
            "bhqd,bhkd->bhqk",
            heads,
            lambda x, y: x @ y.transpose(-2, -1),
            lambda xp, x, y: xp.einsum("bhqd,bhkd->bhqk", x, y),
            jax=lambda jax, x, y: jax.numpy.einsum("bhqd,bhkd->bhqk", x, y),
        ),
        *sized(
            "einsum",
            "ijk,kl->ijl",
            [((4, 8, 16), (16, 32)), ((32, 64, 256), (256, 128))],
            lambda x, y: x @ y,
            lambda xp, x, y: xp.einsum("ijk,kl->ijl", x, y),
        ),
        *sized(
            "einsum",
            "ij,ij->i",
            [((32, 32),) * 2, ((3000, 1000),) * 2],
            lambda x, y: (x * y).sum(1),
            lambda xp, x, y: xp.einsum("ij,ij->i", x, y),
        ),
        *sized(
            "einsum",
            "ki,kj->ij",
            [((64, 64),) * 2, ((512, 300),) * 2],
            lambda x, y: x.T @ y,
            lambda xp, x, y: xp.einsum("ki,kj->ij", x, y),
        ),
    ]


def _windows(x: Any, window: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, window, axes)


def _convolutions() -> list[Case]:
    """Images [N, H, W, C] and kernels [KH, KW, C, O], as ours are; torch has views of them."""
    family = "convolution"

    def conv1d(rng: np.random.Generator, size: tuple[int, int, int, int, int]) -> Arguments:
        n, length, c, o, k = size
        return draw(rng, (n, length, c)), draw(rng, (k, c, o))

    def conv2d(rng: np.random.Generator, size: tuple[int, int, int, int, int]) -> Arguments:
        n, h, c, o, k = size
        return draw(rng, (n, h, h, c)), draw(rng, (k, k, c, o))

    def depthwise(rng: np.random.Generator, size: tuple[int, int, int]) -> Arguments:
        n, h, c = size
        return draw(rng, (n, h, h, c)), draw(rng, (3, 3, c, 1))

    def torch2d(torch: Any, x: Any, w: Any, groups: int = 1) -> Any:
        kernel = w.permute(3, 2, 0, 1) if groups == 1 else w.permute(2, 3, 0, 1)
        found = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), kernel, groups=groups)
        return found.permute(0, 2, 3, 1)

    def jax2d(jax: Any, x: Any, w: Any, groups: int = 1) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        kernel = w if groups == 1 else w.reshape(*w.shape[:2], 1, groups)
        options = {"dimension_numbers": names, "feature_group_count": groups}
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", **options)

    return [
        *sized(
            family,
            "conv1d",
            [(1, 128, 8, 8, 3), (8, 1024, 32, 64, 5)],
            lambda x, w: ptir.conv2d(x[:, None], w[None])[:, 0],
            lambda xp, x, w: np.einsum(
                "nlck,kco->nlo", _windows(x, (w.shape[0],), (1,)), w, optimize=True
            ),
            make=conv1d,
            torch=lambda torch, x, w: torch.nn.functional.conv1d(
                x.permute(0, 2, 1), w.permute(2, 1, 0)
            ).permute(0, 2, 1),
            jax=lambda jax, x, w: jax.lax.conv_general_dilated(
                x, w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
            ),
        ),
        *sized(
            family,
            "conv2d",
            [(1, 16, 8, 8, 3), (1, 56, 64, 64, 3), (8, 112, 3, 32, 5)],
            lambda x, w: ptir.conv2d(x, w),
            lambda xp, x, w: np.einsum(
                "nhwcij,ijco->nhwo", _windows(x, w.shape[:2], (1, 2)), w, optimize=True
            ),
            make=conv2d,
            torch=torch2d,
            jax=jax2d,
        ),
        *sized(
            family,
            "depthwise",
            [(1, 16, 16), (1, 56, 128), (8, 112, 32)],
            lambda x, w: ptir.depthwise_conv2d(x, w),
            lambda xp, x, w: np.einsum(
                "nhwcij,ijc->nhwc", _windows(x, w.shape[:2], (1, 2)), w[..., 0]
            ),
            make=depthwise,
            torch=lambda torch, x, w: torch2d(torch, x, w, x.shape[3]),
            jax=lambda jax, x, w: jax2d(jax, x, w, x.shape[3]),
        ),
    ]
