"""`broadreach doctor`: what this machine has, and what is missing for which part."""

from __future__ import annotations


def doctor() -> None:
    """Print versions, cores, memory, and whether sandbox, data and cached models are there."""
    import os
    import shutil

    from broadreach.models.locate import locate
    from broadreach.training.environment import environment
    from broadreach.types import UserError

    facts = environment("")
    for name, version in facts["versions"].items():
        print(f"{name:14} {version}")
    hardware = facts["hardware"]
    print(f"{'processor':14} {hardware['processor']}, {hardware['cores']} cores, {hardware['threads']} threads")
    print(f"{'accelerator':14} {hardware['accelerator'] or 'none'}")
    missing = [tool for tool in ("bwrap", "setpriv") if shutil.which(tool) is None]
    advice = f"missing {', '.join(missing)}: `apt-get install bubblewrap util-linux` (only code tasks need it)"
    print(f"{'sandbox':14} {advice if missing else 'bubblewrap and setpriv found'}")
    print(f"{'data':14} {os.environ.get('BROADREACH_DATA', '../shared/data')} (BROADREACH_DATA)")
    for model in ("nano", "smollm2"):
        try:
            print(f"{model:14} {locate(model)}")
        except UserError as error:
            print(f"{model:14} {error}")
