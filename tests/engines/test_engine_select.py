"""Which engine `auto` takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import engine_models
import pytest

from broadreach.config import EngineSettings
from broadreach.engines import select
from broadreach.engines.fake import FakeEngine
from broadreach.engines.hf import HfEngine
from broadreach.engines.population import PopulationEngine
from broadreach.engines.select import build_engine, stored_parameters
from broadreach.models.weights import load_centre, parameter_count
from broadreach.types import UserError

Tiny = Callable[..., Path]


def test_auto_takes_the_population_for_a_small_model(tiny: Tiny) -> None:
    assert isinstance(build_engine(EngineSettings(), tiny("llama")), PopulationEngine)


def test_auto_takes_hf_for_a_large_model(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "SMALL", 1000)
    assert isinstance(build_engine(EngineSettings(), tiny("llama")), HfEngine)


def test_auto_takes_hf_when_few_members_fit(tiny: Tiny) -> None:
    size = 4 * stored_parameters(tiny("llama"))
    assert isinstance(build_engine(EngineSettings(memory_gb=3 * size / 1e9), tiny("llama")), HfEngine)


def test_auto_takes_hf_for_the_published_arithmetic_and_the_population_refuses_it(tiny: Tiny) -> None:
    assert isinstance(build_engine(EngineSettings(), tiny("llama"), "bfloat16", "paper"), HfEngine)
    with pytest.raises(UserError, match=r"engine\.kind = 'hf'"):
        build_engine(EngineSettings(kind="population"), tiny("llama"), "bfloat16", "paper")


def test_auto_takes_hf_for_unsupported_modules(tmp_path: Path) -> None:
    engine_models.save_mixture_of_experts(tmp_path)
    assert isinstance(build_engine(EngineSettings(), tmp_path), HfEngine)
    with pytest.raises(UserError, match="population engine cannot serve"):
        build_engine(EngineSettings(kind="population"), tmp_path)


def test_named_kinds_are_taken_as_named(tiny: Tiny) -> None:
    assert isinstance(build_engine(EngineSettings(kind="hf"), tiny("llama")), HfEngine)
    assert isinstance(build_engine(EngineSettings(kind="fake"), tiny("llama")), FakeEngine)


def test_stored_parameters_counts_what_the_centre_holds(tiny: Tiny) -> None:
    assert stored_parameters(tiny("llama")) == parameter_count(load_centre(tiny("llama")))
