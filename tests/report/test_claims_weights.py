"""Claims 4c and 5, decided by the analyses that lie in the run folders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from comparison_fixture_analyses import add_drift, add_null, add_threshold
from comparison_fixture_runs import make_run

from broadreach.evaluation.table import load
from broadreach.report.claims import Claim, multiplicity, stays
from broadreach.report.claims_weights import HALF_POINT, largest_claims, sparsity_claim
from broadreach.report.comparison_data import read_comparison
from broadreach.report.comparison_stats import Statistics
from broadreach.types import UserError

EMBEDDING, ATTENTION, MLP, NORM = (
    "model.embed_tokens.weight",
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.0.mlp.up_proj.weight",
    "model.norm.weight",
)


@pytest.fixture
def one(tmp_path: Path) -> Callable[..., Path]:
    plain = {"tasks": ("nano-chain",), "problems": 30, "samples": 8, "updates": 6, "extras": False}
    return lambda method="es", seed=0, **changes: make_run(tmp_path, method, seed, **{**plain, **changes})


def sparsity(*runs: Path) -> Claim:
    data = read_comparison(runs)
    return sparsity_claim(data, Statistics(data, 300))


def largest(*runs: Path) -> dict[str, Claim]:
    return {claim.number: claim for claim in largest_claims(read_comparison(runs))}


def test_unmeasured_claims_name_the_command_that_measures_them(one: Callable[..., Path]) -> None:
    es, grpo = one(), one("grpo")
    found = [sparsity(es, grpo), *largest(es, grpo).values()]
    assert [claim.verdict for claim in found] == ["not measured here"] * 3
    commands = [
        f"`broadreach analyze {what} {run}`" for what, run in (("threshold", es), ("drift", es), ("drift", grpo))
    ]
    assert all(command in claim.evidence for command, claim in zip(commands, found, strict=True))


def test_the_difference_is_the_mean_over_seeds_and_problems_at_the_nearest_share(one: Callable[..., Path]) -> None:
    runs = [one(seed=0), one(seed=1)]
    for seed, run in enumerate(runs):
        add_threshold(run, seed, (0.5, 0.79, 0.95))
    means = [
        load(run / f"analysis/threshold/{name}/samples.jsonl").correct.mean()
        for run in runs
        for name in ("threshold-0.002", "full", "random-count-0.002")
    ]
    change = 100 * (np.mean(means[0::3]) - np.mean(means[1::3]))
    claim = sparsity(*runs)
    assert claim.evidence.startswith("79.0% of the moved coordinates reset on nano-chain, reset − full: ")
    said = re.findall(r"(\S+) points \[(\S+), (\S+)\]", claim.evidence.replace("−", "-"))
    value, low, high = (float(number) for number in said[0])
    assert value == pytest.approx(change, abs=0.006) and low <= value <= high
    assert claim.verdict == stays({"low": low / 100, "high": high / 100}, HALF_POINT)
    assert float(said[1][0]) == pytest.approx(100 * (np.mean(means[2::3]) - np.mean(means[1::3])), abs=0.006)
    assert "2 training seeds" in claim.evidence


def test_a_large_loss_refutes_and_a_seed_without_the_analysis_is_said(one: Callable[..., Path]) -> None:
    runs = [one(seed=0), one(seed=1)]
    add_threshold(runs[0], 0, reset="base", controls=("threshold",))
    claim = sparsity(*runs)
    assert claim.verdict == "refuted"
    assert "Only 1 of 2 seeds are analysed" in claim.evidence and "--controls random-count" in claim.evidence


@pytest.mark.parametrize(("problems", "verdict"), [(30, "undecided"), (601, "confirmed")])
def test_equal_answers_confirm_only_on_enough_problems(one: Callable[..., Path], problems: int, verdict: str) -> None:
    run = one(problems=problems, samples=2)
    add_threshold(run, 0, reset="es", problems=problems, samples=2, controls=("threshold",))
    claim = sparsity(run)
    assert claim.verdict == verdict and "0.00 points [0.00, 0.00]" in claim.evidence
    assert ("too few to conclude" in claim.evidence) == (verdict == "undecided")


def test_a_threshold_that_does_not_fit_is_not_used(one: Callable[..., Path]) -> None:
    far, old = one(name="far"), one(name="old", seed=1)
    add_threshold(far, 0, (0.5, 0.84))
    add_threshold(old, 1, full={"model_digest": "weights-before"})
    assert "no threshold that resets 73% to 83%" in sparsity(far).evidence
    assert "is not of the run's last weights" in sparsity(old).evidence
    (old / "analysis/threshold/threshold-0.002/samples.jsonl").unlink()
    assert "are gone or unlike: run `broadreach analyze threshold" in sparsity(old).evidence


def test_seeds_evaluated_unlike_are_not_averaged(one: Callable[..., Path]) -> None:
    runs = [one(seed=0), one(seed=1)]
    add_threshold(runs[0], 0)
    add_threshold(runs[1], 1, problems=20)
    claim = sparsity(*runs)
    assert claim.verdict == "not measured here" and "problems: 30, 20" in claim.evidence


def test_the_majority_of_the_largest_changes_decides_in_every_seed(one: Callable[..., Path]) -> None:
    es, grpo = [one(seed=0), one(seed=1)], [one("grpo", 0), one("grpo", 1)]
    add_drift(es[0], {NORM: 8, ATTENTION: 60, MLP: 32})
    add_drift(es[1], {ATTENTION: 51, MLP: 49})
    add_drift(grpo[0], {EMBEDDING: 90, MLP: 10})
    add_drift(grpo[1], {EMBEDDING: 50, MLP: 50})
    found = largest(*es, *grpo)
    assert (found["5a"].verdict, found["5b"].verdict) == ("confirmed", "undecided"), "50 of 100 is no majority"
    assert "seed 0: 68 of 100 (attention_q 60, mlp 32, norm 8); seed 1: 51 of 100" in found["5a"].evidence
    assert "Norm and attention hold 17.4% of the weights." in found["5a"].evidence, "168 of 968"
    assert "2 seeds alone decide" in found["5b"].evidence
    add_drift(es[0], {MLP: 100})
    add_drift(es[1], {MLP: 80, ATTENTION: 20})
    assert largest(*es, *grpo)["5a"].verdict == "refuted"


def test_what_noise_alone_gives_the_kinds_is_told_where_it_is_known(one: Callable[..., Path]) -> None:
    run = one()
    add_drift(run, {ATTENTION: 100})
    add_null(run)
    evidence = largest(run)["5a"].evidence
    rows = json.loads((run / "analysis/null.json").read_text())["rows"]
    noise = sum(
        row["value"]
        for row in rows
        if row["statistic"] == "share_of_top_100" and row["level"] == "kind" and row["part"] in ("norm", "attention_q")
    )
    assert 0.05 < noise < 0.5 and f"noise alone would put {100 * noise:.1f}% there" in evidence


def test_a_drift_of_other_weights_is_not_used(one: Callable[..., Path]) -> None:
    run = one()
    add_drift(run, {ATTENTION: 100})
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join([*lines, json.dumps({**json.loads(lines[-1]), "drift": 0.5})]) + "\n")
    claim = largest(run)["5a"]
    assert claim.verdict == "not measured here" and "is not of the run's last weights" in claim.evidence


@pytest.mark.parametrize("name", ["threshold", "drift", "null"])
def test_a_file_of_another_shape_is_refused_by_name(one: Callable[..., Path], name: str) -> None:
    run = one()
    add_drift(run, {ATTENTION: 100})
    (run / "analysis" / f"{name}.json").write_text(json.dumps({"rows": [{"part": 1}], "top": 3}))
    with pytest.raises(UserError, match=rf"analysis/{name}\.json is not what `broadreach analyze {name}` writes"):
        sparsity(run) if name == "threshold" else largest(run)


def test_parts_that_seeds_decide_are_not_counted_as_intervals() -> None:
    made = [Claim(number, "", "confirmed", "") for number in ("1a", "5a", "5b")]
    assert multiplicity(made).startswith("1 parts are tested by an interval")
