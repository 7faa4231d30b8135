"""`python -m broadreach` is the `broadreach` program."""

from broadreach.cli import main

main()
