"""Evaluating members on one machine or many: only seeds, indices and scalars travel."""
