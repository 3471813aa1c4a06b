"""Training losses: each returns (sum, weight), only a sum, or values to be summed, as its docstring says."""
