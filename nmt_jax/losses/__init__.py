"""Training objectives: each returns (sum, weight)."""
