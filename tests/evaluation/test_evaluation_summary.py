"""metrics.json of a store, paired comparison of two, and token entropy by teacher forcing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from broadreach.engines.base import TokenScores
from broadreach.evaluation.entropy import Sums, add_scores, report, retained
from broadreach.evaluation.metrics import pass_at_k
from broadreach.evaluation.store import SampleStore, StoreHeader
from broadreach.evaluation.summary import at_k, compare, compare_stores, summarise, write_json
from broadreach.evaluation.table import load
from broadreach.types import Member, Perturbation, Response, Score, UserError

COUNTS = [0, 1, 2, 3, 4, 4]


def write(path: Path, counts: Sequence[int], stop_after: int | None = None, **changes: object) -> Path:
    ids = [f"p{i}" for i in range(len(counts))]
    header = StoreHeader("toy", "test", "d0", "i0", 0.6, 16, 4, 1, len(counts), "digest")
    header = replace(header, **changes)  # type: ignore[arg-type]
    with SampleStore(path, header, ids) as store:
        for name, count in list(zip(ids, counts, strict=True))[:stop_after]:
            rights = [sample < count for sample in range(4)]
            scores = [Score(float(r), r, True, "7" if r else None, lenient_correct=True) for r in rights]
            texts = [Response("x", (1,) * (2 + s), "length" if s == 3 else "stop", 5) for s in range(4)]
            store.append(name, texts, scores)
    return path


def test_metrics_json_is_what_the_verdicts_say(tmp_path: Path) -> None:
    store = write(tmp_path / "samples.jsonl", COUNTS)
    found = json.loads(write_json(summarise(load(store)), tmp_path / "metrics.json").read_text())
    assert found == json.loads(json.dumps(summarise(load(store))))
    for entry in found["pass_at_k"]:
        expected = np.mean([pass_at_k(4, c, entry["k"]) for c in COUNTS])
        assert entry["value"] == pytest.approx(expected) and entry["low"] <= entry["value"] <= entry["high"]
    assert [entry["k"] for entry in found["pass_at_k"]] == [1, 2, 3, 4] == [e["k"] for e in found["maj_at_k"]]
    assert found["pass_at_1"] == {key: found["pass_at_k"][0][key] for key in ("value", "low", "high")}
    assert found["maj_at_k"][3]["value"] == pytest.approx(5 / 6)
    assert found["format_rate"]["value"] == found["lenient_pass_at_1"]["value"] == 1.0
    assert found["truncated"]["value"] == 0.25 and found["mean_tokens"]["value"] == 3.5
    assert found["generated_tokens"] == 6 * 14 and found["prompt_tokens"] == 6 * 4 * 5
    assert found["complete"] and "only 6 problems" in found["warnings"][0]
    with pytest.raises(UserError, match="K = 5"):
        at_k(found["pass_at_k"], 5)


def test_an_unfinished_store_is_summarised_and_says_so(tmp_path: Path) -> None:
    found = summarise(load(write(tmp_path / "s.jsonl", COUNTS, stop_after=2)), draws=100)
    assert not found["complete"] and found["problems"] == 2
    assert any("unfinished: 2 of 6" in text for text in found["warnings"])


def test_comparison_is_paired_and_points_from_a_to_b(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", COUNTS)
    b = write(tmp_path / "b.jsonl", [1, 1, 3, 4, 4, 4], model_digest="d1", seed=2)
    found = compare_stores(a, b, draws=2000)
    assert found["pass_at_k"][0]["value"] == pytest.approx((1 + 0 + 1 + 1) / 24)
    assert found["solved"] == {"both": 5, "only_a": 0, "only_b": 1, "neither": 0}
    assert found["pass_at_k"][0]["low"] >= 0
    itself = compare_stores(a, a, draws=200)
    assert all(entry["low"] == entry["value"] == entry["high"] == 0 for entry in itself["pass_at_k"])


@pytest.mark.parametrize(
    "change", [{"temperature": 0.7}, {"task": "other"}, {"instruction_hash": "i1"}, {"problem_digest": "x"}]
)
def test_unlike_stores_are_refused_and_the_difference_is_listed(tmp_path: Path, change: dict[str, object]) -> None:
    a, b = write(tmp_path / "a.jsonl", COUNTS), write(tmp_path / "b.jsonl", COUNTS, **change)
    with pytest.raises(UserError) as refused:
        compare_stores(a, b)
    (key, value), text = next(iter(change.items())), str(refused.value)
    assert key in text and repr(value) in text and "\n" not in text


def test_an_unfinished_store_is_not_compared(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.jsonl", COUNTS), write(tmp_path / "b.jsonl", COUNTS, stop_after=3)
    with pytest.raises(UserError, match="second store holds 3 of 6"):
        compare_stores(a, b)
    with pytest.raises(UserError, match="first store holds 3 of 6"):
        compare(load(b), load(a))


class FlatEngine:
    """Every token of a response with n tokens has entropy n."""

    def score_tokens(
        self,
        prompts: Sequence[Sequence[int]],
        responses: Sequence[Sequence[int]],
        member: Member,
        perturbation: Perturbation,
    ) -> list[TokenScores]:
        assert member.sign == 0 and all(tuple(prompt) == (9, 9) for prompt in prompts)
        return [TokenScores(np.full(len(r), -1.0, np.float32), np.full(len(r), len(r), np.float32)) for r in responses]


def test_entropy_weighs_tokens_within_a_problem_and_problems_equally(tmp_path: Path) -> None:
    store = write(tmp_path / "s.jsonl", COUNTS)
    prompts = {f"p{i}": (9, 9) for i in range(6)}
    kept = retained(store, prompts, per_problem=2)
    assert len(kept) == 12 and len(retained(store, prompts, problems=1)) == 4
    for chunk in (1, 5, 100):
        sums: Sums = {}
        for start in range(0, len(kept), chunk):
            add_scores(FlatEngine(), kept[start : start + chunk], sums)  # type: ignore[arg-type]
        found = report(sums)
        assert found.entropy.value == pytest.approx((2 * 2 + 3 * 3) / 5)
        assert found.surprise.value == pytest.approx(1.0) and found.entropy.n == 6 and found.tokens == 30


def test_entropy_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no response"):
        report({})
    with pytest.raises(UserError, match="p0"):
        retained(write(tmp_path / "s.jsonl", COUNTS), {})
