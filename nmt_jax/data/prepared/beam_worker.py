"""A worker process of Beam's direct runner, without its logs on stderr; the runner gets them in any case."""

import logging
import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it silently
    logging.root.addHandler(logging.NullHandler())  # otherwise the first warning of a library installs another handler
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)
