"""The embedded images: drawings of one to three objects, with captions in English and German.

An object has a shape, a colour, a size and a place; the background is plain or noisy. A caption is determined by the
drawing, so that it can be compared as a whole. Of the family "ambiguous", most scenes have an object whose English name
has two German translations, such as bow: a Bogen is a weapon, a Schleife a ribbon. Only the drawing says which. Of the
family "questions", each scene has one to four objects anywhere, and a question about them; every second scene of
training has a lesson, a question whose answer is longer: all objects, those of one kind, or where one of them is.

The splits share no combination of shape and colour: of the 64, each of
dev and test has 8, one for every shape and colour, so that a model has seen all shapes and colours, but not together.

    objects    shapes, colours, sizes and places, with their words in both languages
    captions   noun phrases and captions
    questions  questions with answers
    scene      draws random scenes, and their pixels
"""

from nmt_jax.data.scenes.questions import Question
from nmt_jax.data.scenes.scene import FAMILIES, QUESTIONS, SPLITS, VERSION, Scene, scene

__all__ = ["FAMILIES", "QUESTIONS", "SPLITS", "VERSION", "Question", "Scene", "scene"]
