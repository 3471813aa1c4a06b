"""Readers of corpora: parallel, labelled, tagged, questions, judgements."""
