"""The pretraining corpus: deterministic, apart from the test problems, with the ways of answering it promises."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest

from broadreach.tasks.nano import NANO_TASKS, splits

SCRIPTS = Path(__file__).parents[2] / "scripts"
DIGEST = "d2408efeeab29d7f"


@pytest.fixture(scope="module")
def corpus() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        import nano_corpus
    finally:
        sys.path.remove(str(SCRIPTS))
    return nano_corpus


def test_corpus_is_deterministic(corpus: ModuleType) -> None:
    first = list(islice(corpus.examples(3, corpus.MIXED), 500))
    assert first == list(islice(corpus.examples(3, corpus.MIXED), 500))
    assert first != list(islice(corpus.examples(4, corpus.MIXED), 500))
    assert hashlib.sha256(repr(first).encode()).hexdigest()[:16] == DIGEST


def test_corpus_holds_no_problem_of_the_splits(corpus: ModuleType) -> None:
    kept = {p.question for task in NANO_TASKS.values() for s in splits.SIZES for p in task().problems(s)}
    assert not kept & {question for question, _ in islice(corpus.examples(1, corpus.WORKED), 5000)}


def test_worked_answers_are_right(corpus: ModuleType) -> None:
    for name, source in corpus.SOURCES.items():
        rng = splits.generator("test", name)
        task = NANO_TASKS[name]()
        for problem in islice(splits.corpus(name, source.levels, source.draw), 200):
            assert task.score(problem, source.answer(problem, "worked", rng)).correct


@pytest.mark.parametrize(
    ("way", "least", "most"), [("guessed", 0.0, 0.45), ("formless", 0.0, 0.0), ("unboxed", 0.0, 0.0)]
)
def test_other_ways_are_mostly_wrong_or_formless(corpus: ModuleType, way: str, least: float, most: float) -> None:
    for name, source in corpus.SOURCES.items():
        rng = splits.generator("test", name, way)
        task = NANO_TASKS[name]()
        problems = list(islice(splits.corpus(name, source.levels, source.draw), 400))
        scores = [task.score(problem, source.answer(problem, way, rng)) for problem in problems]
        assert least <= sum(score.correct for score in scores) / 400 <= most
        assert all(score.format_ok == (way == "guessed") for score in scores)


def test_families_and_ways_come_in_the_promised_shares(corpus: ModuleType) -> None:
    words = Counter(question.split()[0] for question, _ in islice(corpus.examples(0, corpus.MIXED), 4000))
    assert words["Compute"] / 4000 == pytest.approx(corpus.SHARES["nano-chain"], abs=0.03)
    assert words["Make"] / 4000 == pytest.approx(corpus.SHARES["nano-countdown"], abs=0.03)


def test_script_rebuilds_the_bundled_tokenizer(corpus: ModuleType, tmp_path: Path) -> None:
    sys.path.insert(0, str(SCRIPTS))
    try:
        import make_nano
        import nano_tokenizer
    finally:
        sys.path.remove(str(SCRIPTS))
    nano_tokenizer.save(make_nano.tokenizer_of(0), tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (tmp_path / name).read_bytes() == (make_nano.OUT / name).read_bytes()
