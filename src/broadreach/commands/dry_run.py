"""`broadreach train --dry-run`: the resolved settings and what the run will cost."""

from __future__ import annotations

from broadreach.config import Config


def show(config: Config) -> None:
    """Print settings, counts, memory, disk, and what a perturbation rounds away."""
    from broadreach.config import to_toml
    from broadreach.models.weights import load_centre
    from broadreach.training.estimate import estimate, rounded_away
    from broadreach.training.setup import prepare

    print(to_toml(config))
    prepared = prepare(config)
    centre = load_centre(prepared.model_dir)
    cost = estimate(config, prepared, centre)
    for note in prepared.notes:
        print(f"# {note}")
    print(f"# parameters          {cost.parameters:,}")
    print(f"# updates             {cost.updates:,} of {config.es.evaluations} members x {config.train.batch} problems")
    print(f"# responses           {cost.responses:,}")
    print(f"# tokens, at most     {cost.prompt_tokens:,} prompt + {cost.new_tokens:,} new")
    print(f"# forward passes      {cost.forward_passes:,} token positions")
    print(
        f"# memory for weights  {_size(cost.weights_bytes)} (float32 centre + {config.model.dtype} served), plus caches"
    )
    print(f"# disk                {_size(cost.disk_bytes)}")
    shares = ", ".join(f"{kind} {share:.1%}" for kind, share in rounded_away(config, centre).items())
    print(f"# rounded away        {shares} (coordinates that one perturbation leaves unchanged)")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError
