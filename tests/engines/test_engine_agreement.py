"""The population engine gives the tokens that one member at a time gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import engine_models
import pytest

from broadreach.engines.hf import HfEngine
from broadreach.engines.population import PopulationEngine
from broadreach.models.weights import load_centre
from broadreach.noise.members import population_members
from broadreach.types import CENTRE_MEMBER, Member, Perturbation, Response, Sampling, UserError

MOVED = Perturbation(seed=3, step=1, sigma=0.02)
Tiny = Callable[..., Path]


def tokens(rows: list[list[Response]]) -> list[list[tuple[int, ...]]]:
    return [[response.tokens for response in row] for row in rows]


def both(directory: Path, **options: float) -> tuple[HfEngine, PopulationEngine]:
    one, many = HfEngine(directory), PopulationEngine(directory, **options)  # type: ignore[arg-type]
    centre = load_centre(directory)
    one.load(centre)
    many.load(centre)
    return one, many


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("architecture", sorted(engine_models.ARCHITECTURES))
def test_same_tokens_for_the_same_members(tiny: Tiny, architecture: str, temperature: float) -> None:
    one, many = both(tiny(architecture))
    members = [*population_members(3, "two_point"), Member(6, 0, 0)]
    requests = engine_models.requests(8, samples=2)
    sampling = Sampling(temperature, 14, seed=9, step=1)
    expected = tokens(one.generate(requests, members, MOVED, sampling))
    assert tokens(many.generate(requests, members, MOVED, sampling)) == expected
    assert len({tuple(row) for row in expected}) > 4, "the members must differ, or the test shows nothing"


def test_members_that_finish_at_different_times_are_compacted_rightly(tiny: Tiny) -> None:
    one, many = both(tiny("llama"))
    members = population_members(8, "one_point")
    requests = engine_models.requests(24)
    sampling = Sampling(1.0, 60, seed=1)
    expected = tokens(one.generate(requests, members, MOVED, sampling))
    left = [sum(len(answer) > 30 for answer in row) for row in expected]
    assert len(set(left)) > 2, "the members must have different numbers of rows left"
    assert tokens(many.generate(requests, members, MOVED, sampling)) == expected


def test_member_chunks_and_request_chunks_do_not_change_tokens(tiny: Tiny) -> None:
    one, many = both(tiny("qwen2"), rows=20)
    members = population_members(5, "one_point")
    requests = engine_models.requests(7)
    delivered: list[int] = []
    expected = tokens(one.generate(requests, members, MOVED, Sampling(0.0, 10)))
    got = many.generate(requests, members, MOVED, Sampling(0.0, 10), None, lambda i, _: delivered.append(i))
    assert tokens(got) == expected
    assert delivered == [0, 1, 2, 3, 4]
    narrow = both(tiny("qwen2"), rows=3)[1]
    assert tokens(narrow.generate(requests, members, MOVED, Sampling(0.0, 10))) == expected


def test_memory_bounds_the_members_served_at_once(tiny: Tiny) -> None:
    size = sum(array.nbytes for array in load_centre(tiny("llama")).values())
    assert both(tiny("llama"), memory_gb=8 * size / 1e9)[1].most_members == 4


def test_the_centre_among_members_is_the_unperturbed_model(tiny: Tiny) -> None:
    one, many = both(tiny("llama"))
    requests = engine_models.requests(6)
    alone = tokens(one.generate(requests, [CENTRE_MEMBER], MOVED, Sampling(0.0, 12)))[0]
    members = [Member(0, 0, 1), Member(1, 0, 0), Member(2, 0, -1)]
    assert tokens(many.generate(requests, members, MOVED, Sampling(0.0, 12)))[1] == alone


def test_an_unsupported_module_is_named_and_points_to_hf(tmp_path: Path) -> None:
    engine_models.save_mixture_of_experts(tmp_path)
    with pytest.raises(UserError, match=r'model\.layers\.0\.mlp.* \(\w+\) .*engine\.kind = "hf"'):
        PopulationEngine(tmp_path)
