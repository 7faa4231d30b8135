"""After any sequence of members, and after any exception, the served weights are the centre's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import engine_models
import numpy as np
import pytest
import torch

from broadreach.engines import serving
from broadreach.engines.hf import HfEngine
from broadreach.engines.population import PopulationEngine
from broadreach.models.weights import load_centre
from broadreach.noise.advance import advance
from broadreach.noise.members import population_members
from broadreach.noise.update import digest
from broadreach.types import CENTRE_MEMBER, Centre, Member, Perturbation, Request, Sampling, UserError

MOVED = Perturbation(seed=3, step=1, sigma=0.02)
ONE_TOKEN = Sampling(0.0, 1)
Tiny = Callable[..., Path]
Engine = HfEngine | PopulationEngine


def loaded(kind: type[Engine], directory: Path, dtype: str = "float32", **options: str) -> tuple[Engine, Centre]:
    served = kind(directory, dtype, **options)  # type: ignore[arg-type]
    centre = load_centre(directory)
    for array in centre.values():  # off every grid, so that a half-precision engine has to round
        array += np.float32(1e-4) * np.sin(np.arange(array.size, dtype=np.float32)).reshape(array.shape)
    served.load(centre)
    return served, centre


def rounded(centre: Centre, dtype: torch.dtype) -> Centre:
    return {name: torch.from_numpy(array).to(dtype).float().numpy() for name, array in centre.items()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_restore_is_bit_exact_after_a_thousand_members(tiny: Tiny, dtype: str) -> None:
    served, centre = loaded(HfEngine, tiny("llama", num_hidden_layers=1), dtype)
    before = served.digest()
    assert before == digest(rounded(centre, getattr(torch, dtype)))
    served.generate([Request("p", (5,))], population_members(500, "two_point"), MOVED, ONE_TOKEN)
    assert served.digest() == before


@pytest.mark.parametrize("kind", [HfEngine, PopulationEngine])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_in_the_middle_leaves_the_centre(
    tiny: Tiny, kind: type[Engine], error: type[BaseException]
) -> None:
    served, _ = loaded(kind, tiny("llama"), "bfloat16")
    before = served.digest()
    seen: list[str] = []

    def interrupt(count: int) -> None:
        seen.append(served.digest())
        raise error

    with pytest.raises(error):
        served.generate(engine_models.requests(4), [Member(0, 0, 1)], MOVED, Sampling(0.0, 4), interrupt)
    assert served.digest() == before
    if kind is HfEngine:
        assert seen[0] != before, "the exception must come while a member is served"


def test_an_exception_while_perturbing_leaves_the_centre(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = loaded(HfEngine, tiny("llama"))
    before = served.digest()
    calls: Iterator[int] = iter(range(100))
    original = serving.perturb_into

    def failing(*arguments: object, **options: object) -> None:
        original(*arguments, **options)  # type: ignore[arg-type]
        if next(calls) == 5:
            raise RuntimeError("half a member is in")

    monkeypatch.setattr(serving, "perturb_into", failing)
    with pytest.raises(RuntimeError, match="half a member"):
        served.generate(engine_models.requests(2), [Member(0, 0, 1)], MOVED, ONE_TOKEN)
    assert served.digest() == before


@pytest.mark.parametrize("kind", [HfEngine, PopulationEngine])
def test_scoring_under_a_member_leaves_the_centre(tiny: Tiny, kind: type[Engine]) -> None:
    served, centre = loaded(kind, tiny("qwen2"))
    served.score_tokens([(5, 6)], [(7, 8)], Member(0, 0, 1), MOVED)
    assert served.digest() == digest(centre)


def test_a_weight_out_of_reach_is_an_error(tiny: Tiny) -> None:
    served, _ = loaded(HfEngine, tiny("llama"))
    assert isinstance(served, HfEngine)
    served._weights.parameters += 7  # as if the model had a tensor that no name reaches
    with pytest.raises(UserError, match=r"\d+ weights were perturbed, but the model has \d+"):
        served.generate(engine_models.requests(1), [Member(0, 0, 1)], MOVED, ONE_TOKEN)


@pytest.mark.parametrize("kind", [HfEngine, PopulationEngine])
def test_a_foreign_centre_is_refused(tiny: Tiny, kind: type[Engine]) -> None:
    served = kind(tiny("llama"))
    with pytest.raises(UserError, match="do not belong to this model"):
        served.load(load_centre(tiny("qwen2")))
    with pytest.raises(UserError, match="call load"):
        served.generate(engine_models.requests(1), [CENTRE_MEMBER], MOVED, ONE_TOKEN)


def test_loading_another_centre_serves_it(tiny: Tiny) -> None:
    served, centre = loaded(HfEngine, tiny("llama"))
    moved = {name: array + np.float32(0.25) for name, array in centre.items()}
    served.load(moved)
    served.generate(engine_models.requests(1), [Member(0, 0, 1)], MOVED, ONE_TOKEN)
    assert served.digest() == digest(moved)


def test_the_published_arithmetic_drifts_in_bfloat16_and_restores_nothing(tiny: Tiny) -> None:
    served, centre = loaded(HfEngine, tiny("llama"), "bfloat16", precision="paper")
    before = served.digest()
    served.generate(engine_models.requests(1), population_members(3, "one_point"), MOVED, ONE_TOKEN)
    assert served.digest() != before
    served.load(centre)
    assert served.digest() == before


def test_the_drift_of_paper_precision_is_the_one_that_the_ledger_replays(tiny: Tiny) -> None:
    served, centre = loaded(HfEngine, tiny("llama"), "bfloat16", precision="paper")
    before = served.digest()
    served.generate([Request("p", (5,))], population_members(3, "two_point"), MOVED, ONE_TOKEN)
    assert served.digest() != before, "bfloat16 addition and subtraction leave rounding errors"
    options = {"precision": "paper", "model_dtype": "bfloat16", "population": 3, "estimator": "two_point"}
    advance(centre, None, MOVED, **options)  # type: ignore[arg-type]
    assert served.digest() == digest(centre)
