"""Verbs and their arguments: kinds of subjects and objects, cases, prepositions and places."""

import re
from dataclasses import dataclass

from nmt_jax.data.grammar.inflection import Case, Modal, Verb, english_ed, regular_third
from nmt_jax.data.grammar.lexicon import NOUNS


@dataclass(frozen=True, slots=True)
class Frame:
    """A verb and its arguments: kinds of subject and object, case and preposition of the object, and a place."""

    verb: Verb
    subjects: frozenset[str]
    objects: frozenset[str]
    case: Case
    preposition: str
    recipient: str  # "": none, "plain": gives him a book, "to": explains the rule to him
    place: str  # "": none; "where": optional; "to", "far", "town", "onto": required, of this kind
    action: bool  # something one can want, try and command


def _verb(entry: str) -> Verb:
    """Parses `base[_tail or |particle] [past] = [sich_][prefix|]infinitive [third person], [ist] participle`."""
    source, target = entry.split("=")
    english, *past = source.split()
    base, particle = english.partition("|")[::2]
    base, _, tail = base.partition("_")
    forms, participle = target.split(",")
    infinitive, *third = forms.split()
    reflexive = infinitive.startswith("sich_")
    prefix, _, infinitive = infinitive.removeprefix("sich_").replace("_", " |").rpartition("|")
    auxiliary, participle = ("sein", participle.split()[1]) if " ist " in participle else ("haben", participle.strip())
    return Verb(
        english=base,
        past=past[0] if past else english_ed(base),
        tail=tail.replace("_", " "),
        particle=particle,
        infinitive=infinitive,
        third=third[0] if third else regular_third(infinitive.removesuffix("n").removesuffix("e")),
        participle=(prefix if prefix.endswith(" ") else "") + participle,
        auxiliary=auxiliary,
        prefix=prefix,
        reflexive=reflexive,
    )


def _frames(table: str) -> dict[str, Frame]:
    """Parses blocks of a header `[[!]subjects [> [recipient:] [preposition] [+case] objects] [@place]]` and verbs.

    `!` marks states (`action` is False). The keys of the result are the English verbs with their tails and particles.
    """
    frames = {}
    for header, verbs in re.findall(r"\[(.*?)\]([^\[]*)", table):
        header, _, place = header.partition("@")
        subjects, _, valency = header.partition(">")
        recipient, _, valency = valency.rpartition(":")
        words = valency.split()
        for verb in map(_verb, verbs.split(";")):
            frames[" ".join(filter(None, (verb.english, verb.tail, verb.particle)))] = Frame(
                verb=verb,
                subjects=frozenset(subjects.strip(" !").split()),
                objects=frozenset(word for word in words if word in NOUNS or word in ("city", "country")),
                case=next((Case[word[1:].upper()] for word in words if word[0] == "+"), Case.ACCUSATIVE),
                preposition=words[0] if words and words[0] in PREPOSITIONS else "",
                recipient=recipient.strip(),
                place=place.strip(),
                action="!" not in subjects,
            )
    return frames


PREPOSITIONS = ("an", "auf", "aus", "mit", "um", "von", "über")
FRAMES = _frames("""
    [person animal @where] sleep slept = schlafen schläft, geschlafen; wait = warten, gewartet;
        sit sat = sitzen, gesessen; play = spielen, gespielt; stay = bleiben, ist geblieben
    [person @where] work = arbeiten, gearbeitet; laugh = lachen, gelacht; cry = weinen, geweint;
        dance = tanzen, getanzt; sing sang = singen, gesungen; smile = lächeln, gelächelt; study = lernen, gelernt;
        shop shopped = ein|kaufen, eingekauft; rest = sich_aus|ruhen, ausgeruht; hike = wandern, ist gewandert;
        play_football = Fußball_spielen, gespielt; play_chess = Schach_spielen, gespielt
    [person @water] swim swam = schwimmen, ist geschwommen
    [person] get_up got = auf|stehen, ist aufgestanden; wake_up woke = auf|wachen, ist aufgewacht;
        watch_television = fern|sehen sieht, ferngesehen; fall_asleep fell = ein|schlafen schläft, ist eingeschlafen;
        play_the_piano = Klavier_spielen, gespielt; speak_German spoke = Deutsch_sprechen spricht, gesprochen;
        hurry = sich_beeilen, beeilt; sit_down sat = sich_hin|setzen, hingesetzt
    [!person transport @there] arrive = an|kommen, ist angekommen
    [!transport] depart = ab|fahren fährt, ist abgefahren
    [person @to] go went = gehen, ist gegangen; come came = kommen, ist gekommen; run ran = laufen läuft, ist gelaufen
    [person @far] drive drove = fahren fährt, ist gefahren; travel = reisen, ist gereist;
        fly flew = fliegen, ist geflogen; return = zurück|kehren, ist zurückgekehrt
    [!person @town] live = wohnen, gewohnt
    [person animal > fruit pastry dish food @where] eat ate = essen isst, gegessen
    [person > drink @where] drink drank = trinken, getrunken
    [person > dish @where] cook = kochen, gekocht
    [person > pastry] bake = backen backt, gebacken
    [person > fruit pastry dish food drink] order = bestellen, bestellt; taste = probieren, probiert;
        pay_for paid = bezahlen, bezahlt
    [!person > um food drink] ask_for = bitten, gebeten
    [person > text @where] read read = lesen liest, gelesen
    [person > text] write wrote = schreiben, geschrieben; translate = übersetzen, übersetzt
    [person > tale] write|down wrote = auf|schreiben, aufgeschrieben
    [person > thing toy container clothes vehicle text device furniture] buy bought = kaufen, gekauft;
        sell sold = verkaufen, verkauft; find found = finden, gefunden; look_for = suchen, gesucht
    [!person > thing toy container clothes vehicle text device furniture] need = brauchen, gebraucht;
        have had = haben, gehabt; steal stole = stehlen stiehlt, gestohlen
    [person > thing container text] carry = tragen trägt, getragen; throw|away threw = weg|werfen wirft, weggeworfen;
        forget forgot = vergessen vergisst, vergessen; lose lost = verlieren, verloren
    [person > thing container text drink pastry] bring|along brought = mit|bringen, mitgebracht
    [person > clothes vehicle fruit] wash = waschen wäscht, gewaschen
    [person > opening furniture room device] clean = putzen, geputzt
    [person > room] tidy|up = auf|räumen, aufgeräumt
    [person > vehicle device furniture opening] repair = reparieren, repariert
    [person > opening container] open = öffnen, geöffnet; close = schließen, geschlossen
    [person > device] turn|on = ein|schalten, eingeschaltet; turn|off = aus|schalten, ausgeschaltet
    [person > clothes] put|on put = an|ziehen, angezogen; try|on = an|probieren, anprobiert
    [person > thing text clothes @onto] put put = legen, gelegt
    [person > building room area event] leave left = verlassen verlässt, verlassen
    [person > plant animal building] paint = malen, gemalt
    [person > text building plant animal clothes] look_at = an|sehen sieht, angesehen
    [person > building area person thing] describe = beschreiben, beschrieben
    [person > song animal person] hear heard = hören, gehört
    [person > person animal vehicle building transport @where] see saw = sehen sieht, gesehen
    [!person > person animal building area song clothes fruit drink] love = lieben, geliebt; like = mögen, gemocht
    [!person > person building area song] know knew = kennen, gekannt
    [!person > person matter text puzzle tale] understand understood = verstehen, verstanden
    [person > puzzle] solve = lösen, gelöst
    [person > person building area city] visit = besuchen, besucht
    [person > person @where] meet met = treffen trifft, getroffen; greet = begrüßen, begrüßt
    [person > person] ask = fragen, gefragt; invite = ein|laden lädt, eingeladen; pick|up = ab|holen, abgeholt;
        call = an|rufen, angerufen; disturb = stören, gestört; hug hugged = umarmen, umarmt
    [!person > person animal city] miss = vermissen, vermisst
    [person > +dative person] help = helfen hilft, geholfen; thank = danken, gedankt; trust = vertrauen, vertraut;
        follow = folgen, ist gefolgt; answer = antworten, geantwortet; congratulate = gratulieren, gratuliert;
        listen_to = zu|hören, zugehört
    [!vehicle building clothes animal > +dative person] belong_to = gehören, gehört
    [person > auf person transport @where] wait_for = warten, gewartet
    [person > auf person animal container] look_after = auf|passen, aufgepasst
    [person > an person puzzle area city] think_of thought = denken, gedacht
    [person > an person tale event] remember = sich_erinnern, erinnert
    [person > über person matter text] talk_about = sprechen spricht, gesprochen
    [person > über person animal tale] laugh_at = lachen, gelacht
    [person > von +dative person vehicle building] dream_of = träumen, geträumt
    [person animal > mit +dative person animal toy] play_with = spielen, gespielt
    [person > an +dative event] take_part_in took = teil|nehmen nimmt, teilgenommen
    [!person > aus +dative city country] come_from came = kommen, ist gekommen
    [person > plain: thing toy container text clothes] give gave = geben gibt, gegeben; show = zeigen, gezeigt;
        send sent = schicken, geschickt; bring brought = bringen, gebracht; lend lent = leihen, geliehen
    [person > plain: tale] tell told = erzählen, erzählt
    [person > to: matter puzzle] explain = erklären, erklärt
    [person > to: building text] recommend = empfehlen empfiehlt, empfohlen
""")
BE_FRAME, BECOME, COST, WONDER, *WEATHER = _frames("""
    [! > +nominative] be was = sein ist, ist gewesen; become became = werden wird, ist geworden;
        cost cost = kosten, gekostet
    [!] ask = fragen, gefragt
    [!@town] rain = regnen, geregnet; snow = schneien, geschneit
""").values()
(THERE_IS,) = _frames("[!] be was = geben gibt, gegeben").values()
SAY = _frames("""
    [!person] say said = sagen, gesagt; think thought = denken, gedacht; believe = glauben, geglaubt;
        hope = hoffen, gehofft; know knew = wissen, gewusst
""")
INTEND = _frames("""
    [!person] try = versuchen, versucht; forget forgot = vergessen vergisst, vergessen;
        begin began = an|fangen fängt, angefangen; promise = versprechen verspricht, versprochen;
        plan planned = planen, geplant
""")
MODALS = {
    "can": Modal("can", "could", "", True, "können"),
    "may": Modal("may", "", "", True, "dürfen"),
    "should": Modal("should", "", "", True, "sollten"),
    "would": Modal("would", "", "like to", True, "möchten"),
    "want": Modal("want", "wanted", "to", False, "wollen"),
    "have": Modal("have", "had", "to", False, "müssen"),
}
