"""The real model: fetched once from the package registry, then served by our engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from broadreach.models.locate import cache_dir, locate
from broadreach.models.weights import end_tokens, load_centre, load_tokenizer, model_context_length, parameter_count
from broadreach.types import CENTRE_MEMBER, Perturbation, Request, Sampling, UserError

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def smollm2() -> Path:
    sys.path.insert(0, str(SCRIPTS))
    try:
        import fetch_smollm2
    finally:
        sys.path.remove(str(SCRIPTS))
    try:
        return fetch_smollm2.fetch(echo=False)
    except UserError as error:
        pytest.skip(f"SmolLM2 cannot be fetched here: {error}")


@pytest.mark.slow
def test_smollm2_is_a_plain_directory_and_answers(smollm2: Path) -> None:
    from broadreach.engines.hf import HfEngine

    assert locate("smollm2") == smollm2 == cache_dir() / "smollm2"
    assert (end_tokens(smollm2), model_context_length(smollm2)) == (frozenset({2}), 8192)
    centre = load_centre(smollm2)
    assert parameter_count(centre) == 134_515_008
    assert "lm_head.weight" not in centre
    tokenizer = load_tokenizer(smollm2)
    turns = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tuple(tokenizer.apply_chat_template(turns, add_generation_prompt=True)["input_ids"])
    served = HfEngine(smollm2, "float32")
    served.load(centre)
    nothing = Perturbation(0, 0, 0.0)
    response = served.generate([Request("paris", prompt)], [CENTRE_MEMBER], nothing, Sampling(0.0, 12))[0][0]
    assert (response.text, response.finish_reason) == ("The capital of France is Paris.", "stop")
