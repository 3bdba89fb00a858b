"""``gptrs.from_torch(module, example_inputs)``: exported modules without torch."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")


class Net(nn.Module):
    """Convolution, statistics, attention; containers in and out; two names of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 8)
        self.tail = nn.Linear(8, 8)
        self.tail.weight = self.head.weight

    def forward(self, x: torch.Tensor, more: dict[str, torch.Tensor]) -> dict[str, Any]:
        rows = self.inner(x).flatten(2).transpose(1, 2)
        rows = self.attention(rows, rows, rows, need_weights=False)[0]
        return {"rows": rows, "all": (self.tail(self.head(rows.mean(1))) + more["bias"],)}


@pytest.fixture(scope="module")
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def arguments(batch: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    return torch.randn(batch, 3, 6, 6), {"bias": torch.randn(8)}


@pytest.fixture(scope="module")
def exported(net: Net) -> Any:
    batch = torch.export.Dim("batch", min=2)
    return gptrs.from_torch(net, arguments(3), dynamic_shapes=({0: batch}, {"bias": {}}))


def test_a_module_is_a_function_of_arrays(net: Net, exported: Any) -> None:
    for batch in (2, 5):
        x, more = arguments(batch)
        made = exported(x, {"bias": more["bias"].numpy()})
        wanted = net(x, more)
        assert_close(torch.from_numpy(np.array(made["rows"])), wanted["rows"].detach())
        assert_close(torch.from_numpy(np.array(made["all"][0])), wanted["all"][0].detach())
    assert exported.function.cache_info().misses == 1, "one program for all batches"


def test_parameters_keep_their_names_and_are_shared(exported: Any) -> None:
    assert {"inner.0.weight", "inner.1.running_mean", "head.weight"} <= set(exported.parameters)
    assert "tail.weight" not in exported.parameters


def test_it_explains_itself(exported: Any) -> None:
    x, more = arguments(4)
    assert exported.fallbacks == []
    assert exported.explain(x, more).report.instructions("reference", "host") == 0
    assert "inner_0_weight" in str(exported.program(x, more))
    assert "arguments" in repr(exported)


def test_it_is_saved_and_runs_without_torch(net: Net, exported: Any, tmp_path: Path) -> None:
    x, more = arguments(4)
    exported.save(tmp_path / "net.gptrs", x, more)
    loaded = ptir.load_compiled(tmp_path / "net.gptrs")
    made = loaded(x.numpy(), more["bias"].numpy())
    assert_close(torch.from_numpy(np.array(made[0])), net(x, more)["rows"].detach())


def test_an_exported_program_is_taken_as_it_is(net: Net) -> None:
    x, more = arguments(2)
    made = gptrs.from_torch(torch.export.export(net, (x, more)))(x, more)
    assert_close(torch.from_numpy(np.array(made["rows"])), net(x, more)["rows"].detach())


def test_other_numbers_of_arguments_are_refused(exported: Any) -> None:
    with pytest.raises(ArgumentError, match="exported with 2 arguments, found 1"):
        exported(torch.randn(2, 3, 6, 6))


def test_buffers_that_the_module_writes() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count: torch.Tensor
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x + self.count

    made = gptrs.from_torch(Counting(), (torch.zeros(2),))
    assert np.array(made(torch.zeros(2))).tolist() == [1, 1]
    assert np.array(made(torch.zeros(2))).tolist() == [2, 2]


def test_weights_at_one_address_are_told_apart() -> None:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            whole = torch.arange(6.0)
            self.row = nn.Parameter(whole[:2])
            self.all = nn.Parameter(whole)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.row.sum() + self.all.sum()

    made = gptrs.from_torch(Parts(), (torch.zeros(1),))
    assert np.array(made(torch.zeros(1))).tolist() == [16]


def test_other_arguments_than_the_exported_are_refused() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, by: float) -> torch.Tensor:
            return x.reshape(2, 3) * by

    made = gptrs.from_torch(Scaled(), (torch.ones(6), 2.0))
    assert np.array(made(np.ones(6, np.float32), 2.0)).tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.raises(ArgumentError, match=r"argument 1 is 3\.0, expected 2\.0"):
        made(torch.ones(6), 3.0)
    with pytest.raises(ArgumentError, match=r"argument 0 is f32\[3\], expected f32\[6\]"):
        made(torch.ones(3), 2.0)
    with pytest.raises(ArgumentError, match=r"argument 0 is f64\[6\], expected f32\[6\]"):
        made(torch.ones(6, dtype=torch.float64), 2.0)
