"""What can be trained on and measured: problems, how to ask them, and how answers are graded (docs/tasks.md)."""
