"""What training changed: drift of the weights, diversity of populations, variance of estimators."""
