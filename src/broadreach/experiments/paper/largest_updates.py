"""Where the largest changes are (claim 5): maxima and the top 100 by kind of parameter, with noise alone beside."""

from __future__ import annotations

from collections import Counter

from broadreach.experiments.paper.files import claims_of, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scale import Study
from broadreach.experiments.paper.weights import drifts, null_ends, over_seeds, share_over_seeds
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.studies
    entries = [entry for study in studies for entry in _rows(plan, study)]
    note = "Share of the 100 largest changes (t intervals over seeds), largest change, and share of all parameters."
    return Found(tuple(entries), claims_of(plan, studies, "5"), (note,))


def _rows(plan: PaperPlan, study: Study) -> list[Entry]:
    panel = model_of(plan, study)
    methods = {"ES": drifts(plan.runs(study, "es")), "GRPO": drifts(plan.runs(study, "grpo"))}
    run = plan.runs(study, "es")[0]
    kinds = list(methods["ES"][0]["kinds"])
    total = sum(methods["ES"][0]["kinds"][kind]["parameters"] for kind in kinds)
    found = []
    for kind in kinds:
        for name, runs in methods.items():
            counts = [Counter(place["kind"] for place in run["top"]) for run in runs]
            shares = [count[kind] / max(1, sum(count.values())) for count in counts]
            largest = [float(run["kinds"][kind]["max_change"]) for run in runs]
            found.append(Entry("ours", panel, kind, f"{name}, of the top 100", *share_over_seeds(shares)))
            found.append(Entry("ours", panel, kind, f"{name}, largest change", *over_seeds(largest), unit="ratio"))
        found.append(
            Entry(
                "ours",
                panel,
                kind,
                "noise alone, of the top 100",
                *percent(null_ends(run, "share_of_top_100", kind, "kind")),
            )
        )
        size = methods["ES"][0]["kinds"][kind]["parameters"]
        found.append(Entry("ours", panel, kind, "of all parameters", 100 * size / total))
    return found


ITEM = Definition(
    "largest-updates",
    "Where the largest updates are",
    "The paper says that the largest ES updates sit in norm weights and attention, GRPO's in embeddings and head.",
    "table",
    ("easy", "hard", "easy weights", "hard weights"),
    _build,
)
