"""Training losses: each returns (sum, weight)."""
