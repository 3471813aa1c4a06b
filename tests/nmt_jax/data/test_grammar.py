"""The embedded corpus: guarantees about its pairs, and examples of English and German grammar."""

import itertools
import os
import subprocess
import sys
from collections import Counter

import pytest

from nmt_jax.data import grammar
from nmt_jax.data.grammar import inflection, lexicon, phrases, syntax, verbs
from nmt_jax.data.grammar.author import Author
from nmt_jax.data.grammar.inflection import Adverb, Agreement, Case, Order, Tense
from nmt_jax.data.grammar.lexicon import ADJECTIVES
from nmt_jax.data.grammar.phrases import BARE, HE, HER, MY, SHE, THE, THEY, THIS, WE, YOU, A, I, NounPhrase, Place
from nmt_jax.data.grammar.syntax import Clause, Sentence
from nmt_jax.errors import UserError

NOUN = {noun.english: noun for nouns in lexicon.NOUNS.values() for noun in nouns}
NAME = {name.name: name for name in (*lexicon.PEOPLE, *lexicon.TOWNS)}
ANNA = NAME["Anna"]
TODAY = Adverb("today", "heute")


def the(noun, adjective=None, determiner=THE, plural=False, **more):
    return NounPhrase(NOUN[noun], determiner, ADJECTIVES[adjective] if adjective else None, plural, **more)


def does(subject, verb, object=None, **more):
    return Clause(subject, verbs.FRAMES[verb], object=object, **more)


def both(clause, order=Order.STATEMENT):
    return clause.english(order), clause.german(order)


@pytest.fixture(scope="module")
def corpus():
    return list(grammar.pairs("train", 20_000))


# Guarantees


@pytest.mark.slow
def test_the_requested_number_of_distinct_pairs(corpus):
    assert len(corpus) == 20_000
    assert len({english for english, _ in corpus}) == 20_000


@pytest.mark.slow
def test_fewer_pairs_are_a_prefix_of_more(corpus):
    assert list(grammar.pairs("train", 1000)) == corpus[:1000]
    assert list(grammar.pairs("dev", 10)) == list(itertools.islice(grammar.pairs("dev", 50), 10))


def test_seeds_differ(corpus):
    assert not set(grammar.pairs("train", 20, seed=1)) & set(corpus[:20])


def test_pairs_do_not_depend_on_the_hash_seed(corpus):
    program = "from nmt_jax.data import grammar\nfor pair in grammar.pairs('train', 200): print(ascii(pair))"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        assert result.stdout.decode().splitlines() == [ascii(pair) for pair in corpus[:200]]


@pytest.mark.slow
def test_splits_are_disjoint_for_all_seeds(corpus):
    held_out = {split: {en for s in (0, 1) for en, _ in grammar.pairs(split, 500, seed=s)} for split in ("dev", "test")}
    train = {english for english, _ in corpus} | {english for english, _ in grammar.pairs("train", 5000, seed=1)}
    assert not held_out["dev"] & held_out["test"]
    assert not train & (held_out["dev"] | held_out["test"])


@pytest.mark.slow
def test_english_determines_german():
    author, german = Author(3), {}
    for _ in range(20_000):
        sentence = author.sentence()
        assert german.setdefault(sentence.english(), sentence.german()) == sentence.german()


@pytest.mark.parametrize(("split", "count"), [("valid", 10), ("", 10), ("train", 0), ("test", -1)])
def test_invalid_arguments_are_reported_immediately(split, count):
    with pytest.raises(UserError, match="grammar: "):
        grammar.pairs(split, count)


def test_sentences_are_of_moderate_length_and_well_formed(corpus):
    lengths = [len(english.split()) for english, _ in corpus]
    assert max(lengths) <= 25
    assert 6 <= sum(lengths) / len(lengths) <= 12
    for english, german in corpus:
        for text in (english, german):
            assert text[0].isupper()
            assert text[-1] in ".?!"
            assert "  " not in text
            assert " ," not in text
            assert ",," not in text
            assert text.count(text[-1]) == 1
        assert english[-1] == german[-1]


def test_several_hundred_words_occur_often(corpus):
    for side in (0, 1):
        words = Counter(word for pair in corpus for word in pair[side].lower().replace(",", "").split())
        assert sum(count >= 20 for count in words.values()) > 500
    text = Counter(word for english, _ in corpus for word in english.lower().strip(".?!").split())
    for noun in NOUN.values():
        assert text[noun.english] + text[noun.english_plural] >= 20, noun


# Words


@pytest.mark.parametrize(
    ("verb", "forms", "imperative"),
    [
        ("read", "lese liest liest lesen lesen", "lies"),
        ("work", "arbeite arbeitest arbeitet arbeiten arbeiten", "arbeite"),
        ("open", "öffne öffnest öffnet öffnen öffnen", "öffne"),
        ("dance", "tanze tanzt tanzt tanzen tanzen", "tanz"),
        ("play", "spiele spielst spielt spielen spielen", "spiel"),
        ("smile", "lächle lächelst lächelt lächeln lächeln", "lächle"),
        ("hike", "wandere wanderst wandert wandern wandern", "wandere"),
        ("drive", "fahre fährst fährt fahren fahren", "fahr"),
        ("invite", "lade lädst lädt laden laden", "lade"),
        ("forget", "vergesse vergisst vergisst vergessen vergessen", "vergiss"),
        ("like", "mag magst mag mögen mögen", None),
    ],
)
def test_german_verb_forms(verb, forms, imperative):
    word = verbs.FRAMES[verb].verb
    assert [word.conjugate(agreement) for agreement in Agreement] == forms.split()
    assert imperative is None or word.imperative == imperative


def test_english_forms():
    assert [inflection.english_s(word) for word in ["dog", "box", "try", "play", "watch", "have", "go"]] == (
        ["dogs", "boxes", "tries", "plays", "watches", "has", "goes"]
    )
    assert [inflection.english_ed(word) for word in ["open", "close", "carry", "play"]] == (
        ["opened", "closed", "carried", "played"]
    )


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (2, "two", "zwei"),
        (16, "sixteen", "sechzehn"),
        (21, "twenty-one", "einundzwanzig"),
        (30, "thirty", "dreißig"),
        (67, "sixty-seven", "siebenundsechzig"),
        (99, "ninety-nine", "neunundneunzig"),
    ],
)
def test_numbers(number, english, german):
    assert lexicon.number_words(number) == (english, german)


def test_adjective_stems():
    for english, stem in {
        "expensive": "teur",
        "dark": "dunkl",
        "tired": "müd",
        "clean": "sauber",
        "new": "neu",
    }.items():
        assert ADJECTIVES[english].stem == stem


# Noun phrases


@pytest.mark.parametrize(
    ("phrase", "english", "german"),
    [
        (
            the("dog", "old"),
            "the old dog",
            ["der alte Hund", "den alten Hund", "dem alten Hund", "des alten Hundes"],
        ),
        (
            the("dog", "old", A),
            "an old dog",
            ["ein alter Hund", "einen alten Hund", "einem alten Hund", "eines alten Hundes"],
        ),
        (
            the("book", "new", MY),
            "my new book",
            ["mein neues Buch", "mein neues Buch", "meinem neuen Buch", "meines neuen Buches"],
        ),
        (
            the("cat", "small", THIS),
            "this small cat",
            ["diese kleine Katze", "diese kleine Katze", "dieser kleinen Katze", "dieser kleinen Katze"],
        ),
        (
            the("student", "clever"),
            "the clever student",
            ["der kluge Student", "den klugen Studenten", "dem klugen Studenten", "des klugen Studenten"],
        ),
        (
            the("house", "expensive", BARE, plural=True),
            "expensive houses",
            ["teure Häuser", "teure Häuser", "teuren Häusern"],
        ),
        (
            the("car", "red", plural=True),
            "the red cars",
            ["die roten Autos", "die roten Autos", "den roten Autos", "der roten Autos"],
        ),
        (
            the("child", "small", phrases.number(3), plural=True),
            "three small children",
            ["drei kleine Kinder", "drei kleine Kinder", "drei kleinen Kindern"],
        ),
        (
            the("friend", "good", phrases.MANY, plural=True),
            "many good friends",
            ["viele gute Freunde", "viele gute Freunde", "vielen guten Freunden"],
        ),
        (
            the("friend", "good", phrases.ALL, plural=True),
            "all good friends",
            ["alle guten Freunde", "alle guten Freunde", "allen guten Freunden"],
        ),
        (the("milk", "cold", BARE), "cold milk", ["kalte Milch", "kalte Milch", "kalter Milch"]),
        (
            the("hat", "old", phrases.possessor(ANNA)),
            "Anna's old hat",
            ["Annas alter Hut", "Annas alten Hut", "Annas altem Hut"],
        ),
        (
            the("house", "big", owner=the("doctor")),
            "the doctor's big house",
            ["das große Haus des Arztes", "das große Haus des Arztes", "dem großen Haus des Arztes"],
        ),
        (
            the("cup", None, A, content=NOUN["tea"]),
            "a cup of tea",
            ["eine Tasse Tee", "eine Tasse Tee", "einer Tasse Tee"],
        ),
    ],
)
def test_agreement_of_noun_phrases(phrase, english, german):
    assert phrase.english() == english
    assert [phrase.german(Case(case)) for case in range(len(german))] == german


@pytest.mark.parametrize(
    ("noun", "there", "where_to"),
    [
        ("garden", "im Garten", "in den Garten"),
        ("kitchen", "in der Küche", "in die Küche"),
        ("house", "im Haus", "ins Haus"),
    ],
)
def test_locations_are_dative_and_directions_accusative(noun, there, where_to):
    assert Place("in", "in", Case.DATIVE, the(noun)).german() == there
    assert Place("to", "in", Case.ACCUSATIVE, the(noun)).german() == where_to


def test_contractions_need_the_article():
    assert Place("to", "zu", Case.DATIVE, the("station", "old")).german() == "zum alten Bahnhof"
    assert Place("to", "zu", Case.DATIVE, the("wedding")).german() == "zur Hochzeit"
    assert Place("in", "in", Case.DATIVE, the("garden", determiner=THIS)).german() == "in diesem Garten"


# Clauses

CALL = does(ANNA, "call", the("man"))
BOOK = the("book", determiner=A)


@pytest.mark.parametrize(
    ("clause", "order", "english", "german"),
    [
        (CALL, Order.STATEMENT, "Anna calls the man", "Anna ruft den Mann an"),
        (CALL, Order.QUESTION, "does Anna call the man", "ruft Anna den Mann an"),
        (CALL, Order.SUBORDINATE, "Anna calls the man", "Anna den Mann anruft"),
        (CALL, Order.INFINITIVE, "to call the man", "den Mann anzurufen"),
        (does(YOU, "call", the("man")), Order.COMMAND, "call the man", "ruf den Mann an"),
        (
            does(ANNA, "call", the("man"), tense=Tense.PAST),
            Order.SUBORDINATE,
            "Anna called the man",
            "Anna den Mann angerufen hat",
        ),
        (
            does(ANNA, "call", the("man"), tense=Tense.FUTURE, negated=True),
            Order.STATEMENT,
            "Anna will not call the man",
            "Anna wird den Mann nicht anrufen",
        ),
        (
            does(I, "buy", BOOK, time=TODAY, front="time"),
            Order.STATEMENT,
            "today I buy a book",
            "heute kaufe ich ein Buch",
        ),
        (does(HE, "buy", BOOK, negated=True), Order.STATEMENT, "he does not buy a book", "er kauft kein Buch"),
        (
            does(HE, "buy", the("book"), negated=True, tense=Tense.PAST),
            Order.STATEMENT,
            "he did not buy the book",
            "er hat das Buch nicht gekauft",
        ),
        (does(SHE, "pick up", HE), Order.STATEMENT, "she picks him up", "sie holt ihn ab"),
        (
            does(WE, "give", BOOK, recipient=the("child"), modal=verbs.MODALS["want"]),
            Order.STATEMENT,
            "we want to give the child a book",
            "wir wollen dem Kind ein Buch geben",
        ),
        (
            does(WE, "explain", the("rule"), recipient=THEY, tense=Tense.PAST),
            Order.STATEMENT,
            "we explained the rule to them",
            "wir haben ihnen die Regel erklärt",
        ),
        (
            does(THEY, "help", the("farmer", determiner=HER), tense=Tense.PAST),
            Order.STATEMENT,
            "they helped her farmer",
            "sie haben ihrem Bauern geholfen",
        ),
        (
            does(HE, "go", place=phrases.HOME, tense=Tense.PAST, modal=verbs.MODALS["have"], negated=True),
            Order.STATEMENT,
            "he did not have to go home",
            "er musste nicht nach Hause gehen",
        ),
        (
            does(HE, "drive", place=Place("to", "nach", Case.DATIVE, NAME["Munich"]), tense=Tense.PAST),
            Order.STATEMENT,
            "he drove to Munich",
            "er ist nach München gefahren",
        ),
        (does(HE, "play football"), Order.SUBORDINATE, "he plays football", "er Fußball spielt"),
        (does(HE, "play football"), Order.INFINITIVE, "to play football", "Fußball zu spielen"),
        (does(WE, "rest"), Order.STATEMENT, "we rest", "wir ruhen uns aus"),
        (
            does(the("man"), "remember", the("story"), time=TODAY, front="time"),
            Order.STATEMENT,
            "today the man remembers the story",
            "heute erinnert sich der Mann an die Geschichte",
        ),
        (
            does(the("man"), "wait for", phrases.WHO, front="object"),
            Order.QUESTION,
            "whom does the man wait for",
            "auf wen wartet der Mann",
        ),
        (does(phrases.WHO, "help", I, front="subject"), Order.QUESTION, "who helps me", "wer hilft mir"),
        (
            does(YOU, "read", the("newspaper", determiner=phrases.WHICH), front="object"),
            Order.QUESTION,
            "which newspaper do you read",
            "welche Zeitung liest du",
        ),
        (
            Clause(
                ANNA, verbs.BE_FRAME, Tense.PAST, predicate=Adverb("tired", "müde"), frequency=Adverb("often", "oft")
            ),
            Order.STATEMENT,
            "Anna was often tired",
            "Anna war oft müde",
        ),
        (
            Clause(the("dog"), verbs.BE_FRAME, predicate=phrases.Comparison(ADJECTIVES["big"], the("cat"))),
            Order.SUBORDINATE,
            "the dog is bigger than the cat",
            "der Hund größer als die Katze ist",
        ),
        (
            Clause(phrases.THAT_IS, verbs.BE_FRAME, object=the("brother", determiner=MY)),
            Order.STATEMENT,
            "this is my brother",
            "das ist mein Bruder",
        ),
        (
            Clause(phrases.THERE, verbs.THERE_IS, object=the("hotel", determiner=A)),
            Order.QUESTION,
            "is there a hotel",
            "gibt es ein Hotel",
        ),
    ],
)
def test_clauses(clause, order, english, german):
    assert both(clause, order) == (english, german)


def test_relative_pronouns_agree():
    def whom_anna(verb, noun, plural=False):
        gap = phrases.relative_pronoun(NOUN[noun], plural)
        return the(noun, plural=plural, relative=does(ANNA, verb, gap, front="object"))

    assert whom_anna("help", "man").german(Case.NOMINATIVE) == "der Mann, dem Anna hilft,"
    assert whom_anna("help", "man", plural=True).german(Case.DATIVE) == "den Männern, denen Anna hilft,"
    assert whom_anna("invite", "woman").german(Case.ACCUSATIVE) == "die Frau, die Anna einlädt,"
    assert whom_anna("wait for", "train").german(Case.ACCUSATIVE) == "den Zug, auf den Anna wartet,"
    assert whom_anna("wait for", "train").english() == "the train that Anna waits for"
    assert whom_anna("help", "man").english() == "the man whom Anna helps"


def test_the_verb_follows_an_initial_clause():
    main, second = does(ANNA, "sleep"), does(SHE, "get up", tense=Tense.PAST)
    sentence = Sentence(main, link=syntax.BECAUSE, second=second, reversed=True)
    assert sentence.english() == "Because she got up, Anna sleeps."
    assert sentence.german() == "Weil sie aufgestanden ist, schläft Anna."


def test_infinitives_and_requests():
    intention = Sentence(Clause(ANNA, verbs.INTEND["begin"], Tense.PAST), link=syntax.TO, second=does(ANNA, "rest"))
    assert intention.english() == "Anna began to rest."
    assert intention.german() == "Anna hat angefangen, sich auszuruhen."
    request = Sentence(does(YOU, "turn on", the("lamp")), Order.COMMAND, polite=True)
    assert (request.english(), request.german()) == ("Please turn on the lamp!", "Bitte schalte die Lampe ein!")


# Word order, over the corpus

FINITE = {
    form
    for frame in (*verbs.FRAMES.values(), verbs.BE_FRAME, verbs.BECOME)
    for agreement in Agreement
    for form in (frame.verb.prefix + frame.verb.conjugate(agreement)).split()[-1:]
} | {form for table in (inflection.PRESENT_FORMS, inflection.PRETERITE_FORMS) for row in table.values() for form in row}


@pytest.mark.parametrize("conjunction", ["weil", "dass", "obwohl", "wenn", "ob", "als", "während"])
def test_subordinate_clauses_end_in_their_finite_verb(corpus, conjunction):
    ends = [
        german.rstrip(".?!").split(f", {conjunction} ")[1].split(",")[0].split()[-1]
        for _, german in corpus
        if f", {conjunction} " in german
    ]
    assert len(ends) > 100
    assert set(ends) <= FINITE


def test_perfect_ends_in_the_participle(corpus):
    participles = {word.split()[-1] for frame in verbs.FRAMES.values() for word in [frame.verb.participle]}
    starts = tuple(f"{name.german_name} hat " for name in lexicon.PEOPLE)
    ends = [
        german[:-1].split()[-1]
        for english, german in corpus
        if german.startswith(starts) and "," not in german and " and " not in english and " has " not in english
    ]
    assert len(ends) > 100
    assert set(ends) <= participles | {"geworden"}
