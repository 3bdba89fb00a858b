"""Matching of convolutions: which become custom calls, with which kernel, and their results."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.calls.conv import WinogradConv
from gptrs.backends.faer.calls.forms import WinogradPanels
from gptrs.backends.faer.custom_calls import call_of
from gptrs.errors import PtirError
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.tensor import Tensor

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    """Random numbers, those of taps [KH, KW, C, O] so small that outputs are about 1."""
    depth = max(1, int(np.prod(shape[:-1])))
    return RANDOM.standard_normal(shape, np.float32) / np.float32(np.sqrt(depth))


def parameter(name: str, *shape: int) -> Parameter:
    return Parameter(normal(*shape), name)


# Direct convolutions have 10 channels or outputs: Winograd's kernels take multiples of 16.
W, SAME, ONE = (parameter("w", *s) for s in ((3, 3, 16, 20), (3, 3, 10, 10), (1, 1, 10, 24)))
MIXED = parameter("mixed", 1, 1, 10, 10)
WIDE, GROUPED = parameter("wide", 5, 2, 10, 7), parameter("grouped", 3, 3, 5, 12)
STORED, LARGE = parameter("stored", 18, 10, 3, 3), parameter("large", 3, 3, 16, 48)
OBLONG = parameter("oblong", 3, 5, 16, 16)
SQUARE, BACK = parameter("square", 3, 3, 16, 16), parameter("back", 3, 3, 48, 16)
BIASES = {n: parameter("bias", n) for n in (7, 10, 16, 20, 24, 48)}
MEAN, SCALE, SHIFT = (parameter(name, 48) for name in ("mean", "scale", "shift"))
VARIANCE = Parameter(RANDOM.uniform(0.5, 2.0, 48).astype(np.float32), "variance")
AROUND: Any = {"padding": ((1, 1), (1, 1))}
DIRECT = "gpt_rs.faer.conv2d.nhwc.f32.v1"
WINOGRAD = "gpt_rs.faer.winograd_conv2d.nhwc.f32.v1"
# Sums of a few hundred terms err by 6·2⁻²⁴·Σ|x|·|w| at most (tests/kernels/conv/test_winograd.py),
# and by 42·2⁻²⁴ as Winograd does them; Σ|x|·|w| is 10 or so here.
TOLERANCES = {DIRECT: 6e-6, WINOGRAD: 4e-5}


class Row(NamedTuple):
    function: Any
    targets: tuple[str, ...]
    others: int = 0  # instructions besides calls
    channels: int = 10
    taps: Any = None  # if they are an argument


def normed(x: Tensor) -> Any:
    y = ptir.conv2d(x, LARGE, **AROUND)
    return ptir.relu(ptir.batch_norm(y, MEAN, VARIANCE, SCALE, SHIFT))


def residual_read_twice(x: Tensor) -> Any:
    return ptir.relu(ptir.conv2d(x, SAME, **AROUND) + x), x * 2.0


def read_twice(x: Tensor) -> Any:
    y = ptir.conv2d(x, SAME)
    return y, ptir.relu(y)


def two(x: Tensor) -> Any:
    far = ptir.conv2d(x, SAME, dilation=(2, 2), padding=((2, 2), (2, 2)))
    return ptir.conv2d(x, SAME, **AROUND) + far


def block(x: Tensor) -> Any:
    """A basic block of a ResNet."""
    y = ptir.relu(ptir.conv2d(x, LARGE, BIASES[48], **AROUND))
    return ptir.relu(ptir.conv2d(y, BACK, BIASES[16], **AROUND) + x)


ROWS: dict[str, Row] = {
    "alone": Row(lambda x: ptir.conv2d(x, SAME), (DIRECT,)),
    "padding, strides, dilation": Row(
        lambda x: ptir.conv2d(
            x, WIDE, BIASES[7], strides=(2, 3), dilation=(1, 2), padding=((3, 1), (0, 2))
        ),
        (DIRECT,),
    ),
    "taps that are an argument": Row(
        lambda x, w: ptir.relu(ptir.conv2d(x, w, BIASES[7], **AROUND)),
        (DIRECT,),
        taps=normal(2, 3, 10, 7),
    ),
    "taps that are brought into order once, ahead": Row(
        lambda x: ptir.conv2d(x, STORED.permute(2, 3, 1, 0)), (DIRECT,)
    ),
    "outputs that are no multiple of 16": Row(
        lambda x: ptir.conv2d(x, W, BIASES[20], **AROUND), (DIRECT,), channels=16
    ),
    "a bias that is added, and an activation": Row(
        lambda x: ptir.relu(BIASES[10] + ptir.conv2d(x, SAME)), (DIRECT,)
    ),
    "relu6": Row(lambda x: ptir.relu6(ptir.conv2d(4.0 * x, SAME)), (DIRECT,), 1),
    "silu": Row(lambda x: ptir.silu(ptir.conv2d(x, SAME, BIASES[10])), (DIRECT,)),
    "a residual": Row(lambda x: x + ptir.conv2d(x, SAME, BIASES[10], **AROUND), (DIRECT,)),
    "a residual, then an activation": Row(
        lambda x: ptir.relu6(ptir.conv2d(x, SAME, BIASES[10], **AROUND) + x), (DIRECT,)
    ),
    "an activation, then a residual": Row(
        lambda x: ptir.silu(ptir.conv2d(x, SAME, BIASES[10], **AROUND)) + x, (DIRECT,)
    ),
    "an activation before a residual, another behind it": Row(
        lambda x: ptir.relu(ptir.silu(ptir.conv2d(x, SAME, **AROUND)) + x), (DIRECT,), 1
    ),
    "a residual before a bias": Row(
        lambda x: ptir.relu(ptir.conv2d(x, SAME, **AROUND) + x + BIASES[10]), (DIRECT,), 3
    ),
    "a residual that something else reads": Row(residual_read_twice, (DIRECT,), 1),
    "a residual that is computed": Row(
        lambda x: ptir.conv2d(x, SAME, **AROUND) + ptir.exp(x), (DIRECT,), 1
    ),
    "what comes before an activation is read": Row(read_twice, (DIRECT,), 1),
    "the sum of two": Row(two, (DIRECT, DIRECT)),
    "its own sum": Row(lambda x: (lambda y: y + y)(ptir.conv2d(x, SAME)), (DIRECT,), 1),
    "some of the images": Row(lambda x: ptir.conv2d(x[1:], SAME), (DIRECT,)),
    "pixels alone": Row(lambda x: ptir.relu(ptir.conv2d(x, ONE, BIASES[24])), (DIRECT,)),
    "pixels alone, and a residual": Row(
        lambda x: ptir.relu(ptir.conv2d(x, MIXED, BIASES[10]) + x), (DIRECT,)
    ),
    "pixels alone, some": Row(lambda x: ptir.conv2d(x, ONE, strides=(2, 2)), (DIRECT,)),
    "pixels alone, and padding": Row(lambda x: ptir.conv2d(x, ONE, **AROUND), (DIRECT,)),
    "fewer multiplications": Row(
        lambda x: ptir.conv2d(x, LARGE, **AROUND), (WINOGRAD,), channels=16
    ),
    "of taps that are an argument": Row(
        lambda x, w: ptir.conv2d(x, w, BIASES[16], padding=((0, 2), (1, 0))),
        (WINOGRAD,),
        channels=16,
        taps=normal(3, 3, 16, 16),
    ),
    "and a norm": Row(normed, (WINOGRAD,), channels=16),
    "and an activation, and a residual": Row(
        lambda x: ptir.silu(ptir.conv2d(x, SQUARE, BIASES[16], **AROUND)) + x,
        (WINOGRAD,),
        channels=16,
    ),
    "one after the other": Row(block, (WINOGRAD, WINOGRAD), channels=16),
}


def images(count: int, height: int = 12, width: int = 15, channels: int = 10) -> Any:
    random = np.random.default_rng(count + height)
    return random.standard_normal((count, height, width, channels), np.float32)


def arguments(row: Row, *sizes: int) -> tuple[Any, ...]:
    x = images(*sizes, channels=row.channels)
    return (x,) if row.taps is None else (x, row.taps)


def targets(program: Program) -> tuple[str, ...]:
    return tuple(i.attrs["target"] for i in program.body if i.op.name == "custom_call")


def pairs(a: Any, b: Any) -> list[tuple[Any, Any]]:
    both = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    return [(x.numpy(), y.numpy()) for x, y in both]


def check(row: Row, found: Any, expected: Any) -> None:
    for a, b in pairs(found, expected):
        atol = 2 * sum(TOLERANCES[target] for target in row.targets)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=atol)


@pytest.mark.parametrize("name", ROWS)
def test_program(name: str) -> None:
    row = ROWS[name]
    jitted, given = ptir.jit(backend="faer")(row.function), arguments(row, 3)
    program = jitted.lowered(*given)
    found = targets(program)
    check(row, jitted(*given), ptir.jit(backend="reference")(row.function)(*given))
    assert (found, len(program.body) - len(found)) == (row.targets, row.others), program


def dynamic(*axes: int) -> Any:
    return {"x": {axis: "NHW"[axis] for axis in axes}}


@pytest.mark.parametrize("name", ROWS)
def test_symbolic_batch(name: str) -> None:
    """One program for all batches, and each image as if it were alone."""
    row = ROWS[name]
    jitted = ptir.jit(backend="faer", dynamic=dynamic(0))(row.function)
    reference = ptir.jit(backend="reference")(row.function)
    assert targets(jitted.lowered(*arguments(row, 3))) == row.targets
    for count in (2, 5):
        given = arguments(row, count)
        check(row, jitted(*given), reference(*given))
    if name != "some of the images":
        x, *taps = given
        whole, alone = jitted(*given), [jitted(image[None], *taps) for image in x]
        for i, one in enumerate(alone):
            for a, b in pairs(whole, one):
                np.testing.assert_array_equal(a[i : i + 1], b)
    assert jitted.cache_info().currsize == 1


@pytest.mark.parametrize("name", ROWS)
def test_symbolic_sizes(name: str) -> None:
    """Never fewer multiplications, as these depend on sizes."""
    row = ROWS[name]
    jitted = ptir.jit(backend="faer", dynamic=dynamic(1, 2))(row.function)
    reference = ptir.jit(backend="reference")(row.function)
    expected = tuple(DIRECT if target == WINOGRAD else target for target in row.targets)
    for sizes in ((2, 12, 15), (2, 7, 33), (2, 5, 6)):
        given = arguments(row, *sizes)
        assert targets(jitted.lowered(*given)) == expected
        check(row, jitted(*given), reference(*given))
    assert jitted.cache_info().currsize == 1


@pytest.mark.parametrize("name", ROWS)
def test_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    row = ROWS[name]
    jitted, given = ptir.jit(backend="faer")(row.function), arguments(row, 2, 33, 40)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "1")
    expected = jitted(*given)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "3")
    for a, b in pairs(jitted(*given), expected):
        np.testing.assert_array_equal(a, b)


# Height and width of results, and the tiles that are estimated to take least time
SIZES = [((1, 1), None), ((3, 3), None), ((4, 4), 2), ((7, 7), 2), ((12, 12), 4), ((56, 56), 4)]


@pytest.mark.parametrize(("size", "tile"), SIZES)
def test_sizes_choose_tiles(size: tuple[int, int], tile: int | None) -> None:
    function = lambda x: ptir.conv2d(x, SQUARE, **AROUND)
    x = images(1, *size, 16)
    jitted = ptir.jit(backend="faer")(function)
    (call,) = jitted.lowered(x).body
    assert call.attrs["target"] == (DIRECT if tile is None else WINOGRAD)
    if tile is not None:
        found = call_of(call)
        assert isinstance(found, WinogradConv)
        (form,) = found.packed().values()
        assert isinstance(form, WinogradPanels)
        assert form == (tile, 16, 16)
    row = Row(function, targets(jitted.lowered(x)))
    check(row, jitted(x), ptir.jit(backend="reference")(function)(x))


def test_fewer_multiplications_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS["one after the other"]
    given = arguments(row, 2)
    precise = ptir.jit(backend="faer", precise=True)(row.function)
    assert targets(precise.lowered(*given)) == (DIRECT, DIRECT)
    direct = Row(row.function, (DIRECT, DIRECT))
    with ptir.eager():
        expected = row.function(*map(Tensor, given))
    np.testing.assert_array_equal(precise(*given).numpy(), expected.numpy())
    jitted = ptir.jit(backend="faer")(row.function)
    fast = jitted(*given).numpy()
    monkeypatch.setenv("GPTRS_WINOGRAD", "0")
    assert targets(jitted.lowered(*given)) == (DIRECT, DIRECT)
    slow = jitted(*given)
    check(direct, slow, expected)
    monkeypatch.setenv("GPTRS_WINOGRAD", "1")
    np.testing.assert_array_equal(jitted(*given).numpy(), fast)
    assert (fast != slow.numpy()).any()
    assert jitted.cache_info().currsize == 2, "a program for each value of the setting"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ptir.conv2d(x, OBLONG, **AROUND),
        lambda x: ptir.conv2d(x, SQUARE, strides=(1, 2), **AROUND),
        lambda x: ptir.conv2d(x, SQUARE, dilation=(2, 2), **AROUND),
    ],
)
def test_other_windows_are_direct(function: Any) -> None:
    x = images(1, 20, 20, 16)
    jitted = ptir.jit(backend="faer")(function)
    assert targets(jitted.lowered(x)) == (DIRECT,)
    check(Row(function, (DIRECT,)), jitted(x), ptir.jit(backend="reference")(function)(x))


DECLINED: dict[str, Any] = {
    "two groups": lambda x: ptir.conv2d(x, GROUPED, groups=2),
    "narrow": lambda x: ptir.conv2d(*(ptir.cast(a, dtype=ptir.f16) for a in (x, SAME))),
}


@pytest.mark.parametrize("name", DECLINED)
def test_declined(name: str) -> None:
    function, x = DECLINED[name], images(2)
    jitted = ptir.jit(backend="faer")(function)
    assert set(targets(jitted.lowered(x))).isdisjoint([DIRECT, WINOGRAD])
    expected = ptir.jit(backend="reference")(function)(x)
    # Half a unit of float16 is 2⁻¹¹
    rounded = 2.0**-10 if name == "narrow" else 0.0
    np.testing.assert_allclose(jitted(x).numpy(), expected.numpy(), rtol=rounded, atol=1e-5)


def test_no_window_fits() -> None:
    """Found out when sizes are known: the error is that of the definition."""
    jitted = ptir.jit(backend="faer", dynamic=dynamic(1))(lambda x: ptir.conv2d(x, SAME))
    assert jitted(images(1)).shape[1] == 10
    with pytest.raises(PtirError, match="does not fit extent 2"):
        jitted(images(1, 2))


@pytest.mark.parametrize("taps", [(3, 3, 0, 7), (1, 1, 0, 7), (3, 3, 4, 0)])
def test_no_terms_and_no_outputs(taps: tuple[int, ...]) -> None:
    weights = parameter("taps", *taps)
    function = lambda x: ptir.conv2d(x, weights, strides=(2, 1), **AROUND) + 1.0
    x = images(2, channels=taps[2])
    found, expected = ptir.jit(backend="faer")(function)(x), function(x)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("name", ["a residual, then an activation", "one after the other"])
def test_no_images(name: str) -> None:
    row = ROWS[name]
    jitted = ptir.jit(backend="faer", dynamic=dynamic(0))(row.function)
    assert jitted(*arguments(row, 2)).shape == (2, 12, 15, row.channels)
    assert jitted(*arguments(row, 0)).shape == (0, 12, 15, row.channels)
