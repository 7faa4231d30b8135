"""What `analyze probe` evaluates: two disjoint batches under every sigma, and the centre again and again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from broadreach.analysis.diversity_rollout import Asked, roll
from broadreach.analysis.diversity_store import UnitStore
from broadreach.analysis.probe import NoiseFloor, SigmaProbe, noise_floor, probe_sigma
from broadreach.commands.analyze.progress import counting
from broadreach.config import Config
from broadreach.engines.select import build_engine
from broadreach.models.weights import load_centre
from broadreach.noise.members import population_members
from broadreach.noise.update import digest
from broadreach.tasks.grading import Grader
from broadreach.training.setup import prepare
from broadreach.types import CENTRE_MEMBER, Member, Perturbation, Sampling, UserError

STEP = 0
"""Updates count from 1, so training sees neither these directions nor this sampling noise."""


def measure_probe(
    config: Config, sigmas: Sequence[float], members: int, prompts: int, repeats: int, place: Path
) -> tuple[list[SigmaProbe], NoiseFloor]:
    """Draw what PLACE/probe-units.jsonl lacks, and measure; UserError for anything the user can mend."""
    prepared = prepare(config)
    if len(prepared.problems) < 2 * prompts:
        raise UserError(
            f"--prompts {prompts}: two disjoint batches need {2 * prompts} training problems, "
            f"the task has {len(prepared.problems)}"
        )
    order = np.random.default_rng([config.seed, 2]).permutation(len(prepared.problems))[: 2 * prompts]
    problems = [prepared.problems[int(i)] for i in order]
    asked_for = {prepared.problems[int(i)].id: prepared.requests[int(i)].prompt for i in order}
    centre = load_centre(prepared.model_dir)
    greedy = config.sampling.temperature == 0
    repeats = 1 if greedy else repeats
    header = {
        "task": config.task.name,
        "prompts": prompts,
        "members": members,
        "repeats": repeats,
        "temperature": config.sampling.temperature,
        "max_new_tokens": config.sampling.max_new_tokens,
        "seed": config.seed,
        "centre_digest": digest(centre),
        "dtype": config.model.dtype,
    }
    sampling = Sampling(
        config.sampling.temperature,
        config.sampling.max_new_tokens,
        seed=config.seed,
        step=STEP,
        common=config.sampling.seeds == "common",
    )
    probes = []
    with ExitStack() as stack:
        store = stack.enter_context(UnitStore(place / "probe-units.jsonl", header))
        grader = stack.enter_context(Grader(prepared.task, config.verify))
        engine = build_engine(config.engine, prepared.model_dir, config.model.dtype, config.es.precision)
        engine.load(centre)
        asked = Asked(engine, grader, problems, asked_for)
        total = 2 * prompts * (members * len(sigmas) + repeats)
        advance = stack.enter_context(counting("responses", total))
        alone = {"centre": CENTRE_MEMBER}
        nothing = Perturbation(config.seed, STEP, 0.0)
        again = Sampling(sampling.temperature, sampling.max_new_tokens, seed=config.seed, step=STEP)
        base = roll(asked, store, alone, nothing, again, repeats, advance)["centre"]
        for sigma in sigmas:
            units: dict[str, Member] = {
                f"{sigma:g}/{member.index}": member for member in population_members(members, "one_point")
            }
            found = roll(asked, store, units, Perturbation(config.seed, STEP, sigma), sampling, 1, advance)
            rewards = np.stack([rollout.rewards[:, 0] for rollout in found.values()])
            probes.append(probe_sigma(sigma, rewards[:, :prompts], rewards[:, prompts:]))
    return probes, noise_floor(base.rewards.T, greedy, prompts)
