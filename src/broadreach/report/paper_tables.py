"""Entries as tables: rows and columns in order of appearance, intervals and published numbers inside the cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from broadreach.report.paper_item import Entry, Origin, PaperItem
from broadreach.report.paper_layout import Group, groups, partners
from broadreach.report.paper_words import bracket, common_decimals, level, unit_word

LONG = 80
"""A table with more numbers than this can be folded away."""
LETTER, PADDING, ROW, PAPER = 8, 20, (108, 240), "paper 12.3"
"""Pixels of a letter, of a cell's padding, of the row names (least, most); a published number inside a cell."""
NARROW = 5
"""Two tables with at most this many columns stand side by side."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One number as text."""

    value: str
    interval: str
    paper: str = ""
    """The published number of the same place."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One panel."""

    origin: Origin
    panel: str
    unit: str
    """The word of the unit that all its numbers share; else it stands at columns, rows or numbers."""
    columns: tuple[tuple[str, str], ...]
    """(name, unit)."""
    rows: tuple[tuple[str, str, tuple[Cell | None, ...]], ...]
    """(name, unit, a cell a column; None where there is no entry)."""
    numbers: int
    both: bool = False
    """Whether published numbers stand in its cells."""

    @property
    def width(self) -> int:
        """Pixels that it needs, about."""
        names = min(ROW[1], max(ROW[0], LETTER * max(len(name) for name, _, _ in self.rows)))
        return names + sum(self._column(place, name) for place, (name, _) in enumerate(self.columns))

    def _column(self, place: int, name: str) -> int:
        cells = [cell for _, _, held in self.rows if (cell := held[place])]
        texts = [*name.split(), *(text for cell in cells for text in (cell.value, cell.interval, cell.paper and PAPER))]
        return LETTER * max(map(len, texts)) + PADDING

    @property
    def shape(self) -> object:
        """Its rows and columns."""
        return frozenset(row[0] for row in self.rows), frozenset(column for column, _ in self.columns)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Tables that stand together."""

    tables: tuple[PaperTable, ...]
    beside: bool = False
    folded: str = ""
    """What to say on the lid when they are folded away."""
    opened: bool = False

    @property
    def width(self) -> int:
        """Pixels that the widest of them needs, about."""
        return max(table.width for table in self.tables)


def table_blocks(item: PaperItem) -> list[TableBlock]:
    """The tables of an item: ours first, each with its published counterpart, then the other published ones."""
    found = groups(item.entries)
    own_groups, told_groups = ([g for g in found if g.origin == origin] for origin in ("ours", "published"))
    own_tables = []
    for group in own_groups:
        told = next((other for other in told_groups if _inside(other, group)), None)
        if told is not None:
            told_groups.remove(told)
        own_tables.append(make_table(group, told))
    blocks: list[TableBlock] = []
    rest: list[PaperTable] = []
    for own, other in partners(own_tables, [make_table(group) for group in told_groups]):
        if own is None:
            rest += [other] if other else []
        elif other is not None and len(own.columns) <= NARROW and own.numbers + other.numbers <= LONG:
            blocks.append(TableBlock((own, other), beside=True))
        else:
            blocks.append(_folded((own,), opened=True))
            blocks += [_folded((other,))] if other else []
    return _merged([*blocks, *([_folded(tuple(rest))] if rest else [])])


def make_table(group: Group, published: Group | None = None) -> PaperTable:
    """One panel as a table, with the published numbers of the same places in its cells."""
    places = {(entry.row, entry.column): entry for entry in group.entries}
    told = {(entry.row, entry.column): entry for entry in published.entries} if published else {}
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
    digits = {column: common_decimals(e for (_, at), e in places.items() if at == column) for column in columns}
    table, by_column, by_row = _unit_places(group.entries, rows, columns)
    cell_unit = table is None and by_column is None and by_row is None
    made = []
    for row in rows:
        cells = [_cell(places.get((row, c)), told.get((row, c)), digits[c], cell_unit) for c in columns]
        made.append((row, (by_row or {}).get(row, ""), tuple(cells)))
    heads = tuple((column, (by_column or {}).get(column, "")) for column in columns)
    return PaperTable(group.origin, group.panel, table or "", heads, tuple(made), len(places), bool(told))


def _unit_places(
    entries: Iterable[Entry], rows: Sequence[str], columns: Sequence[str]
) -> tuple[str | None, dict[str, str] | None, dict[str, str] | None]:
    """Where units are said: once if all agree, else at columns, else at rows, else (all None) at each number."""
    held = [(entry.row, entry.column, unit_word(entry.unit)) for entry in entries]
    every = {unit for _, _, unit in held}
    if len(every) == 1:
        return every.pop(), None, None
    for side, names in ((1, columns), (0, rows)):
        found = {name: {one[2] for one in held if one[side] == name} for name in names}
        if all(len(units) == 1 for units in found.values()):
            words = {name: units.pop() for name, units in found.items()}
            return (None, words, None) if side else (None, None, words)
    return None, None, None


def _cell(entry: Entry | None, told: Entry | None, digits: int, with_unit: bool) -> Cell | None:
    if entry is None:
        return None
    word = unit_word(entry.unit) if with_unit and entry.value is not None else ""
    value = f"{level(entry, digits)} {word}".strip()
    paper = "" if told is None else level(told, common_decimals([told]))
    return Cell(value, bracket(entry, digits), paper)


def _inside(published: Group, own: Group) -> bool:
    """Whether every published number has its place in our panel of the same name."""
    places = {(entry.row, entry.column) for entry in own.entries}
    return published.panel == own.panel and all((e.row, e.column) in places for e in published.entries)


def _merged(blocks: Sequence[TableBlock]) -> list[TableBlock]:
    """Neighbours that are neither folded nor pairs become one block."""
    found: list[TableBlock] = []
    for block in blocks:
        loose = not block.beside and not block.folded
        if found and loose and not found[-1].beside and not found[-1].folded:
            found[-1] = TableBlock((*found[-1].tables, *block.tables))
        else:
            found.append(block)
    return found


def _folded(tables: tuple[PaperTable, ...], opened: bool = False) -> TableBlock:
    """Folded away when there is much of it; ours open, the published closed."""
    numbers = sum(table.numbers for table in tables)
    block = TableBlock(tables)
    if numbers <= LONG:
        return block
    who = "Ours" if tables[0].origin == "ours" else "Published"
    what = tables[0].panel if len(tables) == 1 and tables[0].panel else f"{len(tables)} tables"
    what = "one table" if what == "1 tables" else what
    return replace(block, folded=f"{who}: {what}, {numbers} numbers", opened=opened)
