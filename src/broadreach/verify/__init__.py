"""Verdicts on model text: extraction, exact comparison, and the killable workers and sandbox behind them.

Entry points: `families.grade` for one response, `pool.GradingPool` for many, `families.FAMILIES` for the list.
"""
