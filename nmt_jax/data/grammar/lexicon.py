"""All words except verbs: nouns, names, adjectives, adverbs, prepositions and numbers.

Words are listed in tables with several entries per line. The kind of a noun determines its verbs and adjectives.
"""

from nmt_jax.data.grammar.inflection import Adjective, Adverb, Name, Noun, english_s, rows


def _nouns(kind: str, table: str) -> list[Noun]:
    """Parses `english[/plural] article German [plural]`, separated by commas; `der*`: weak; no plural: mass noun."""
    nouns = []
    for entry in table.split(","):
        english, article, german, *german_plural = entry.split()
        singular, _, plural = english.partition("/")
        gender = ("der", "die", "das").index(article[:3])
        plural = plural or english_s(singular)
        nouns.append(Noun(kind, singular, plural, german, "".join(german_plural), gender, article.endswith("*")))
    return nouns


def _adjectives(table: str) -> dict[str, Adjective]:
    """Parses `English German [both comparatives]`; `more` stands for English comparatives with more."""
    adjectives = {}
    for entry in table.split(","):
        english, german, *comparatives = entry.split()
        more, german_more = comparatives or ("", "")
        adjectives[english] = Adjective(english, german, f"more {english}" if more == "more" else more, german_more)
    return adjectives


def _adverbs(table: str) -> tuple[Adverb, ...]:
    """Parses `English = German`, separated by commas."""
    return tuple(Adverb(*map(str.strip, entry.split("="))) for entry in table.split(","))


NOUNS: dict[str, list[Noun]] = {
    kind: _nouns(kind, table)
    for kind, table in {
        "person": """man/men der Mann Männer, woman/women die Frau Frauen, child/children das Kind Kinder,
            boy der* Junge Jungen, girl das Mädchen Mädchen, teacher der Lehrer Lehrer, doctor der Arzt Ärzte,
            student der* Student Studenten, neighbor der* Nachbar Nachbarn, friend der Freund Freunde,
            brother der Bruder Brüder, sister die Schwester Schwestern, mother die Mutter Mütter,
            father der Vater Väter, son der Sohn Söhne, daughter die Tochter Töchter, uncle der Onkel Onkel,
            grandmother die Großmutter Großmütter, aunt die Tante Tanten, farmer der* Bauer Bauern,
            baker der Bäcker Bäcker, painter der Maler Maler, waiter der Kellner Kellner, lawyer der Anwalt Anwälte,
            engineer der Ingenieur Ingenieure, nurse die Krankenschwester Krankenschwestern,
            singer der Sänger Sänger, policeman/policemen der* Polizist Polizisten, tourist der* Tourist Touristen,
            king der König Könige, queen die Königin Königinnen, guest der Gast Gäste, customer der* Kunde Kunden,
            colleague der* Kollege Kollegen, judge der Richter Richter, gardener der Gärtner Gärtner""",
        "animal": """dog der Hund Hunde, cat die Katze Katzen, horse das Pferd Pferde, cow die Kuh Kühe,
            bird der Vogel Vögel, mouse/mice die Maus Mäuse, pig das Schwein Schweine, bear der* Bär Bären,
            lion der* Löwe Löwen, duck die Ente Enten, monkey der* Affe Affen, elephant der* Elefant Elefanten""",
        "fruit": """apple der Apfel Äpfel, banana die Banane Bananen, pear die Birne Birnen,
            carrot die Karotte Karotten, potato die Kartoffel Kartoffeln, tomato die Tomate Tomaten, egg das Ei Eier""",
        "pastry": "cake der Kuchen Kuchen, cookie der Keks Kekse, pancake der Pfannkuchen Pfannkuchen",
        "dish": "soup die Suppe, rice der Reis, meat das Fleisch, fish der Fisch",
        "food": "bread das Brot, cheese der Käse, butter die Butter, chocolate die Schokolade, honey der Honig",
        "drink": """water das Wasser, milk die Milch, coffee der Kaffee, tea der Tee, juice der Saft, wine der Wein,
            beer das Bier""",
        "text": """book das Buch Bücher, letter der Brief Briefe, newspaper die Zeitung Zeitungen,
            poem das Gedicht Gedichte, novel der Roman Romane, message die Nachricht Nachrichten,
            report der Bericht Berichte, recipe das Rezept Rezepte""",
        "thing": """key der Schlüssel Schlüssel, cup die Tasse Tassen, plate der Teller Teller,
            knife/knives das Messer Messer, pen der Stift Stifte, camera die Kamera Kameras,
            umbrella der Regenschirm Regenschirme, map die Karte Karten, picture das Bild Bilder,
            ring der Ring Ringe""",
        "toy": "ball der Ball Bälle, doll die Puppe Puppen",
        "container": """bag die Tasche Taschen, bottle die Flasche Flaschen, box die Kiste Kisten,
            suitcase der Koffer Koffer, gift das Geschenk Geschenke""",
        "clothes": """shirt das Hemd Hemden, coat der Mantel Mäntel, hat der Hut Hüte, dress das Kleid Kleider,
            jacket die Jacke Jacken, shoe der Schuh Schuhe, skirt der Rock Röcke, sweater der Pullover Pullover""",
        "vehicle": """car das Auto Autos, bicycle das Fahrrad Fahrräder, truck der Lastwagen Lastwagen,
            boat das Boot Boote, motorcycle das Motorrad Motorräder""",
        "transport": "bus der Bus Busse, train der Zug Züge, ship das Schiff Schiffe",
        "device": """radio/radios das Radio Radios, lamp die Lampe Lampen, computer der Computer Computer,
            machine die Maschine Maschinen""",
        "furniture": """table der Tisch Tische, chair der Stuhl Stühle, bed das Bett Betten, sofa das Sofa Sofas,
            desk der Schreibtisch Schreibtische""",
        "opening": "door die Tür Türen, window das Fenster Fenster",
        "plant": "tree der Baum Bäume, flower die Blume Blumen, rose die Rose Rosen",
        "building": """house das Haus Häuser, school die Schule Schulen, church die Kirche Kirchen,
            museum das Museum Museen, theater das Theater Theater, library die Bibliothek Bibliotheken,
            hotel das Hotel Hotels, restaurant das Restaurant Restaurants, hospital das Krankenhaus Krankenhäuser""",
        "area": "city die Stadt Städte, village das Dorf Dörfer, park der Park Parks, forest der Wald Wälder",
        "room": """kitchen die Küche Küchen, garden der Garten Gärten, office das Büro Büros, cellar der Keller Keller,
            bedroom das Schlafzimmer Schlafzimmer""",
        "spot": """station der Bahnhof Bahnhöfe, airport der Flughafen Flughäfen, lake der See Seen,
            beach der Strand Strände, river der Fluss Flüsse""",
        "event": "party die Party Partys, festival das Fest Feste, wedding die Hochzeit Hochzeiten",
        "matter": """question die Frage Fragen, rule die Regel Regeln, plan der Plan Pläne, idea die Idee Ideen,
            mistake der Fehler Fehler""",
        "puzzle": "problem das Problem Probleme, task die Aufgabe Aufgaben",
        "tale": "story die Geschichte Geschichten, joke der Witz Witze, secret das Geheimnis Geheimnisse",
        "song": "song das Lied Lieder, melody die Melodie Melodien",
    }.items()
}
PEOPLE, TOWNS = (
    [Name(kind, *(name.split("/") * 2)[:2]) for kind, names in table.items() for name in names.split()]
    for table in (
        {
            "woman": "Anna Maria Julia Laura Eva Emma Sophie Clara Lisa Nina",
            "man": "Peter Paul Martin David Leon Simon Jan Tom Karl Daniel",
        },
        {
            "city": "Berlin Hamburg Munich/München Vienna/Wien Cologne/Köln Paris London Rome/Rom",
            "country": "Germany/Deutschland Austria/Österreich France/Frankreich Italy/Italien Spain/Spanien",
        },
    )
)

# Prepositions of locations: English, German with the dative; and the German preposition of directions.
PLACES = {
    **dict.fromkeys(("building", "area", "room"), ("in", "in", "in")),
    "spot": ("at", "an", "zu"),
    "event": ("at", "auf", "zu"),
    **dict.fromkeys(("city", "country"), ("in", "in", "nach")),
}
SURFACES = {"on": "auf", "under": "unter", "next to": "neben", "behind": "hinter", "in front of": "vor"}
CONTRACTIONS = {
    **{"in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "von dem": "vom", "zu dem": "zum"},
    **{"zu der": "zur", "bei dem": "beim"},
}

ADJECTIVES = _adjectives("""
    old alt older älter, young jung younger jünger, tall groß taller größer, small klein smaller kleiner,
    big groß bigger größer, new neu newer neuer, beautiful schön more schöner, ugly hässlich, rich reich richer reicher,
    poor arm poorer ärmer, strong stark stronger stärker, weak schwach weaker schwächer, fast schnell faster schneller,
    slow langsam slower langsamer, happy glücklich happier glücklicher, sad traurig sadder trauriger, tired müde,
    famous berühmt more berühmter, friendly freundlich friendlier freundlicher, nice nett nicer netter,
    clever klug cleverer klüger, lazy faul lazier fauler, brave mutig braver mutiger, hungry hungrig, sick krank,
    healthy gesund healthier gesünder, polite höflich more höflicher, curious neugierig, angry wütend, lonely einsam,
    wild wild, dangerous gefährlich more gefährlicher, expensive teuer more teurer, cheap billig cheaper billiger,
    heavy schwer heavier schwerer, long lang longer länger, short kurz shorter kürzer,
    interesting interessant more interessanter, boring langweilig more langweiliger,
    difficult schwierig more schwieriger, simple einfach simpler einfacher, important wichtig more wichtiger,
    modern modern more moderner, clean sauber, dirty schmutzig, dark dunkel darker dunkler, warm warm, cold kalt,
    fresh frisch, sweet süß sweeter süßer, delicious lecker, red rot, blue blau, green grün, yellow gelb, black schwarz,
    white weiß, brown braun, broken kaputt, empty leer, quiet ruhig quieter ruhiger, good gut better besser
""")

QUALITIES: dict[str, list[Adjective]] = {
    kind: [ADJECTIVES[word] for word in words.split()]
    for kinds, words in {
        "person": """old young tall small rich poor strong weak happy sad tired famous friendly nice clever lazy brave
            hungry sick healthy polite curious angry lonely good""",
        "animal": "old young small big strong wild dangerous hungry black white brown fast slow lazy clever sick",
        "fruit": "fresh cheap expensive big small delicious good",
        "pastry": "fresh sweet big small delicious warm good",
        "dish food": "fresh cheap expensive delicious warm cold good",
        "drink": "cold warm fresh cheap expensive delicious good",
        "text": "long short interesting boring new old important famous difficult simple good beautiful",
        "thing toy container": "new old small big beautiful ugly expensive cheap red blue green heavy broken dirty",
        "clothes": "new old beautiful ugly expensive cheap red blue green yellow black white warm long short dirty",
        "vehicle transport": "new old fast slow red blue yellow expensive big small modern heavy",
        "device": "new old modern expensive cheap broken big small heavy simple",
        "furniture opening": "new old big small brown white ugly beautiful clean dirty heavy",
        "plant": "big small old beautiful green red yellow white",
        "building": "old new big small beautiful modern famous expensive quiet clean ugly",
        "area": "old small big beautiful quiet famous dangerous",
        "room": "big small dark quiet clean dirty beautiful empty warm cold",
        "spot": "big small old beautiful quiet modern clean dirty",
        "event": "big small beautiful boring famous",
        "matter puzzle": "important difficult simple interesting boring new old",
        "tale": "interesting boring new old good short",
        "song": "old new beautiful sad happy long short famous",
    }.items()
    for kind in kinds.split()
}
(BECOMING,) = (  # adjectives for "become"
    [ADJECTIVES[word] for word in words]
    for words in rows("old rich poor strong weak happy sad tired famous hungry sick healthy curious angry lonely")
)

# Adverbs of manner and the verbs that they modify.
MANNERS = {
    _adverbs(adverb)[0]: frozenset(verbs.split())
    for adverb, verbs in {
        "loudly = laut": "laugh sing cry",
        "quietly = leise": "sing cry laugh play",
        "quickly = schnell": "eat work repair run wash clean drive read write solve",
        "slowly = langsam": "eat drink drive read write open close work",
        "carefully = vorsichtig": "open close carry wash drive",
        "well = gut": "sleep sing dance cook swim",
    }.items()
}
FREQUENCIES = _adverbs("always = immer, often = oft, sometimes = manchmal, rarely = selten, never = nie")
_ANY_DAY = "today = heute, in the morning = am Morgen, in the evening = am Abend, at night = in der Nacht"
_SOME_DAY = """on Monday = am Montag, on Tuesday = am Dienstag, on Wednesday = am Mittwoch, on Thursday = am Donnerstag,
    on Friday = am Freitag, on Saturday = am Samstag, on Sunday = am Sonntag, in spring = im Frühling,
    in summer = im Sommer, in autumn = im Herbst, in winter = im Winter"""
TIMES = (
    _adverbs(f"yesterday = gestern, last week = letzte Woche, last year = letztes Jahr, {_ANY_DAY}, {_SOME_DAY}"),
    _adverbs(f"now = jetzt, every day = jeden Tag, {_ANY_DAY}"),
    _adverbs(f"tomorrow = morgen, soon = bald, next week = nächste Woche, {_ANY_DAY}, {_SOME_DAY}"),
)  # by tense

_UNITS, _GERMAN_UNITS, _TENS, _GERMAN_TENS = rows("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen / null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
    sechzehn siebzehn achtzehn neunzehn / twenty thirty forty fifty sixty seventy eighty ninety /
    zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig
""")


def number_words(number: int) -> tuple[str, str]:
    """A number from 2 to 99 in English and German, such as `twenty-one` and `einundzwanzig`."""
    if number < 20:
        return _UNITS[number], _GERMAN_UNITS[number]
    tens, unit = divmod(number, 10)
    if unit == 0:
        return _TENS[tens - 2], _GERMAN_TENS[tens - 2]
    return f"{_TENS[tens - 2]}-{_UNITS[unit]}", f"{_GERMAN_UNITS[unit]}und{_GERMAN_TENS[tens - 2]}"
