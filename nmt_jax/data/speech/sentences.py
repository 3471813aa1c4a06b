"""Random sentences to be spoken: those of the embedded grammar that are short and have common words only."""

from __future__ import annotations

import functools
import re

from nmt_jax.data import grammar

LONGEST = 40  # characters
_WORDS = """
a after ago along although always an and angry anna are ask asked asks asleep at aunt bag baker ball be beautiful became
because become bed behind big book boring bottle box boy brave bring brother but cake call can carefully carry chair
cheap chess child city clara clean clever close colleague come computer congratulate cook cookie costs could curious
customer dance daniel daughter david day days describe desk did dirty do doctor does down dream eight eighty emma
engineer euros eva evening every expensive fall famous farmer father fifty five football for forest forget four friend
friendly front gardener gift girl good grandmother greet guest had happy has have he healthy hear help her hike him his
home how hug hungry i if in is jan joke judge julia karl king know lamp laugh laura lawyer lazy leon letter like lisa
lonely look looked machine man maria martin may me meet message more morning mother my neighbor never new newspaper next
nice night nina nine not novel now nurse o'clock of off often old on our painter pancake park paul pay peter piano pick
plan play played plays please poem policeman polite poor problem put queen quickly radio rarely recipe remember report
rich sad see seven she should show sick simon singer sister sit six skirt slowly small so sofa sometimes son sophie stay
story strong student suitcase sweater table tall taste teacher than thank that the their them they think thinks this
three tired to today tom too tourist try turn two uncle under up us very village visit wait waiter want wanted warm was
we weak well were what when whether which while who whom why will with woman would write years you young your
"""
WORDS = frozenset(_WORDS.split())


@functools.lru_cache(4096)
def sentence(split: str, number: int) -> str:
    """Sentence `number` of a split, in lower case and without punctuation; equal numbers give equal sentences."""
    from nmt_jax.data.grammar.author import Author  # imported here, since its tables take time that few commands need

    author = Author(grammar.SPLITS.index(split) + len(grammar.SPLITS) * number)
    while True:
        text = spoken(author.sentence().english())
        if len(text) <= LONGEST and WORDS.issuperset(text.split()) and grammar.split_of(text) == split:
            return text


def spoken(text: str) -> str:
    """The words of an English text: its letters and apostrophes in lower case, with single blanks between words."""
    return " ".join(re.sub(r"[^a-z']+", " ", text.lower()).split())
