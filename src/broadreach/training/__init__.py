"""Training methods; each leaves the same files in its run folder."""
