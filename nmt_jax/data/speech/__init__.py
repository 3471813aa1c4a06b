"""The embedded speech: short English sentences of the embedded grammar, spoken by the program espeak-ng.

Utterance n of a split is a pure function of the split, n, and the version of espeak-ng. The splits share no sentence.
They share no voice either: that of an utterance is one of 25 in "train", of two others in "dev" and in "test". Speed,
pitch, loudness and noise vary in all splits alike.

    sentences   random sentences of few words, in lower case, without punctuation
    utterances  how a sentence is spoken, and its samples
"""

from nmt_jax.data.speech.utterances import SPLITS, VERSION, Utterance, program_version, utterance

__all__ = ["SPLITS", "VERSION", "Utterance", "program_version", "utterance"]
