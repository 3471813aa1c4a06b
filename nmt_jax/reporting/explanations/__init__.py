"""What a metric matched in one hypothesis and one reference, and how its score follows from it."""
