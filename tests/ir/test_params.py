"""Parameter ids are stable across versions and machines: checkpoints store them."""

from __future__ import annotations

import numpy as np
import pytest

from gptrs.ir.parameter import Parameter
from gptrs.params import base_param_id, param_key

IDS = {
    "": 0x49C9DC36EA4D40A0A6A1F9F5B94913AF,
    "wte.weight": 0x455E0FCEAA263F358B3B1A3B1C77D310,
    "transformer.h.0.attn.c_attn.weight": 0xA275EC0C65100A0BA3D504BF613E313A,
    "é": 0xE9D91B9D103D9A9F14ADEA2C74ECD046,
}


@pytest.mark.parametrize("name", IDS)
def test_the_id_of_a_name(name: str) -> None:
    assert base_param_id(name) == IDS[name]
    assert Parameter([0.0], name).id == IDS[name]


def test_models_that_name_their_parameters_alike_are_told_apart() -> None:
    weight = IDS["wte.weight"]
    assert param_key(1, weight) == 0xBAC86CC8D4992D8223AE0AA7891DBACC
    assert param_key(2**128 - 1, 0) == 0x3A4C8B29F6F38D5EB31AA1F072376BFA
    keys = {param_key(namespace, weight) for namespace in (0, 1, 2, 2**127)}
    assert len(keys | {weight}) == 5


def test_rows_of_a_matrix_without_columns() -> None:
    parameter = Parameter(np.zeros((3, 4, 0), np.float32))
    assert parameter.matrix_rows(2, 7).shape == (5, 0)
