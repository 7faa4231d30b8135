"""From problems to token ids: worked examples as turns, the model's own chat template."""

from __future__ import annotations

from typing import Any

import pytest

from broadreach.config import TaskSettings
from broadreach.tasks.registry import get_task
from broadreach.tasks.render import chat, encode, render, rendered_text
from broadreach.types import Problem, UserError

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + TEMPLATE
)
PROBLEM = Problem("p", "What is 1 + 1?", "2")


def _tokenizer(template: str | None) -> Any:
    """A byte-level tokenizer: every text comes back."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {character: index for index, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Tokenizer(models.BPE(vocabulary, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    tokenizer.chat_template = template
    return tokenizer


def test_worked_examples_stand_between_the_system_message_and_the_problem() -> None:
    task = get_task(TaskSettings(name="svamp", shots=2))
    turns = chat(task, PROBLEM, 2)
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert turns[-1]["content"] == PROBLEM.question
    assert all("\\boxed{" in turn["content"] for turn in turns if turn["role"] == "assistant")
    assert chat(task, PROBLEM, 0) == [turns[0], turns[-1]]


def test_more_shots_than_examples_are_refused() -> None:
    with pytest.raises(UserError, match=r"task\.shots = 9 is too many"):
        chat(get_task(TaskSettings(name="gsm8k")), PROBLEM, 9)


def test_token_ids_are_those_of_the_rendered_text_and_open_the_answer() -> None:
    tokenizer = _tokenizer(TEMPLATE)
    task = get_task(TaskSettings(name="gsm8k", shots=1))
    ids = render(tokenizer, task, PROBLEM, 1)
    text = rendered_text(tokenizer, chat(task, PROBLEM, 1))
    assert isinstance(ids, tuple)
    assert all(isinstance(token, int) for token in ids)
    assert tokenizer.decode(ids) == text
    assert text.endswith("<user>What is 1 + 1?</s><assistant>")


def test_a_template_without_system_role_gets_it_in_the_first_user_turn() -> None:
    task = get_task(TaskSettings(name="gsm8k"))
    text = rendered_text(_tokenizer(NO_SYSTEM), task.messages(PROBLEM))
    assert text.startswith("<user>Please reason step by step")
    assert "What is 1 + 1?</s><assistant>" in text


def test_without_chat_template_the_error_says_what_to_do() -> None:
    with pytest.raises(UserError, match="has no chat template; use an instruction-tuned model"):
        render(_tokenizer(None), get_task(TaskSettings(name="gsm8k")), PROBLEM)


def test_a_template_that_refuses_the_conversation_is_one_line() -> None:
    template = "{{ raise_exception('alternate the roles') }}"
    with pytest.raises(UserError, match="refuses this conversation: alternate the roles"):
        encode(_tokenizer(template), [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])
    with pytest.raises(UserError, match="refuses this conversation"):
        encode(_tokenizer(template), [{"role": "user", "content": "u"}])


def test_worked_examples_are_short_enough_for_small_budgets() -> None:
    """SmolLM2-135M gets 40 to 60 new tokens: no worked answer may be longer than 100 characters."""
    for name in ("svamp", "gsm8k"):
        assert all(len(answer) <= 100 for _, answer in get_task(TaskSettings(name=name)).worked_examples())
