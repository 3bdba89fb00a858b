"""Users' ops, rules and kernels, defined again and again as in notebook cells."""

# Traced functions take any array, and so do Numba's.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportMissingTypeStubs=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError, PtirError, VerifyError
from gptrs.ir.dispatch import OPS
from gptrs.passes import user_rules

pytestmark = pytest.mark.usefixtures("own_definitions")

X = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)


def soft_sign(slope: float = 1.0) -> Any:
    """A cell that defines an op: x / (slope + |x|)."""

    @ptir.elementwise
    def soft_sign(x, y=0.0):
        """Without annotations and type rule: operands are broadcast, and so is the result."""

    @soft_sign.numpy
    def _(x, y):
        return x / (slope + np.abs(x)) + y

    return soft_sign


def centred(factor: float = 1.0) -> Any:
    """A cell that defines a composite."""

    @ptir.composite
    def centred(x, *, axis: int = -1):
        return (x - ptir.mean(x, axes=axis, keepdims=True)) * factor

    return centred


def numpy_centred(x: Any) -> Any:
    return x - x.mean(-1, keepdims=True, dtype=np.float32)


def steps(function: Any, *args: Any) -> list[tuple[str, str]]:
    return [(step.kind, step.name) for step in function.explain(*args).report.steps]


@pytest.mark.usefixtures("strict_dtypes")
def test_an_op_needs_no_annotations() -> None:
    op = soft_sign()
    function = ptir.jit(lambda x, y: op(x, y) + op(x, 2) + op(x))
    expected = 3 * (X / (1 + np.abs(X))) + X[0] + 2
    np.testing.assert_allclose(function(X, X[0]).numpy(), expected, rtol=1e-6)
    text = str(function.program(X, X[0]))
    assert str(ptir.parse(text)) == text
    with pytest.raises(PtirError, match=r"in soft_sign\(x: f32\[6,5\], y: f64"):
        op(X, ptir.tensor(X.astype(np.float64)))


def test_an_op_that_is_defined_again_replaces_itself() -> None:
    op = soft_sign()

    @ptir.composite
    def twice(x):
        return op_of_now(x) * 2.0

    def op_of_now(x: Any) -> Any:
        return ptir.soft_sign(x)  # pyright: ignore[reportAttributeAccessIssue]

    function = ptir.jit(lambda x: twice(x))
    first = function(X).numpy()
    np.testing.assert_allclose(first, 2 * (X / (1 + np.abs(X))), rtol=1e-6)
    assert soft_sign(3.0) is not op
    np.testing.assert_allclose(function(X).numpy(), 2 * (X / (3 + np.abs(X))), rtol=1e-6)
    (_, again) = function.retraces()
    assert again.reason.startswith("registry: ")


def test_a_derived_parameter_follows_its_op() -> None:
    weight = gptrs.Parameter(np.arange(12, dtype=np.float32).reshape(3, 4))
    op = soft_sign()
    function = ptir.jit(lambda x: x @ op(weight))
    x = np.ones((2, 3), np.float32)
    found = [function(x).numpy()]
    op = soft_sign(5.0)
    found.append(function(x).numpy())
    for slope, result in zip((1, 5), found, strict=True):
        array = weight.numpy()
        np.testing.assert_allclose(result, x @ (array / (slope + np.abs(array))), rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "jit", "f32", "taken"])
def test_names_that_are_taken(name: str) -> None:
    scope = {"ptir": ptir, "__name__": "somewhere"}
    exec("@ptir.primitive\ndef taken(x): return x.type", scope)
    scope["__name__"] = "elsewhere"
    with pytest.raises(ArgumentError, match="fix: choose another name"):
        exec(f"@ptir.primitive\ndef {name}(x): return x.type", scope)


def test_what_is_wrong_with_an_op_is_said() -> None:
    @ptir.primitive
    def halves(x):
        return x.shape

    with pytest.raises(ArgumentError, match="the type rule of halves returned"):
        halves(X)

    @ptir.primitive
    def thirds(x):
        return x.type

    with pytest.raises(ArgumentError, match="thirds has no NumPy meaning"):
        thirds(X)
    thirds.numpy(lambda x: x[:2])
    with pytest.raises(VerifyError, match=r"gave the shape \(2, 5\), its type"):
        thirds(X)


def test_an_op_that_is_taken_out_is_gone() -> None:
    op = soft_sign()
    ptir.unregister(op)
    assert "soft_sign" not in OPS
    for thing in (op, ptir.exp):
        with pytest.raises(ArgumentError, match="is no op of yours"):
            ptir.unregister(thing)


def test_a_rule_joins_the_pipeline_and_leaves_it() -> None:
    op = soft_sign()
    function = ptir.jit(lambda x: op(-x))
    assert [i.op.name for i in function.lowered(X).body] == ["neg", "soft_sign"]

    @ptir.rewrite(lambda x: op(-x), samples=[{"x": "W[*] nonzero"}])
    def move_sign_out(x: ptir.Tensor) -> ptir.Tensor:
        """It is odd."""
        return -op(x)

    ptir.check_rule(move_sign_out)
    assert [i.op.name for i in function.lowered(X).body] == ["soft_sign", "neg"]
    assert "move_sign_out" in str(function.passes(X))
    ptir.unregister(move_sign_out)
    assert [i.op.name for i in function.lowered(X).body] == ["neg", "soft_sign"]
    with pytest.raises(ArgumentError, match="is not in the pipeline"):
        ptir.unregister(move_sign_out)


def test_a_rule_that_is_declared_again_replaces_itself() -> None:
    op = soft_sign()

    def cell(factor: float) -> Any:
        @ptir.rewrite(lambda x: op(op(x)), rounds=True)
        def shorten(x: ptir.Tensor) -> ptir.Tensor:
            return op(x) * factor

        return shorten

    function = ptir.jit(lambda x: op(op(x)))
    precise = ptir.jit(precise=True)(lambda x: op(op(x)))
    once = op(X).numpy()
    for factor in (2.0, 3.0):
        rule = cell(factor)
        np.testing.assert_allclose(function(X).numpy(), once * factor, rtol=1e-6)
    assert user_rules.user_rules() == (rule,)
    np.testing.assert_array_equal(precise(X).numpy(), op(op(X)).numpy())
    with pytest.raises(VerifyError, match="rule shorten has no samples"):
        ptir.check_rule(rule)
    with pytest.raises(ArgumentError, match="there is a rule 'shorten' already"):

        @ptir.rewrite(lambda x: op(x))
        def shorten(x: ptir.Tensor) -> ptir.Tensor:
            return x


def test_a_rule_for_holes_that_are_not_there() -> None:
    with pytest.raises(ArgumentError, match=r"rule wrong takes y, .*\n.*the holes .* are: x"):

        @ptir.rewrite(lambda x: abs(-x))
        def wrong(x: ptir.Tensor, y: ptir.Tensor) -> ptir.Tensor:
            return x


def register_centred(op: Any, seen: list[Any] | None = None) -> Any:
    @ptir.kernel(op, when=lambda x, axis: axis == -1 and x.rank == 2)
    @numba.njit(parallel=True)
    def centre_rows(x, out):
        for i in numba.prange(x.shape[0]):
            mean = x[i].sum() / np.float32(x.shape[1])
            for j in range(x.shape[1]):
                out[i, j] = x[i, j] - mean

    return centre_rows


def test_a_kernel_computes_a_composite() -> None:
    op = centred()
    function = ptir.jit(lambda x: ptir.relu(op(x + 1.0)))
    expected = function(X).numpy()
    assert "kernel" not in dict(steps(function, X))
    kernel = register_centred(op)
    np.testing.assert_allclose(function(X).numpy(), expected, atol=1e-6)
    assert ("kernel", "centred") in steps(function, X)
    assert "by centre_rows" in str(function.explain(X))
    assert "kernel" not in dict(steps(function, X[0])), "`when` holds of matrices alone"
    ptir.unregister(kernel)
    assert "kernel" not in dict(steps(function, X))
    with pytest.raises(ArgumentError, match="is registered as no kernel"):
        ptir.unregister(kernel)


def test_where_no_kernel_runs() -> None:
    op = centred()
    expected = op(X).numpy()

    @ptir.kernel(op)
    def wrong(x, out):
        out[:] = 7

    function = ptir.jit(lambda x: op(x))
    assert function(X).numpy().tolist() == np.full_like(X, 7).tolist()
    half = X.astype(np.float16)
    for found, exact in (
        (function(half), op(half)),
        (ptir.jit(backend="reference")(lambda x: op(x))(X), expected),
        (ptir.jit(precise=True)(lambda x: op(x))(X), expected),
        (op(X), expected),
    ):
        np.testing.assert_allclose(np.asarray(found), np.asarray(exact), atol=1e-3)
    with ptir.eager():
        np.testing.assert_array_equal(function(X).numpy(), expected)
    with ptir.overrides({"centred": "force=portable"}):
        np.testing.assert_allclose(function(X).numpy(), expected, atol=1e-6)
    with ptir.overrides({"centred": "force=kernel"}):
        assert function(X).numpy()[0, 0] == 7


@pytest.mark.slow
def test_symbols_loops_and_donated_arguments() -> None:
    op = centred()
    register_centred(op)
    function = ptir.jit(dynamic={"x": {0: "N"}}, donate="state")(
        lambda x, state: (op(x), op(state) + 1.0)
    )
    for rows in (2, 6):
        x, state = X[:rows], ptir.tensor(X.copy())
        found = function(x, state)
        np.testing.assert_allclose(found[0].numpy(), numpy_centred(x), atol=1e-6)
        np.testing.assert_allclose(found[1].numpy(), numpy_centred(X) + 1, atol=1e-6)
    assert len(function.retraces()) == 1

    def step(total, row):
        return total + op(row), row

    looped = ptir.jit(lambda x: ptir.scan(step, x[0] * 0.0, x)[0])
    stacked = np.stack([X, 2 * X])
    np.testing.assert_allclose(looped(stacked).numpy(), 3 * numpy_centred(X), atol=1e-5)
    assert ("kernel", "centred") in steps(looped, stacked)


def test_a_kernel_that_is_registered_again_replaces_itself() -> None:
    op = centred()

    def cell(number: float) -> None:
        @ptir.kernel(op)
        def fill(out, x):
            out[:] = number

    function = ptir.jit(lambda x: op(x))
    for number in (1.0, 2.0):
        cell(number)
        assert function(X).numpy()[0, 0] == number
    assert len(op.kernels) == 1


def test_results_attributes_numbers_and_absent_operands() -> None:
    @ptir.primitive
    def split(x, shift: float, bias: ptir.Tensor | None = None, *, count: int):
        return x.type.with_shape((count,)), x.type

    split.numpy(lambda x, shift, bias, count: (x[:count] + shift, x if bias is None else x + bias))

    @ptir.kernel(split)
    def by_loops(x, bias, count, shift, out0, out1):
        for i in range(count):
            out0[i] = x[i] + shift
        for i in range(x.size):
            out1[i] = x[i] if bias is None else x[i] + bias[i]

    function = ptir.jit(lambda x, bias: (split(x, 1.5, count=2), split(x, 0, bias, count=1)))
    flat = X[0]
    (first, same), (one, more) = function(flat, flat)
    np.testing.assert_array_equal(first.numpy(), flat[:2] + np.float32(1.5))
    np.testing.assert_array_equal(same.numpy(), flat)
    np.testing.assert_array_equal(one.numpy(), flat[:1])
    np.testing.assert_array_equal(more.numpy(), flat * 2)
    assert {kind for kind, _ in steps(function, flat, flat)} == {"kernel"}


def test_a_kernel_stands_before_those_of_the_backend() -> None:
    @ptir.kernel(ptir.gelu)
    def zero(out, x):
        out[:] = 0

    function = ptir.jit(lambda x, w: ptir.gelu(x @ w))
    assert not function(X, X.T.copy()).numpy().any(), "it is no epilogue of the product"


def test_what_a_kernel_raises_is_one_error() -> None:
    op = centred()

    @ptir.kernel(op)
    def fails(x, out):
        raise ValueError("no mean of this")

    function = ptir.jit(lambda x: op(x))
    text = r"kernel fails of centred raised ValueError: no mean of this\n  at .*test_extending"
    with pytest.raises(PtirError, match=text):
        function(X)
    ptir.unregister(fails)

    @ptir.kernel(op)
    def writes(x, out):
        x[0, 0] = 1

    with pytest.raises(PtirError, match="fix: write into the result alone"):
        function(X)


def test_kernels_that_do_not_fit_their_op() -> None:
    op = centred()
    with pytest.raises(ArgumentError, match=r"kernel _ of centred takes \(x, y, out\)"):

        @ptir.kernel(op)
        def _(x, y, out): ...

    with pytest.raises(ArgumentError, match="and the result: out"):

        @ptir.kernel(op)
        def _(x): ...

    with pytest.raises(ArgumentError, match="`when` of implementation 'kernel' of centred names"):

        @ptir.kernel(op, when=lambda z: True)
        def _(x, out): ...

    with pytest.raises(ArgumentError, match=r"ptir\.kernel takes an op, found"):
        ptir.kernel(centre_of_nothing)  # pyright: ignore[reportArgumentType]


def centre_of_nothing() -> None: ...


def test_threads_share_a_parallel_kernel() -> None:
    op = centred()
    register_centred(op)
    function = ptir.jit(lambda x: op(x))
    arrays = [np.random.default_rng(n).normal(size=(50, 20)).astype(np.float32) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(function, arrays * 4)]
    for array, result in zip(arrays * 4, found, strict=True):
        np.testing.assert_allclose(result.numpy(), numpy_centred(array), atol=1e-5)
