"""Every item, in the order of the paper, then ours."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from broadreach.experiments.paper import (
    continual,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    largest_updates,
    paths,
    precision,
    settings,
    table_02,
    table_03,
    table_04,
    table_05,
    table_06,
    table_07,
    table_08,
    table_09,
    table_10,
    table_11,
    table_12,
    table_13,
    theory,
)
from broadreach.experiments.paper.plan import Definition
from broadreach.types import UserError

TABLES = (table_02, table_03, table_04, table_05, table_06, table_07)
MORE = (table_08, table_09, table_10, table_11, table_12, table_13)
FIGURES = (figure_1, figure_2, figure_3, figure_4, figure_5, figure_6)
OURS = (largest_updates, precision, settings, theory, paths, continual)
ITEMS: dict[str, Definition] = {module.ITEM.id: module.ITEM for module in (*TABLES, *MORE, *FIGURES, *OURS)}


def find(names: Sequence[str]) -> list[Definition]:
    """The items of those names, or all of them for `all`; UserError with the nearest name."""
    if list(names) == ["all"]:
        return list(ITEMS.values())
    for name in names:
        if name not in ITEMS:
            near = difflib.get_close_matches(name, ITEMS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UserError(f"no item named {name}: {hint}`broadreach paper list` shows them all")
    return [ITEMS[name] for name in dict.fromkeys(names)]
