"""How a child process kills itself, for the tests of what a kill loses."""

import os
import signal
import threading

from broadreach.engines import decode


def kill_self():
    """As abrupt as it gets: no handler, no flush, no finally."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after(seconds):
    """At an instant that has nothing to do with what the process is doing."""
    threading.Timer(seconds, kill_self).start()


def kill_inside_generation(count):
    """Die in the middle of decoding, with the weights of a member (or the centre) served."""
    calls = iter(range(1, 10**6))
    original = decode.sample_tokens

    def sample_tokens(*arguments):
        if next(calls) == count:
            kill_self()
        return original(*arguments)

    decode.sample_tokens = sample_tokens
