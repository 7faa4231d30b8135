"""Engines serve a model under many perturbations and generate responses (design.md, section 6)."""
