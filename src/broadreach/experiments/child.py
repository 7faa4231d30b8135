"""`python -m broadreach.experiments.child PARENT ...` is `broadreach ...` in a process that dies with its parent.

The kernel kills it when the *thread* that started it ends, however that comes about (kill -9 of the parent included):
the threads of `run_cells` wait for their children. A killed run loses nothing: the same command goes on.
"""

from __future__ import annotations

import runpy
import sys

from broadreach.verify.math_worker import die_with_parent

if __name__ == "__main__":
    die_with_parent(int(sys.argv.pop(1)))
    runpy.run_module("broadreach", run_name="__main__", alter_sys=True)
