"""Measures the verifiers: speed, and agreement with math-verify alone.

    python benchmarks/verifiers.py speed [--data ../shared/data]
    python benchmarks/verifiers.py agreement [--data ../shared/data] [--pairs 500] [--seed 0]

The figures in docs/verifiers.md come from these two commands.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from broadreach.verify import GradingPool, Item, grade
from broadreach.verify.grading import prepare

PROSE = "First we set up the problem and name what is unknown. Then we simplify both sides with care. " * 12


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL or JSON file."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


# --- speed ---------------------------------------------------------------------------------------------------------


def gsm8k_items(data: Path, count: int) -> list[Item]:
    """Responses of about 1,200 characters: half right, a third wrong, the rest without a box."""
    golds = [row["answer"].split("####")[1].strip() for row in rows(data / "gsm8k/test.jsonl")]
    items = []
    for index in range(count):
        gold = golds[index % len(golds)]
        endings = (f"\\boxed{{{gold}}}", f"\\boxed{{{gold}}}", f"\\boxed{{{gold}7}}", f"{gold} in total")
        items.append(Item("boxed_math", f"{PROSE}So the answer is {endings[index % 4]}.", gold))
    return items


def math500_items(data: Path) -> list[Item]:
    """Four responses to each MATH-500 problem: the gold, a spaced gold, and two wrong answers."""
    golds = [row["answer"] for row in rows(data / "math500/test.jsonl")]
    items = []
    for index, gold in enumerate(golds):
        wrong = golds[(index + 250) % len(golds)]
        items += [
            Item("boxed_math", f"{PROSE}The final answer is $\\boxed{{{answer}}}$.", gold)
            for answer in (gold, gold.replace("\\frac", "\\dfrac"), wrong, f"{index}.5")
        ]
    return items


def hostile_expressions() -> list[str]:
    """Fifty expressions that hang or exhaust a naive grader."""
    towers = [f"{n}^{{{n}^{{{n}^{{{n}}}}}}}" for n in range(5, 13)]
    variables = [f"(x+1)^{{{n}^{{{n}^{{{n}}}}}}}" for n in range(5, 11)]
    factorials = [f"(({n}!)!)!" for n in (9, 50, 100, 500, 1000, 9999)]
    nested = [r"\frac{1}{1+" * n + "x" + "}" * n for n in (20, 50, 100, 400)]
    roots = [r"\sqrt{2+" * n + "x" + "}" * n for n in (20, 40, 200, 500)]
    sines = ["+".join(rf"\sin^{{{k}}}({k}x)\cos({k + 1}x)" for k in range(1, n)) for n in (8, 15, 40, 100)]
    digits = ["7" * n + r"\pi" for n in (300, 4_000, 100_000)]
    sums = [rf"\sum_{{k=1}}^{{{10**n}}} \frac{{1}}{{k^2}}" for n in (3, 6, 9)]
    integrals = [r"\int_0^{\infty} e^{-x^2}\sin(x^3) dx", r"\lim_{n\to\infty} (1+\frac{1}{n})^n"]
    powers = [rf"\sqrt{{{n}}}^{{{10**k}}}" for n, k in ((2, 5), (3, 7), (5, 9))]
    products = ["".join(f"(x+{k})" for k in range(n)) for n in (30, 90, 200)]
    others = [r"\binom{100000}{50000}+\sqrt{2}", "(" * 5_000 + "x" + ")" * 5_000, "x^" * 200 + "2", "-" * 3_000 + "x"]
    found = [*towers, *variables, *factorials, *nested, *roots, *sines, *digits, *sums, *integrals, *powers, *products]
    return [*found, *others][:50]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds, result)."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def speed(data: Path) -> None:
    """Print every figure of the issue."""
    items = gsm8k_items(data, 2_048)
    with GradingPool(workers=2) as pool:
        seconds, _ = timed(lambda: pool.grade_many("boxed_math", items))
        print(f"2,048 GSM8K responses: {seconds:.2f} s, {pool.settled} through the pool")
    times, settled_here = [], 0
    math_items = math500_items(data)
    for item in math_items:
        seconds, prepared = timed(lambda item=item: prepare(item))
        if prepared.verdict is not None:
            settled_here += 1
            times.append(1e3 * seconds)
    print(f"2,000 MATH-500 responses: {settled_here} settled exactly, median {statistics.median(times):.3f} ms")
    with GradingPool(workers=2) as pool:
        pool.results([pool.submit(Item("boxed_math", r"\boxed{1+\sqrt{2}}", r"\sqrt{2}+1"))])
        seconds, _ = timed(lambda: pool.grade_many("boxed_math", math_items))
        print(f"the same 2,000 with the pool warm: {seconds:.2f} s, {pool.settled - 1} settled symbolically")
    hostile = hostile_expressions()
    with GradingPool(workers=2) as pool:
        gold = r"\frac{x}{2}"
        tried = [Item("boxed_math", rf"\boxed{{{expression}}}", gold) for expression in hostile]
        seconds, scores = timed(lambda: pool.grade_many("boxed_math", tried))
        after, score = timed(lambda: grade("boxed_math", r"\boxed{1+\sqrt{2}}", r"\sqrt{2}+1", pool=pool))
        assert score.correct and not any(one.correct for one in scores)
        print(f"{len(hostile)} hostile expressions: {seconds:.2f} s, {pool.timeouts} killed, healthy in {after:.2f} s")
    programs = [
        Item("code", f"```python\n{row['code']}\n```", "", {"tests": row["test_list"], "setup": row["test_setup_code"]})
        for row in rows(data / "mbpp/mbpp.jsonl")[10:510]
    ]
    with GradingPool(workers=2) as pool:
        seconds, scores = timed(lambda: pool.grade_many("code", programs))
        print(f"500 MBPP programs: {seconds:.1f} s, {sum(score.correct for score in scores)} pass")


# --- agreement -----------------------------------------------------------------------------------------------------


def mixed_number(match: re.Match[str]) -> str:
    """7/2 as 3 1/2, where there is a whole part and a remainder."""
    whole, rest = divmod(int(match.group(1)), int(match.group(2)))
    return rf"{whole}\frac{{{rest}}}{{{match.group(2)}}}" if whole and rest else match.group()


def finite_decimal(match: re.Match[str]) -> str:
    """7/2 as 3.5, where the decimal ends within six places."""
    value = Fraction(int(match.group(1)), int(match.group(2))) * 10**6
    return str(float(value / 10**6)) if value.denominator == 1 else match.group()


REWRITINGS: list[Callable[[str], str]] = [
    lambda text: text.replace("\\frac", "\\dfrac"),
    lambda text: text.replace("(", "\\left(").replace(")", "\\right)") if "\\left" not in text else text,
    lambda text: re.sub(r"(\\[A-Za-z]+) +| +", lambda m: m.group(1) + " " if m.group(1) else "", text),
    lambda text: re.sub(r"\^(\w)", r"^{\1}", text),
    lambda text: f" {text} ",
    lambda text: f"${text}$",
    lambda text: re.sub(r"(?<![\d.])(\d{1,3})(\d{3})(?![\d_])", r"\1,\2", text) if "," not in text else text,
    lambda text: re.sub(r"(?<![\d.])(\d{1,3})(\d{3})(?![\d_])", r"\1\,\2", text) if "," not in text else text,
    lambda text: re.sub(r"^(-?)\\frac\{(\d+)\}\{(\d+)\}$", r"\1\2/\3", text),
    lambda text: re.sub(r"\\sqrt\{(\d+)\}", r"\\sqrt{\1}", re.sub(r"\\sqrt(\d)", r"\\sqrt{\1}", text)),
    lambda text: re.sub(r"(\d) ?\\sqrt\{?(\d+)\}?", r"\1 \\cdot \\sqrt{\2}", text),
    lambda text: re.sub(r"^(-?\w+|\d*\\sqrt\{\d+\}) ?\+ ?(\w+|\d*\\sqrt\{\d+\})$", r"\2 + \1", text),
    lambda text: re.sub(r"^(-?\d+)$", r"\1.0", text),
    lambda text: re.sub(r"^(-?\d+)$", r"x = \1", text),
    lambda text: re.sub(r"^(-?\d+)$", r"\\text{\1}", text),
    lambda text: re.sub(r"^\\frac\{(\d+)\}\{(\d+)\}$", mixed_number, text),
    lambda text: re.sub(r"^\\frac\{(\d+)\}\{(\d+)\}$", finite_decimal, text),
    lambda text: re.sub(r"^\((-?[\w\\]+), ?(-?[\w\\]+)\)$", r"\\left(\1,\\;\2\\right)", text),
    lambda text: re.sub(r"^\((-?\d+), ?\\infty\)$", r"x > \1", text),
    lambda text: re.sub(r"^([^=]+) = 0$", r"0 = \1", text),
    lambda text: text.removesuffix("^\\circ"),
    lambda text: text.replace("^\\circ", "°"),
    lambda text: re.sub(r"\\text\{(\w+)\}", r"\1", text),
    lambda text: text.replace("pmatrix", "bmatrix"),
]

MISSES: list[Callable[[str], str]] = [
    lambda text: re.sub(r"\d(?=\D*$)", lambda m: str((int(m.group()) + 1) % 10), text),
    lambda text: text[1:] if text.startswith("-") else f"-{text}",
    lambda text: f"[{text[1:]}" if text.startswith("(") else text,
    lambda text: f"({text[1:]}" if text.startswith("[") else text,
    lambda text: rf"\{{{text[1:-1]}\}}" if re.fullmatch(r"\([^()]*\)", text) else text,
    lambda text: re.sub(r"^(-?\d+)$", r"\1\1", text),
    lambda text: re.sub(r"^(\d+)$", lambda m: f"{int(m.group()) / 100}", text),
    lambda text: re.sub(r"_\{?(\d)\}?$", "", text),
    lambda text: text.rsplit(",", 1)[0] if "," in text else text,
    lambda text: text.replace("+", "-", 1),
    lambda text: re.sub(r"\\frac\{(\w+)\}\{(\w+)\}", r"\\frac{\2}{\1}", text),
    lambda text: re.sub(r"^\\frac\{(\d+)\}\{(\d+)\}$", lambda m: f"{int(m[1]) / int(m[2]):.7f}", text),
]
"""Changes that make an answer wrong: a digit, a sign, a bracket, a part left out, a scale, a base, a rounding."""


def pairs(golds: list[str], count: int, source: random.Random) -> Iterator[tuple[str, str, str]]:
    """(kind, gold, answer): golds rewritten (`same`), of other problems (`other`), and spoilt (`near`)."""
    for _ in range(count):
        gold = source.choice(golds)
        changing = [rewritten for rewrite in REWRITINGS if (rewritten := rewrite(gold)) != gold]
        yield "same", gold, source.choice(changing)
    for _ in range(count):
        gold, answer = source.sample(golds, 2)
        yield "other", gold, answer
    for _ in range(count):
        gold = source.choice(golds)
        yield "near", gold, source.choice([spoilt for spoil in MISSES if (spoilt := spoil(gold)) != gold])


def outside_judge(gold: str, answer: str) -> bool:
    """math-verify alone, as its documentation says: gold and response as text."""
    from math_verify import parse, verify

    return bool(verify(parse(rf"\boxed{{{gold}}}"), parse(rf"The final answer is $\boxed{{{answer}}}$.")))


def agreement(data: Path, count: int, seed: int) -> None:
    """Print every pair on which the two judges differ."""
    golds = [row["answer"] for row in rows(data / "math500/test.jsonl")]
    source = random.Random(seed)
    tally: dict[tuple[str, bool, bool], int] = {}
    with GradingPool(workers=2) as pool:
        for kind, gold, answer in pairs(golds, count, source):
            ours = grade("boxed_math", rf"The final answer is $\boxed{{{answer}}}$.", gold, pool=pool).correct
            theirs = outside_judge(gold, answer)
            tally[kind, ours, theirs] = tally.get((kind, ours, theirs), 0) + 1
            if ours != theirs:
                print(f"{kind}: gold {gold!r} answer {answer!r}: ours {ours}, math-verify {theirs}")
            elif ours != (kind == "same"):
                print(f"{kind}: gold {gold!r} answer {answer!r}: both say {ours}")
    for (kind, ours, theirs), number in sorted(tally.items()):
        print(f"{kind}: ours {ours}, math-verify {theirs}: {number}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("speed", "agreement"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BROADREACH_DATA", "../shared/data")))
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.what == "speed":
        speed(arguments.data)
    else:
        agreement(arguments.data, arguments.pairs, arguments.seed)


if __name__ == "__main__":
    main()
