"""Recipes: ready settings, named on the command line."""
