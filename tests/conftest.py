"""What every test may rely on."""

import signal

# A shell starts its background jobs with SIGINT ignored, and children inherit that: tests that interrupt a child would
# then wait for ever. A handler here becomes the default action in every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
