"""Evolution Strategies as mathematics: shaping, estimators, coefficients and the ask-evaluate-tell loop."""
