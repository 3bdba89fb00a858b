"""Counter-based random numbers: Philox4x32-10 on integers of 64 bits, the words of `ptir`'s."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math

import torch
from torch import Tensor

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF
_UNIFORM, _NORMAL = 0, 1

Shape = tuple[int, ...]


def rng_uniform(
    seed: Tensor, shape: Shape, low: float, high: float, ends: tuple[float, float], wide: bool
) -> Tensor:
    """Uniform numbers over [low, high), in f64 if ``wide``, else f32."""
    count = math.prod(shape)
    if wide:
        u = _fractions(_words(seed, count, 2, _UNIFORM)) * 2.0**-53
    else:
        u = (_words(seed, count, 1, _UNIFORM)[..., 0] >> 8).float() * 2.0**-24
    values = u * (high - low) + u.new_full((), low)
    return values.clamp(*ends).reshape((*seed.shape, *shape))


def rng_normal(seed: Tensor, shape: Shape, mean: float, std: float, wide: bool) -> Tensor:
    """Normal numbers in f64; those that are not ``wide`` come from words of 32 bits."""
    count, each = math.prod(shape), 2 if wide else 1
    pairs = -(-count // 2)
    words = _words(seed, 2 * pairs, each, _NORMAL).reshape(*seed.shape, pairs, 2, each)
    if wide:
        first, second, scale = _fractions(words[..., 0, :]), _fractions(words[..., 1, :]), 2.0**-53
    else:
        numbers = words[..., 0].double()
        first, second, scale = numbers[..., 0], numbers[..., 1], 2.0**-32
    radius = torch.sqrt(-2 * torch.log((first + 1) * scale))
    angle = 2 * math.pi * (second * scale)
    values = mean + std * torch.stack((radius * torch.cos(angle), radius * torch.sin(angle)), -1)
    return values.reshape(*seed.shape, 2 * pairs)[..., :count].reshape((*seed.shape, *shape))


def random_bits(seed: Tensor, start: Tensor | None, shape: Shape, bits: int, stream: int) -> Tensor:
    """Unsigned integers whose bits are all random, carried by si64."""
    words = _words(seed, math.prod(shape), 2 if bits == 64 else 1, stream, start)
    found = words[..., 0] << 32 | words[..., 1] if bits == 64 else words[..., 0] >> 32 - bits
    return found.reshape((*seed.shape, *shape))


def _philox(counter: list[Tensor], key: tuple[Tensor, Tensor]) -> Tensor:
    """The words [..., 4] of counters under a key; words of 32 bits are carried by si64."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> 32 & _LOW) ^ c1 ^ k0,
            product1 & _LOW,
            (product0 >> 32 & _LOW) ^ c3 ^ k1,
            product0 & _LOW,
        )
        k0, k1 = k0 + _WEYL[0] & _LOW, k1 + _WEYL[1] & _LOW
    return torch.stack(torch.broadcast_tensors(c0, c1, c2, c3), -1)


def _words(seed: Tensor, count: int, each: int, stream: int, start: Tensor | None = None) -> Tensor:
    """The words [*seed.shape, count, each] of a stream's first elements."""
    keys = seed.long().unsqueeze(-1)
    block = torch.arange(-(-count * each // 4), device=seed.device)
    if start is not None:
        block = start.unsqueeze(-1) + block
    zero = torch.zeros_like(keys + block)
    counter = [zero + (block & _LOW), zero + (block >> 32 & _LOW), zero + stream, zero]
    words = _philox(counter, (keys & _LOW, keys >> 32 & _LOW))
    return words.reshape(*seed.shape, 4 * block.shape[-1] // each, each)[..., :count, :]


def _fractions(words: Tensor) -> Tensor:
    """The upper 53 bits of each pair of words [..., 2], as whole numbers in f64."""
    return (words[..., 0] << 21 | words[..., 1] >> 11).double()
