"""Made-up measurements beside the real published numbers: every kind of item, with the odd cases."""

from __future__ import annotations

import math
from dataclasses import replace

from broadreach.evaluation.published import published_rows
from broadreach.evaluation.summary import Json
from broadreach.report.claims import CONFIRMED, REFUTED, UNDECIDED, UNMEASURED, Claim
from broadreach.report.paper_item import Entry, Origin, PaperItem

METHODS = {"base": "Base", "grpo": "GRPO", "es": "ES", "es_grpo": "ES→GRPO", "grpo_es": "GRPO→ES"}
ABOUT: Json = {
    "scale": "laptop",
    "words": "the bundled model of 0.9 M parameters, two CPU cores",
    "command": "broadreach paper run --scale laptop",
    "commit": "9ff2ab2-dirty",
    "hardware": {"processor": "AMD EPYC", "cores": 2, "threads": 1, "accelerator": None},
    "date": "2026-12-01",
    "seconds": {"easy": 4210.4, "population": 1800, "theory": 61.5},
}


def blank_items() -> list[PaperItem]:
    """What the items are, before anything was measured."""
    return [
        replace(item, entries=tuple(e for e in item.entries if e.origin == "published"), statements=(), notes=())
        for item in items()
    ]


def items() -> list[PaperItem]:
    """Six items: a long table, one beside its published twin, lines, points, an unmeasured one, one of our own."""
    return [_scores(), _drift(), _heldout(), _entropy(), _front(), _profiles(), _settings()]


def _scores() -> PaperItem:
    published = tuple(
        Entry("published", r["model"], METHODS[r["method"]], f"{r['task']} Pass@{r['k']}", float(r["value"]))
        for r in published_rows("passk.csv")
        if r["setting"] == "easy"
    )
    ours = tuple(
        Entry("ours", panel, row, f"{task} Pass@{k}", value, value - 2.31, value + 2.17)
        for panel in ("nano, trained on chain",)
        for place, row in enumerate(METHODS.values())
        for task in ("nano-chain", "nano-choice", "nano-countdown", "nano-lookup", "average")
        for k in (1, 16, 32)
        for value in [20.0 + 11.27 * place + k]
    )
    statements = (
        Claim("1a", "ES raises Pass@1 over the base on the average", CONFIRMED, "ES − base: +22.5 [+20.1, +24.7]."),
        Claim("1b", "GRPO falls below the base at Pass@32 more often", REFUTED, "0 of 5 cells lie below the base."),
        Claim("1c", "ES keeps <b>Pass@32</b> & more", UNDECIDED, "+0.2 [−1.1, +1.6]."),
    )
    return PaperItem(
        "table-2",
        "Pass@K in the Easy setting",
        "Pass@1, 16 and 32 of the base, both methods and both compositions on six tasks.",
        "table",
        (*ours, *published),
        statements,
        (
            "Three seeds; the intervals cover problems and seeds.",
            "A hostile note: </style><script>window.pwned=1</script>",
        ),
    )


def _drift() -> PaperItem:
    columns = {"grpo_rel_l2_x100": "GRPO drift", "es_rel_l2_x100": "ES drift", "ratio": "ES / GRPO"}
    published = tuple(
        Entry("published", "", r["model"], words, float(r[name]), unit="ratio")
        for r in published_rows("drift.csv")
        for name, words in columns.items()
    )
    numbers = {"GRPO drift": (2.13, 2.0, 2.3), "ES drift": (4.99, 4.9, 5.1), "ES / GRPO": (2.35, 2.31, 2.37)}
    own = tuple(
        Entry("ours", "", r["model"], column, *numbers[column], unit="ratio")
        for r in published_rows("drift.csv")
        for column in columns.values()
    )
    told = Claim("4a", "ES drifts 40.7 to 44.1 times as far as GRPO", REFUTED, "2.35 times [2.31, 2.37].")
    shows = "Relative distance from the base, in hundredths."
    return PaperItem("table-4", "Drift from the base", shows, "table", (*own, *published), (told,))


def _heldout() -> PaperItem:
    """Ours and the published one with the same rows and columns, under other names."""
    rows = [r for r in published_rows("heldout_change.csv") if r["metric"].startswith("pass")]

    def made(origin: Origin, panel: str, low: float | None) -> tuple[Entry, ...]:
        return tuple(
            Entry(origin, panel, r["metric"].capitalize(), METHODS[r["method"]], value, low and value + low,
                  low and value - low, unit="points")
            for r in rows if r["model"] == "Qwen2.5-1.5B-Instruct"
            for value in [float(r["value"])]
        )  # fmt: skip

    return PaperItem(
        "table-10",
        "Table 10: change on held-out tasks",
        "After minus before.",
        "table",
        (*made("ours", "nano", -1.2), *made("published", "Qwen2.5-1.5B-Instruct", None)),
        (Claim("6a", "Held-out Pass@32 rises under ES", UNMEASURED, "One seed only."),),
    )


def _entropy() -> PaperItem:
    ours = tuple(
        Entry("ours", panel, row, "Token entropy", level, level - 0.02, level + 0.02, float(step), "nats")
        for panel in ("nano-chain", "nano-choice")
        for row, fall in (("ES", 0.05), ("GRPO", 0.4), ("ES→GRPO", 0.3), ("GRPO→ES", 0.33), ("another row", 0.2))
        for step in range(0, 45, 5)
        for level in [0.62 * math.exp(-fall * step / 20)]
    )  # fmt: skip
    unknown = Entry("ours", "nano-chain", "ES", "Token entropy", None, x=45.0, unit="nats")
    return PaperItem(
        "figure-2",
        "Token entropy over training",
        "Entropy falls under GRPO and stays under ES.",
        "lines",
        (*ours, unknown),
        (Claim("2a", "Entropy falls under GRPO", CONFIRMED, "−0.289 nats a token [−0.302, −0.277]."),),
        x_label="update",
    )


def _front() -> PaperItem:
    near = {
        "Base": (17.7, 87.5),
        "ES": (70.7, 96.8),
        "GRPO": (82.4, 96.0),
        "ES→GRPO": (81.9, 96.8),
        "GRPO→ES": (82.4, 96.7),
    }
    ours = tuple(
        Entry("ours", "nano, all tasks", row, "Pass@32", y, y - 1.5, y + 1.5, x) for row, (x, y) in near.items()
    )
    values = {(r["method"], r["k"]): float(r["value"]) for r in published_rows("passk.csv")
              if r["model"] == "Qwen2.5-1.5B-Instruct" and r["task"] == "average"}  # fmt: skip
    published = tuple(
        Entry(
            "published", "Qwen2.5-1.5B-Instruct, all tasks", words, "Pass@32", values[name, "32"], x=values[name, "1"]
        )
        for name, words in METHODS.items()
    )
    shows = "The compositions add points that nothing dominates."
    return PaperItem("figure-3", "Pareto fronts", shows, "points", (*ours, *published), x_label="Pass@1, %")


def _profiles() -> PaperItem:
    """Nothing of ours and nothing published."""
    shows = "Pass@K of every method over all K."
    return PaperItem("figure-6", "Pass@K profiles", shows, "lines", (), x_label="K (responses a problem)")


def _settings() -> PaperItem:
    entries = (
        Entry("ours", "z-scores, nano", "Pass@1", "value", 70.7, 66.4, 74.9, unit="percent"),
        Entry("ours", "z-scores, nano", "Training time", "value", 133.0, unit="seconds"),
        Entry("ours", "z-scores, nano", "Responses", "value", 40960.0, unit="count"),
        Entry("ours", "z-scores, nano", "JS_succ", "value", 0.0312, 0.028, 0.034, unit="nats"),
        Entry("ours", "z-scores, nano", "Unknown", "value", None, unit="reward"),
    )
    return PaperItem("settings", "Normalisation and estimators", "What claim 7 rests on.", "table", entries)
