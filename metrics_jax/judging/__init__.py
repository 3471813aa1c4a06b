"""How well metrics agree with people: coefficients, their intervals and tests."""
