"""From a problem to token ids: the task's chat turns, worked examples before them, the model's own chat template."""

from __future__ import annotations

from typing import Any

from broadreach.tasks.base import Task
from broadreach.types import Message, Problem, UserError


def chat(task: Task, problem: Problem, shots: int = 0) -> list[Message]:
    """The whole conversation: system message once, `shots` worked examples as turns, then the problem itself.

    UserError when the task has fewer worked examples than `shots`.
    """
    turns = task.messages(problem)
    if shots == 0:
        return turns
    examples = task.worked_examples()
    if shots > len(examples):
        raise UserError(f"task {task.name} has {len(examples)} worked examples: task.shots = {shots} is too many")
    shown: list[Message] = []
    for example, answer in examples[:shots]:
        shown += [turn for turn in task.messages(example) if turn["role"] != "system"]
        shown.append({"role": "assistant", "content": answer})
    system = [turn for turn in turns if turn["role"] == "system"]
    return [*system, *shown, *(turn for turn in turns if turn["role"] != "system")]


def render(tokenizer: Any, task: Task, problem: Problem, shots: int = 0) -> tuple[int, ...]:
    """Token ids of the conversation, the opening of the assistant's turn included; UserError without chat template."""
    return encode(tokenizer, chat(task, problem, shots))


def encode(tokenizer: Any, messages: list[Message]) -> tuple[int, ...]:
    """Token ids of chat turns by the chat template; one without a system role gets it in the first user turn."""
    return tuple(_apply(tokenizer, messages, tokenize=True))


def rendered_text(tokenizer: Any, messages: list[Message]) -> str:
    """The same conversation as text, for people to read."""
    return str(_apply(tokenizer, messages, tokenize=False))


def _apply(tokenizer: Any, messages: list[Message], tokenize: bool) -> Any:
    from jinja2.exceptions import TemplateError

    if getattr(tokenizer, "chat_template", None) is None:
        name = getattr(tokenizer, "name_or_path", "") or "this model"
        raise UserError(
            f"the tokenizer of {name} has no chat template; use an instruction-tuned model, "
            "or put a chat_template into its tokenizer_config.json"
        )
    options = {"tokenize": tokenize, "add_generation_prompt": True, "return_dict": False}
    try:
        return tokenizer.apply_chat_template(messages, **options)
    except TemplateError as error:
        folded = _fold_system(messages)
        if folded == messages:
            raise UserError(f"the model's chat template refuses this conversation: {error}") from None
        try:
            return tokenizer.apply_chat_template(folded, **options)
        except TemplateError as second:
            raise UserError(f"the model's chat template refuses this conversation: {second}") from None


def _fold_system(messages: list[Message]) -> list[Message]:
    """The system text as the opening of the first user turn (Gemma's template has no system role)."""
    if len(messages) < 2 or messages[0]["role"] != "system" or messages[1]["role"] != "user":
        return messages
    first: Message = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]
