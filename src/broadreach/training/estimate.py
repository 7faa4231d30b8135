"""What a run will cost, before it starts: forward passes, tokens, memory, disk, and what rounding swallows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from broadreach.config import Config
from broadreach.models.kinds import tensor_kind
from broadreach.noise.perturb import rounding_share
from broadreach.training.grpo_plan import make_plan
from broadreach.training.grpo_record import forward_passes
from broadreach.training.setup import Prepared
from broadreach.types import Centre

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
GRPO_BYTES = 20
"""Float32 policy, gradient, two Adam moments and the KL reference."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Upper bounds: responses that end early cost less."""

    parameters: int
    updates: int
    responses: int
    prompt_tokens: int
    new_tokens: int
    forward_passes: int
    """Token positions computed forward, prompts and new tokens (shared prompt prefixes counted in full)."""
    weights_bytes: int
    """Float32 centre and one served copy; for GRPO also what its optimiser needs."""
    disk_bytes: int
    """Kept snapshots, the export and the ledger."""


def estimate(config: Config, prepared: Prepared, centre: Centre) -> Estimate:
    """Count what `prepared.total` updates need."""
    parameters = sum(array.size for array in centre.values())
    lengths = [len(request.prompt) for request in prepared.requests]
    seen = [lengths[i] for step in range(1, prepared.total + 1) for i in prepared.batches.at(step)]
    grpo = config.train.method == "grpo"
    evaluations = config.grpo.group_size if grpo else config.es.evaluations
    prompt_tokens = evaluations * sum(seen)
    new_tokens = evaluations * len(seen) * config.sampling.max_new_tokens
    width = BYTES[config.model.dtype]
    line = 40 + 22 * config.es.population + 20 * evaluations + 16 * config.train.batch
    return Estimate(
        parameters=parameters,
        updates=prepared.total,
        responses=evaluations * len(seen),
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        forward_passes=(prompt_tokens + new_tokens)
        * (forward_passes(config, make_plan(config, prepared)) if grpo else 1),
        weights_bytes=parameters * ((GRPO_BYTES if grpo else 4) + width),
        disk_bytes=parameters * ((12 if grpo else 4) * config.run.keep_snapshots + width) + line * prepared.total,
    )


def rounded_away(config: Config, centre: Centre) -> dict[str, float]:
    """Share of coordinates, per kind of tensor, that a perturbation leaves unchanged in the model dtype."""
    unchanged: dict[str, float] = defaultdict(float)
    sizes: dict[str, int] = defaultdict(int)
    for name, array in centre.items():
        kind = tensor_kind(name)
        unchanged[kind] += rounding_share(array, config.es.sigma, config.model.dtype, name=name) * array.size
        sizes[kind] += array.size
    return {kind: unchanged[kind] / sizes[kind] for kind in sorted(sizes)}
