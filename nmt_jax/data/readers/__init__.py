"""Readers of corpora: parallel, monolingual, labelled, tagged, questions, human judgements and annotations."""
