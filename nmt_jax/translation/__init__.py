"""Text in, hypotheses out: the translator, its compiled programs and output formats."""
