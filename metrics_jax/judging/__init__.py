"""Agreement of metrics with human judgements: coefficients, confidence intervals and significance tests."""
