"""Verdicts on model text: extraction, exact comparison, and the killable workers and sandbox behind them."""

from broadreach.verify.families import FAMILIES
from broadreach.verify.grading import Item, grade
from broadreach.verify.pool import GradingPool

__all__ = ["FAMILIES", "GradingPool", "Item", "grade"]
