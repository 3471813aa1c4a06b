"""A worker process of Beam's direct runner that writes nothing to stderr; the runner receives its logs in any case."""

import logging
import os
import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it
    logging.root.addHandler(logging.NullHandler())  # otherwise the first warning of a library installs another handler
    from apache_beam.runners.worker import sdk_worker_main

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where gRPC reports at length that the runner has ended
    sdk_worker_main.main(sys.argv)
