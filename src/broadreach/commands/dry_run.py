"""`broadreach train --dry-run`: the resolved settings and what the run will cost."""

from __future__ import annotations

from broadreach.config import Config


def show(config: Config) -> None:
    """Print settings, and counts, memory and disk of every stage."""
    from broadreach.config import to_toml

    print(to_toml(config))
    if not config.train.stages:
        _show_costs(config)
        return
    from broadreach.commands.api import run_folder
    from broadreach.training.sequence import describe
    from broadreach.training.stages import plan_stages

    planned = plan_stages(config, run_folder(config))
    print(f"# {describe(config, planned)}")
    for stage, settings in planned:
        print(f"#\n# stage {stage.number}: {stage.method}")
        _show_costs(settings.model_copy(update={"model": config.model}))


def _show_costs(config: Config) -> None:
    from broadreach.models.weights import load_centre
    from broadreach.training.estimate import estimate
    from broadreach.training.setup import prepare

    prepared = prepare(config)
    centre = load_centre(prepared.model_dir)
    cost = estimate(config, prepared, centre)
    grpo = config.train.method == "grpo"
    each = f"{config.grpo.group_size} responses" if grpo else f"{config.es.evaluations} members"
    held = "float32 policy, gradient, optimiser and reference" if grpo else "float32 centre"
    for note in prepared.notes:
        print(f"# {note}")
    print(f"# parameters          {cost.parameters:,}")
    print(f"# updates             {cost.updates:,} of {each} x {config.train.batch} problems")
    print(f"# responses           {cost.responses:,}")
    print(f"# tokens, at most     {cost.prompt_tokens:,} prompt + {cost.new_tokens:,} new")
    print(f"# forward passes      {cost.forward_passes:,} token positions")
    print(f"# memory for weights  {_size(cost.weights_bytes)} ({held} + {config.model.dtype} served), plus caches")
    print(f"# disk                {_size(cost.disk_bytes)}")
    if grpo:
        from broadreach.training.grpo_plan import describe, make_plan

        print("\n".join(f"# {line}" for line in describe(config, make_plan(config, prepared))))
        return
    from broadreach.training.estimate import rounded_away

    shares = ", ".join(f"{kind} {share:.1%}" for kind, share in rounded_away(config, centre).items())
    print(f"# rounded away        {shares} (coordinates that one perturbation leaves unchanged)")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError
