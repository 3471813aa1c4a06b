"""A fuzzer of the command line: valid commands with random mistakes must end in a result or in one line of error.

    workplace   valid inputs, small trained workdirs, and a valid command or two per verb
    mistakes    random values of flags and config keys, damaged files, strange streams
    runner      a process that runs case after case; it is killed if a case hangs, and started again if one crashes
    test_fuzz   a fixed number of cases, for `make test-all`

By hand, with new cases until interrupted: `python -m tests.fuzz --seed=1`; one case again: `--seed=1 --case=77`.
"""
