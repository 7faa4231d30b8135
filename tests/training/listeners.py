"""Reporters for tests: one remembers what a run said, one interrupts it."""


class Notes:
    """Remembers what a run said."""

    def __init__(self):
        self.notes, self.warnings, self.updates, self.started = [], [], [], []

    def note(self, text):
        self.notes.append(text)

    def warn(self, text):
        self.warnings.append(text)

    def start(self, done, total, responses_per_update):
        self.started.append((done, total, responses_per_update))

    def responses(self, count):
        pass

    def update(self, metrics):
        self.updates.append(metrics)


class StopAfter(Notes):
    """Interrupts the run when an update (of the whole run) has been recorded, before its checkpoint is written."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def update(self, metrics):
        super().update(metrics)
        if metrics["step"] == self.step:
            raise KeyboardInterrupt
