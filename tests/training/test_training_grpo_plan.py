"""How an update is cut into optimiser steps and micro-batches, and what the presets say they do."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from broadreach.config import GRPO_PRESETS, load_config
from broadreach.training.grpo_plan import GrpoPlan, describe
from broadreach.training.grpo_rows import micro_batches, without_padding


@given(st.integers(1, 12), st.integers(2, 6), st.integers(1, 4), st.integers(1, 5))
def test_chunks_cover_every_response_once_and_weigh_them_equally(prompts, group, mini_batches, accumulation):
    plan = GrpoPlan(12, group, mini_batches, 1, 1, accumulation)
    chunks = plan.chunks(prompts)
    assert len(chunks) == plan.chunks_per_pass
    assert [chunk.start for chunk in chunks[1:]] == [chunk.stop for chunk in chunks[:-1]]
    assert (chunks[0].start, chunks[-1].stop) == (0, prompts * group)
    for first in range(0, len(chunks), accumulation):
        mini = chunks[first : first + accumulation]
        rows = mini[-1].stop - mini[0].start
        assert rows % group == 0, "a mini-batch holds whole prompts"
        for chunk in mini:
            size = chunk.stop - chunk.start
            assert rows == 0 or chunk.weight / accumulation == pytest.approx(size / rows)


def test_equal_chunks_leave_the_loss_untouched():
    assert {chunk.weight for chunk in GrpoPlan(64, 8, 2, 1, 32, 8).chunks(64)} == {1.0}


def said(*settings):
    config = load_config([], list(settings))
    mini = config.grpo.mini_batch or config.train.batch
    plan = GrpoPlan(config.train.batch, config.grpo.group_size, config.train.batch // mini, 1, 32, 8)
    return config.grpo, " ".join(describe(config, plan))


def test_the_default_is_literally_the_papers():
    grpo, words = said()
    assert (grpo.group_size, grpo.mini_batch, grpo.learning_rate) == (8, 32, 1e-6)
    assert (grpo.loss, grpo.beta, grpo.epsilon, grpo.ratio) == ("grpo", 0.001, 0.2, "token")
    assert (grpo.scale_rewards, grpo.temperature, grpo.schedule, grpo.iterations) == ("group", 1.0, "constant", 1)
    assert "preset paper: 8 responses to each of 64 prompts" in words and "equation 4" in words
    assert "clipped to [0.8, 1.2]" in words and "minus 0.001 x KL" in words and "2 optimiser steps" in words


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("deepseekmath", ["64 responses", "minus 0.04 x KL", "1 optimiser step an update", "clipping never acts"]),
        ("dapo", ["[0.8, 1.28]", "all tokens of the batch", "no KL term", "without its dynamic sampling", "cut off"]),
        ("dr_grpo", ["not divided by any spread", "responses x 64, the length limit", "no KL term"]),
    ],
)
def test_presets_say_what_they_are(preset, words):
    _, text = said(f"grpo.preset={preset}")
    assert f"preset {preset}:" in text and all(word in text for word in words)


def test_a_preset_with_a_changed_value_says_so():
    grpo, text = said("grpo.preset=dapo", "grpo.epsilon_high=0.3")
    assert grpo.epsilon_high == 0.3 and "preset dapo with epsilon_high 0.28 -> 0.3:" in text
    assert set(GRPO_PRESETS) == {"paper", "deepseekmath", "dapo", "dr_grpo"}


def test_scoring_without_padding_gives_every_row_its_own_values():
    """Rows whose "score" is their token ids: cutting columns and sorting rows must not move any of them."""
    lengths, kept, prompt = torch.tensor([[3, 2], [1, 5], [4, 1], [2, 2], [4, 4], [1, 1]]), 6, 4
    mask = torch.zeros(6, prompt + kept, dtype=torch.long)
    for row, (before, after) in enumerate(lengths.tolist()):
        mask[row, prompt - before : prompt + after] = 1
    ids = torch.arange(mask.numel()).view(mask.shape) * mask
    widths = []

    def score(ids, mask, kept):
        widths.append(ids.shape[1])
        return ids[:, -kept:].float(), -ids[:, -kept:].float(), None

    plan = GrpoPlan(3, 2, 1, 1, 2, 3)
    parts = [rows for rows, _ in micro_batches(mask.sum(1), plan)]
    logs, entropies, extra = without_padding(score, ids, mask, kept, parts)
    assert torch.equal(logs, ids[:, prompt:].float()) and torch.equal(entropies, -logs) and extra is None
    assert widths == [4, 6, 9] and max(widths) < mask.shape[1]
