"""LSTM, GRU and RNN of torch as scans: compiled where torch lets them into graphs, and exported."""

# pyright: reportUnknownMemberType=false, reportPrivateUsage=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import gptrs
import gptrs.torch
from gptrs import ptir
from gptrs.torch.compiled import noted_calls
from gptrs.torch.dynamo import gptrs as backend

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:copyreg"),
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN"),
]

_config: Any = torch._dynamo.config

NETWORKS: dict[str, Any] = {
    "lstm": lambda: nn.LSTM(4, 6),
    "lstm, all": lambda: nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True, proj_size=3),
    "lstm without bias": lambda: nn.LSTM(4, 6, bias=False, proj_size=3),
    "gru": lambda: nn.GRU(4, 6, 2, bidirectional=True),
    "gru without bias": lambda: nn.GRU(4, 6, bias=False, batch_first=True),
    "tanh": lambda: nn.RNN(4, 6, 2, bidirectional=True, batch_first=True),
    "relu": lambda: nn.RNN(4, 6, 2, nonlinearity="relu"),
}


@pytest.fixture(autouse=True)
def allowed() -> Iterator[None]:
    """torch lets recurrent networks into its graphs; nothing is compiled yet."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    with _config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


@pytest.mark.parametrize("name", NETWORKS)
def test_results_and_last_states_are_those_of_torch(name: str) -> None:
    net, x = NETWORKS[name]().eval(), torch.randn(5, 3, 4)
    with torch.no_grad(), ptir.eager(), noted_calls() as calls:
        wanted = net(x, net(x)[1])  # with first states
        assert_close(torch.compile(net, backend=backend)(x, net(x)[1]), wanted)
    assert [call.fallbacks for call in calls] == [()]


def test_a_sequence_without_a_batch() -> None:
    net, x = NETWORKS["lstm"]().eval(), torch.randn(5, 4)
    with torch.no_grad(), ptir.eager():
        assert_close(torch.compile(net, backend=backend)(x), net(x))


def test_an_lstm_is_a_native_loop_for_all_lengths() -> None:
    net = NETWORKS["lstm"]().eval()
    quick = torch.compile(net, backend=backend, dynamic=True)
    with torch.no_grad(), noted_calls() as calls:
        for steps in (2, 5, 9):
            x = torch.randn(steps, 3, 4)
            assert_close(quick(x), net(x))
    assert len({call.function for call in calls}) == 1
    function: Any = calls[-1].function
    plan = function.explain(*calls[-1].arrays)
    assert "scan" in str(plan)
    assert plan.report.instructions("reference", "host") == 0


def test_dropout_between_layers_is_torchs() -> None:
    net = nn.LSTM(4, 6, 2, dropout=0.5)
    with torch.no_grad():
        (graph,) = gptrs.torch.explain(torch.compile(net, backend=backend), torch.randn(5, 3, 4))
    assert [f.operator for f in graph.fallbacks] == ["lstm.input"]


def test_an_exported_network_keeps_its_loop() -> None:
    net, x = nn.LSTM(4, 6).eval(), torch.randn(40, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exported = gptrs.from_torch(net, (x,))
    assert len(exported.program(x).body) < 40
    with torch.no_grad():
        assert_close(torch.from_numpy(exported(x)[0].numpy().copy()), net(x)[0])
