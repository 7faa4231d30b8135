"""Names, options, splits and fingerprints of tasks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from broadreach.config import TaskSettings
from broadreach.tasks.dataset import DatasetTask
from broadreach.tasks.registry import BUILT_IN, get_task, list_tasks
from broadreach.types import UserError


def test_every_task_of_the_paper_is_listed_with_family_splits_and_licence() -> None:
    listed = {info.name: info for info in list_tasks()}
    wanted = {
        "gsm8k", "svamp", "deepscaler", "math500", "aime24", "aime25", "amc23", "minerva", "olympiadbench",
        "commonsense_qa", "hotpotqa", "countdown", "gpqa", "mbpp", "mbpp-sanitized",
    }  # fmt: skip
    assert wanted <= set(listed)
    for name in wanted:
        assert listed[name].family
        assert listed[name].splits
        assert listed[name].licence
        assert listed[name].summary
    assert {"jsonl", "hub", "reasoning_gym:NAME", "nano-chain"} <= set(listed)


@pytest.mark.parametrize(
    ("name", "near"), [("gsm8", "gsm8k"), ("math-500", "math500"), ("mbpp_sanitized", "mbpp-sanitized")]
)
def test_an_unknown_task_offers_the_nearest_name(name: str, near: str) -> None:
    with pytest.raises(UserError, match=f"unknown task '{name}'; did you mean {near}?"):
        get_task(TaskSettings(name=name))


def test_a_name_like_no_task_lists_all() -> None:
    with pytest.raises(UserError, match=r"known tasks: .*gsm8k"):
        get_task(TaskSettings(name="zzzzzz"))


def test_an_unknown_option_offers_the_nearest_and_a_missing_one_is_named() -> None:
    with pytest.raises(UserError, match=r"no option 'varient' .*did you mean variant"):
        get_task(TaskSettings(name="countdown", options={"varient": "uft"}))
    with pytest.raises(UserError, match=r"needs task\.options\.path"):
        get_task(TaskSettings(name="jsonl"))
    with pytest.raises(UserError, match="choose tinyzero or uft"):
        get_task(TaskSettings(name="countdown", options={"variant": "x"}))
    with pytest.raises(UserError, match="choose one of preview, math, aime"):
        get_task(TaskSettings(name="deepscaler", options={"variant": "x"}))


def test_too_many_shots_are_refused_with_the_number_there_is() -> None:
    with pytest.raises(UserError, match=r"svamp has 4 worked examples: task\.shots = 5"):
        get_task(TaskSettings(name="svamp", shots=5))
    with pytest.raises(UserError, match="math500 has 0 worked examples"):
        get_task(TaskSettings(name="math500", shots=1))


def test_an_unknown_split_lists_the_splits() -> None:
    with pytest.raises(UserError, match=r"no split 'dev'; splits: train, validation, test \(= validation\)"):
        get_task(TaskSettings(name="commonsense_qa")).problems("dev")


def test_the_instruction_hash_follows_instruction_and_shots() -> None:
    hashes = []
    for name, shots in (("svamp", 0), ("svamp", 2), ("svamp", 3), ("mbpp", 0)):
        task = get_task(TaskSettings(name=name, shots=shots))
        assert isinstance(task, DatasetTask)
        hashes.append(task.instruction_hash)
    assert len(set(hashes)) == 4
    again = get_task(TaskSettings(name="svamp", shots=2))
    assert isinstance(again, DatasetTask)
    assert again.instruction_hash == hashes[1]


@pytest.mark.usefixtures("local_data")
def test_splits_are_the_same_for_ever() -> None:
    """Fingerprints over ids, questions and golds in order: a changed split, prompt text or gold fails here."""
    known = {
        ("svamp", "train"): "deb854c81bdc07fa",
        ("svamp", "test"): "d7250998a51aa5f5",
        ("gsm8k", "test"): "bd34c131db0da851",
        ("math500", "test"): "f5b393153796624d",
        ("commonsense_qa", "test"): "2e828a4921300ec6",
        ("mbpp-sanitized", "test"): "e55891576688436c",
    }
    for (name, split), digest in known.items():
        task = get_task(TaskSettings(name=name))
        assert isinstance(task, DatasetTask)
        assert task.digest(split) == digest, (name, split)


@pytest.mark.usefixtures("local_data")
def test_the_svamp_split_does_not_depend_on_the_file_order(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import json

    from broadreach.tasks.sources import data_dir

    directory = data_dir()
    assert directory is not None
    before = get_task(TaskSettings(name="svamp"))
    train, test = ({problem.id for problem in before.problems(split)} for split in ("train", "test"))
    assert (len(train), len(test), len(train & test)) == (700, 300, 0)
    rows = json.loads((directory / "svamp" / "SVAMP.json").read_text())
    (tmp_path / "svamp").mkdir()
    (tmp_path / "svamp" / "SVAMP.json").write_text(json.dumps(rows[::-1]))
    monkeypatch.setenv("BROADREACH_DATA", str(tmp_path))
    assert {problem.id for problem in get_task(TaskSettings(name="svamp")).problems("test")} == test


@pytest.mark.usefixtures("local_data")
@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - {"gpqa"}))
def test_ids_are_unique_and_prompts_name_the_form(name: str) -> None:
    forms = {
        "boxed_math": "\\boxed{}",
        "choice": "\\boxed{}",
        "answer_tag": "<answer>",
        "countdown": "<answer>",
        "code": "```python",
    }
    task = get_task(TaskSettings(name=name))
    assert isinstance(task, DatasetTask)
    for split in task.splits:
        if not task.is_local(split):
            continue
        problems = task.rows(split)
        assert len({problem.id for problem in problems}) == len(problems)
        turns = task.messages(problems[0])
        assert [turn["role"] for turn in turns] == ["system", "user"]
        assert forms[task.family] in turns[0]["content"]
        assert problems[0].question in turns[1]["content"]


def test_the_registry_loads_nothing_heavy() -> None:
    code = (
        "import sys; from broadreach.tasks.registry import list_tasks; list_tasks();"
        "heavy = {'torch', 'transformers', 'datasets', 'pyarrow', 'reasoning_gym', 'sympy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
