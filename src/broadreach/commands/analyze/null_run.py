"""What `analyze null` does: noise-only runs of the asked settings, walked, summed up, and told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from broadreach.analysis import null_paper
from broadreach.analysis.drift import Drift, drift
from broadreach.analysis.drift_files import stored_dtype
from broadreach.analysis.null import simulate
from broadreach.analysis.null_paper import PaperRun
from broadreach.analysis.null_summary import NullSummary, observed_squares, summarise
from broadreach.analysis.null_walk import PRECISIONS, NullRun, plain_run, run_of_ledger
from broadreach.commands.analyze.null_view import null_rows, show_null, verdicts
from broadreach.commands.analyze.output import write_analysis
from broadreach.commands.analyze.progress import watch
from broadreach.commands.analyze.weights import Model, base_model, default_out, open_model
from broadreach.models.weights import torch_dtype
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger
from broadreach.types import UserError

POINTS = 1.0
"""A published sparsity within so many percentage points of the null counts as reproduced."""


@dataclass(frozen=True, slots=True)
class NullOptions:
    """What the user asked for; None: the run's, or the default."""

    step: int | None
    """Update of the run."""
    steps: int | None
    members: int | None
    engines: tuple[int, ...]
    sigma: float | None
    alpha: float | None
    precisions: tuple[str, ...] | None
    dtype: str | None
    seeds: int
    sample: int
    rewards: str
    taus: tuple[float, ...]
    paper: str | None
    observed: str | None


def run_null(target: str, options: NullOptions, published: PaperRun | None, out: str | None) -> None:
    """Predict, hold against what was observed and published, write null.json and null.csv, print.

    UserError for anything the user can mend.
    """
    folder = RunFolder(target)
    run = folder if folder.exists() else None
    if run is None and options.step is not None:
        raise UserError(f"--step needs a run folder, and {target} is none: --steps is the number of updates")
    base = base_model(run) if run is not None else open_model(target)
    dtype, plans = _plans(run, base, options, published)
    seen: Drift | None = None
    if options.observed is not None or run is not None:
        after = open_model(target, options.step) if options.observed is None else open_model(options.observed)
        seen = drift(base.tensors, after.tensors, options.taus)
    found = _simulate(base, dtype, plans, options, seen)
    said = verdicts(found, published, POINTS, target) if published is not None else []
    rows = null_rows(found, seen, published)
    settings = {**asdict(options), "target": target, "dtype": dtype, "base": base.facts()}
    settings["updates"] = len(plans[options.engines[0]][0].steps)
    settings["restores"] = {str(count): runs[0].restores for count, runs in plans.items()}
    paths = write_analysis(
        default_out(out, run, f"null-{target}"), "null", {"settings": settings, "statements": said, "rows": rows}, rows
    )
    show_null(found, seen, published)
    for line in said:
        print(line)
    print(f"{paths[0]}\n{paths[1]}")


def _plans(
    run: RunFolder | None, base: Model, options: NullOptions, published: PaperRun | None
) -> tuple[str, dict[int, list[NullRun]]]:
    """The model's type, and for every number of engines one noise-only run a seed."""
    if run is not None:
        return _plans_of_run(run, options, published)
    if published is not None:
        wanted = (published.updates, null_paper.MEMBERS, null_paper.SIGMA, null_paper.ALPHA)
    else:
        wanted = (0, 0, 0.0, 0.0)
    steps, members = options.steps or wanted[0], options.members or wanted[1]
    sigma, alpha = options.sigma or wanted[2], options.alpha or wanted[3]
    for name, value in (("steps", steps), ("members", members), ("sigma", sigma), ("alpha", alpha)):
        if not value:
            raise UserError(f"a null from a model needs --{name} (or --paper, or a run folder instead of the model)")
    plans = {
        count: [plain_run(steps, members, _share(members, count), sigma, alpha, k) for k in range(options.seeds)]
        for count in options.engines
    }
    return options.dtype or stored_dtype(base.tensors), plans


def _plans_of_run(
    run: RunFolder, options: NullOptions, published: PaperRun | None
) -> tuple[str, dict[int, list[NullRun]]]:
    if published is not None or any((options.steps, options.members, options.sigma, options.alpha)):
        raise UserError(f"{run.path} brings its own settings: leave --paper, --steps, --members, --sigma, --alpha out")
    if options.rewards not in ("shuffled", "normal"):
        raise UserError(f"--rewards {options.rewards}: shuffled or normal")
    config = run.config()
    if config.train.stages or config.train.method != "es":
        raise UserError(
            f"{run.path} has no ledger of its own: give an ES run (of a sequence, one of its stage folders)"
        )
    contents = read_ledger(run.ledger_file)
    plans = {}
    for count in options.engines:
        made = [run_of_ledger(contents, options.rewards, k, options.step) for k in range(options.seeds)]
        plans[count] = [replace(one, restores=_share(one.restores, count)) for one in made]
    return options.dtype or config.model.dtype, plans


def _share(members: int, engines: int) -> int:
    if engines < 1 or members % engines:
        raise UserError(f"--engines {engines}: {members} members do not divide among them")
    return members // engines


def _simulate(
    base: Model, dtype: str, plans: dict[int, list[NullRun]], options: NullOptions, seen: Drift | None
) -> dict[str, NullSummary]:
    torch_dtype(dtype)
    squares = observed_squares(seen.total, (*seen.kinds, *seen.layers)) if seen is not None else None
    found: dict[str, NullSummary] = {}
    for position, runs in enumerate(plans.values()):
        chosen = [name for name in _precisions(options, dtype, runs) if name == "paper" or position == 0]
        if not chosen:
            continue
        with watch(f"null, {runs[0].restores} restores") as progress:
            tallies = simulate(base.tensors, runs, chosen, dtype, options.taus, size=options.sample, progress=progress)
        for name, tally in tallies.items():
            label = f"paper, {runs[0].restores} restores an update" if name == "paper" else name
            found[label] = summarise(tally, dtype, squares)
    return found


def _precisions(options: NullOptions, dtype: str, runs: Sequence[NullRun]) -> tuple[str, ...]:
    """Those asked for, or all that there are: nothing is rounded to float32, anchored runs have no published form."""
    if options.precisions is not None:
        return options.precisions
    anchored = any(run.anchored for run in runs)
    left_out = ("saved",) * (dtype == "float32") + ("paper",) * anchored
    return tuple(name for name in PRECISIONS if name not in left_out)
