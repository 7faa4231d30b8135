"""Run folders: the append-only ledger, snapshots, replay and resume."""
