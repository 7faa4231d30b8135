"""Models on disk: where they are, how they are loaded, and how weights are written back."""
