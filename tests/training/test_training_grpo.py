"""GRPO over TRL: the loss of equation (4), the reference it is held to, and the prompts it shares with ES."""

import copy
import json
import sys
from pathlib import Path

import pytest
import torch

from broadreach.commands.api import start
from broadreach.models.weights import load_centre, load_model
from broadreach.noise.update import digest
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger
from broadreach.training import grpo
from broadreach.types import UserError

sys.path.insert(0, str(Path(__file__).parent))
from grpo_tiny import configure, save_tiny_model
from listeners import Notes

BETA, EPSILON = 0.05, 0.2


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def train(model, tmp_path):
    """Train in a fresh folder; returns (run, what was said)."""

    def _train(*extra, method="grpo", name="run", base=model):
        said, run = Notes(), RunFolder(tmp_path / name)
        start(configure(base, run.path, f"train.method={method}", *extra), run, said)
        return run, said

    return _train


@pytest.fixture
def watched(monkeypatch):
    """Every micro-batch that TRL computes a loss for: its inputs, the weights at that moment, and the loss."""
    records, build = [], grpo.build_trainer

    def spy(*arguments):
        trainer = build(*arguments)
        inner = trainer._compute_loss

        def compute(policy, inputs):
            weights = copy.deepcopy(policy.state_dict())
            loss = inner(policy, inputs)
            records.append({"inputs": inputs, "weights": weights, "loss": loss.item(), "trainer": trainer})
            return loss

        trainer._compute_loss = compute
        return trainer

    monkeypatch.setattr(grpo, "build_trainer", spy)
    return records


def log_probabilities(model, prompt, completion):
    """log pi(token | what is before it) of one unpadded response, in float64."""
    logits = model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits.double(), -1).gather(1, torch.tensor(completion)[:, None])[:, 0]


def rows_of(inputs):
    """(prompt, completion) token lists of a micro-batch, without padding."""
    for i in range(len(inputs["prompt_ids"])):
        prompt = inputs["prompt_ids"][i][inputs["prompt_mask"][i].bool()].tolist()
        yield prompt, inputs["completion_ids"][i][inputs["completion_mask"][i].bool()].tolist()


def by_prompt(records):
    """The rows of a mini-batch with the responses to one prompt together (TRL is given them sorted by length)."""
    rows = [row for record in records for row in rows_of(record["inputs"])]
    prompts = list(dict.fromkeys(tuple(prompt) for prompt, _ in rows))
    return sorted(rows, key=lambda row: prompts.index(tuple(row[0])))


def equation_4(policy, old_policy, reference, rows, group):
    """The objective of a mini-batch, straight from method.md (3) and (4); also the share of clipped tokens."""
    rewards = torch.tensor([sum(completion) % 7 / 6 for _, completion in rows], dtype=torch.float64).view(-1, group)
    centred = rewards - rewards.mean(1, keepdim=True)
    advantages = (centred / (rewards.std(1, keepdim=True) + 1e-4)).flatten()
    total, clipped, tokens = 0.0, 0, 0
    for (prompt, completion), advantage in zip(rows, advantages, strict=True):
        new = log_probabilities(policy, prompt, completion)
        old = log_probabilities(old_policy, prompt, completion).detach()
        ref = log_probabilities(reference, prompt, completion)
        ratio = torch.exp(new - old)
        term = torch.minimum(ratio * advantage, ratio.clamp(1 - EPSILON, 1 + EPSILON) * advantage)
        kl = torch.exp(ref - new) - (ref - new) - 1
        total = total + (term - BETA * kl).mean()
        outside = torch.where(advantage > 0, ratio > 1 + EPSILON, ratio < 1 - EPSILON)
        clipped, tokens = clipped + int(outside.sum()), tokens + len(completion)
    return total / len(rows), clipped / tokens


def with_weights(directory, weights=None):
    """The model in float64, with other weights in it."""
    model = load_model(directory, "float32")
    if weights is not None:
        model.load_state_dict(weights)
    return model.double()


def test_loss_is_equation_4_with_and_without_clipping_and_in_a_short_batch(model, train, watched):
    """Two updates of two mini-batches; the second update is a tail batch, cut into micro-batches of unequal size."""
    settings = ["train.batch=6", "task.max_train=10", "grpo.mini_batch=3", "grpo.micro_batch=2", "train.updates=2"]
    train(*settings, "grpo.learning_rate=0.02", f"grpo.beta={BETA}")
    assert [len(record["inputs"]["prompt_ids"]) for record in watched] == [2] * 12 + [1, 1, 2] * 4
    assert len({len(completion) for record in watched for _, completion in rows_of(record["inputs"])}) > 3
    shares = []
    for first in range(0, 24, 6):
        mini = watched[first : first + 6]
        generated_with = watched[first - first % 12]["weights"]
        rows = by_prompt(mini)
        policy, old_policy = with_weights(model, mini[0]["weights"]), with_weights(model, generated_with)
        value, clipped = equation_4(policy, old_policy, with_weights(model), rows, 4)
        assert sum(record["loss"] for record in mini) == pytest.approx(-float(value), abs=1e-6)
        shares.append(clipped)
    assert shares[0] == shares[2] == 0.0, "ratio 1 in the first mini-batch"
    assert min(shares[1], shares[3]) > 0.02, "clipping must act in the second, or this test shows too little"


def test_gradient_at_ratio_1_is_that_of_equation_4(model, train, watched):
    """With one optimiser step the loss is the KL term alone (a group's advantages sum to 0); its gradient is not."""
    _, said = train("grpo.mini_batch=0", "train.updates=2", f"grpo.beta={BETA}")
    for update, line in enumerate(said.updates):
        records = watched[update : update + 1]
        policy = with_weights(model, records[0]["weights"]).requires_grad_(True)
        rows = by_prompt(records)
        value, _ = equation_4(policy, policy, with_weights(model), rows, 4)
        value.backward()
        norm = torch.sqrt(sum(weight.grad.square().sum() for weight in policy.parameters()))
        assert line["grad_norm"] == pytest.approx(float(norm), rel=1e-5) and norm > 0.1
        assert line["loss"] == pytest.approx(-value.item(), abs=1e-6)


def test_reference_is_the_model_that_the_stage_starts_from(model, train, watched):
    """ES first, GRPO from its export: the KL is measured to the export, not to the base."""
    first, _ = train("es.alpha=0.02", "es.sigma=0.02", "train.updates=2", method="es", name="es")
    start = load_centre(first.export)
    assert digest(start) != digest(load_centre(model))
    _, said = train("grpo.mini_batch=0", "grpo.beta=0.05", "train.updates=2", base=first.export)
    reference = watched[0]["trainer"].ref_model
    assert digest(grpo.policy_weights(reference)) == digest(start)
    assert said.updates[0]["kl"] == pytest.approx(0.0, abs=1e-9)
    assert said.updates[1]["kl"] > 1e-5


def test_constant_rewards_give_no_gradient_and_stop_with_advice(model, train):
    with pytest.raises(UserError, match=r"stopped: 2 updates .* equal rewards .*task\.shots=2"):
        train("task.reward=grpo_tiny:constant", "train.stop_when_idle=2")
    run, said = train("task.reward=grpo_tiny:constant", "train.updates=2", name="patient")
    assert [line["grad_norm"] for line in said.updates] == [0.0, 0.0]
    assert [line["zero_spread_groups"] for line in said.updates] == [1.0, 1.0]
    assert not any(line["updated"] for line in said.updates)
    assert digest(load_centre(run.export)) == digest(load_centre(model))


def test_same_prompts_in_the_same_order_as_es_tail_and_epochs_included(train):
    settings = ["task.max_train=10", "train.updates=7", "es.alpha=1e-9"]
    first, _ = train(*settings, method="es", name="es")
    _, said = train(*settings)
    by_es = [list(entry.record.problems) for entry in read_ledger(first.ledger_file).entries]
    assert [line["problems"] for line in said.updates] == by_es
    assert [len(batch) for batch in by_es] == [4, 4, 2, 4, 4, 2, 4]


def test_the_line_of_an_update(train):
    run, said = train("train.updates=1", "grpo.beta=0.01")
    line = json.loads(run.metrics_file.read_text())
    assert line == said.updates[0] and said.started == [(0, 1, 16)]
    assert line["responses"] == 16 and line["optimiser_steps"] == 2
    assert line["backward_positions"] == line["tokens"] + line["prompt_tokens"]
    assert line["forward_positions"] == 4 * line["backward_positions"]
    assert set(line["seconds"]) == {"generation", "verification", "update", "other", "total"}
    assert line["entropy"] > 1 and line["learning_rate"] == 0.003 and line["peak_memory_mb"] > 100
    assert {"grad_norm", "clip_share", "kl", "drift", "reward_std", "skipped", "truncated"} <= set(line)
    facts = json.loads(run.environment_file.read_text())
    assert facts["versions"]["trl"].startswith("1.")
    words = " ".join(said.notes)
    assert "equation 4" in words and "preset paper with" in words and "2 optimiser steps an update" in words


def test_trl_can_generate_instead_from_the_same_prompts(train, watched):
    run, said = train("grpo.generation=trl", "train.updates=1", "grpo.beta=0")
    assert said.updates[0]["responses"] == 16 and said.updates[0]["kl"] is None
    assert 0 < said.updates[0]["reward_mean"] < 1
    prepared = watched[0]["trainer"].prepared
    asked = [row[0] for record in watched for row in rows_of(record["inputs"])]
    assert sorted(asked) == sorted(list(prepared.requests[i].prompt) for i in prepared.batches.at(1) for _ in range(4))
    assert run.is_done()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["grpo.group_size=1"], r"grpo\.group_size = 1.*at least 2"),
        (["grpo.mini_batch=3"], r"grpo\.mini_batch = 3 does not divide train\.batch = 4; 1, 2, 4 would"),
        (["grpo.micro_batch=3"], r"grpo\.micro_batch = 3 does not divide .* = 8; 1, 2, 4, 8 would"),
        (["task.max_train=9", "grpo.mini_batch=1"], r"has 1 problems, too few .*train\.keep_tail = false"),
        (["model.dtype=float16"], "float32 or bfloat16"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(train, tmp_path, settings, words):
    with pytest.raises(UserError, match=words) as caught:
        train(*settings, name="bad")
    assert "\n" not in str(caught.value) and not (tmp_path / "bad").exists()


@pytest.mark.parametrize("preset", ["deepseekmath", "dapo", "dr_grpo"])
def test_the_other_presets_train_and_leave_their_own_loss_in_trl(train, watched, preset):
    run, said = train(f"grpo.preset={preset}", "train.updates=2")
    trainer = watched[0]["trainer"]
    expected = {"deepseekmath": ("grpo", 0.04), "dapo": ("dapo", 0.0), "dr_grpo": ("dr_grpo", 0.0)}[preset]
    assert (trainer.loss_type, trainer.beta) == expected and not trainer.args.use_bias_correction_kl
    assert (trainer.epsilon_low, trainer.epsilon_high) == (0.2, 0.28 if preset == "dapo" else 0.2)
    assert all(0 < line["grad_norm"] < 100 for line in said.updates) and said.updates[-1]["drift"] > 0
    assert f"preset {preset}" in said.notes[-3] and run.is_done()
