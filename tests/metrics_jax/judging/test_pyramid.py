import itertools
import json

import pytest

from metrics_jax.judging.pyramid import Peer, Pyramid, Unit, read_pyramid

# A published example with six reference summaries.
LOPEZ = {
    "references": list("ABCDEF"),
    "units": {
        "1": {
            "label": "Lopez left GM for VW",
            "contributors": {"A": "A1", "B": "B3", "C": "C6", "D": "D6", "E": "E1", "F": "F3"},
        },
        "2": {"label": "Lopez changes employers in March 1993", "contributors": {"C": "C6", "E": "E1", "F": "F3"}},
    },
    "summaries": {"both": {"units": ["1", "2"]}, "less": {"units": ["2"], "others": 1}, "none": {"units": []}},
}


def make_pyramid(*weights):
    units = {f"u{k}": Unit(f"u{k}", frozenset(range(weight))) for k, weight in enumerate(weights)}
    return Pyramid(units, frozenset(range(max(weights))))


@pytest.fixture
def write(tmp_path):
    def to(content, name="lopez.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    return to


def test_published_example(write):
    pyramid, peers = read_pyramid(write(LOPEZ))
    assert {name: unit.weight for name, unit in pyramid.units.items()} == {"1": 6, "2": 3}
    assert pyramid.tiers == {6: ["1"], 3: ["2"]}
    assert pyramid.optimal(1) == ["1"]
    assert (pyramid.best(1), pyramid.best(2), pyramid.best(9)) == (6, 9, 9)
    assert pyramid.mean_size == 1.5
    assert pyramid.original(peers["both"]) == 1
    assert pyramid.original(peers["less"]) == pytest.approx(3 / 9)  # two units, one of them not in the pyramid
    assert pyramid.modified(peers["less"]) == pytest.approx(3 / 9)  # a reference has 1.5 units: two
    assert pyramid.original(peers["none"]) == pyramid.modified(peers["none"]) == 0


def test_optimal_summaries_take_the_heaviest_tiers_first():
    pyramid = make_pyramid(1, 4, 2, 2, 3, 1, 4, 1)
    weights = {name: unit.weight for name, unit in pyramid.units.items()}
    for size in range(10):
        chosen = pyramid.optimal(size)
        assert len(chosen) == min(size, 8)
        left_out = [weights[name] for name in weights if name not in chosen]
        assert not chosen or not left_out or min(weights[name] for name in chosen) >= max(left_out)
        every = itertools.combinations(weights.values(), min(size, 8))
        assert pyramid.best(size) == max(map(sum, every))


def test_original_and_modified_scores():
    pyramid = make_pyramid(3, 3, 2, 1)  # a reference has three units
    short, long = Peer(frozenset({"u0"})), Peer(frozenset({"u0", "u1", "u2"}), 2)
    assert pyramid.original(short) == 1
    assert pyramid.modified(short) == pytest.approx(3 / 8)
    assert pyramid.original(long) == pytest.approx(8 / 9)
    assert pyramid.modified(long) == 1


DUCVIEW = """<?xml version="1.0"?>
<peerAnnotation>
<pyramid>
<startDocumentRegEx><![CDATA[-+\\n [A-C]\\n-+\\n]]></startDocumentRegEx>
 <text>
  <line>---</line>
  <line> A</line>
  <line>---</line>
  <line>He left GM.</line>
  <line>---</line>
  <line> B</line>
  <line>---</line>
  <line>He went &amp; left GM twice.</line>
 </text>
 <scu uid="7" label="he left">
  <contributor label="He left GM"><part label="He left GM" start="11" end="21"/></contributor>
  <contributor label="left GM"><part label="left GM" start="43" end="50"/></contributor>
  <contributor label="GM twice"><part label="GM twice" start="48" end="56"/></contributor>
 </scu>
 <scu uid="9" label="he went">
  <contributor label="He went"><part label="He went" start="34" end="41"/></contributor>
 </scu>
</pyramid>
<annotation>
 <text><line>He left, it rained.</line></text>
 <peerscu uid="7" label="(2) he left">
  <contributor label="He left"><part label="He left" start="0" end="7"/></contributor>
 </peerscu>
 <peerscu uid="9" label="(1) he went"> </peerscu>
 <peerscu uid="0" label="All non-matching SCUs go here">
  <contributor label="it rained"><part label="it rained" start="9" end="18"/></contributor>
 </peerscu>
</annotation>
</peerAnnotation>
"""


def test_ducview_files(write):
    pyramid, peers = read_pyramid(write(DUCVIEW, "system-3.pan"))
    assert {name: sorted(unit.contributors) for name, unit in pyramid.units.items()} == {"7": ["1", "2"], "9": ["2"]}
    assert peers == {"system-3": Peer(frozenset({"7"}), 1)}
    assert pyramid.original(peers["system-3"]) == pytest.approx(2 / 3)
    alone = DUCVIEW[DUCVIEW.index("<pyramid>") : DUCVIEW.index("<annotation>")]
    assert read_pyramid(write(alone, "a.pyr")) == (pyramid, {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"units": {"1": {"contributors": ["A"]}, "x": {"label": "L", "contributors": []}}}, r":\d+: unit 'x' \(L\)"),
        ({"units": {"1": {"contributors": ["G"]}}}, "contributor 'G', which is not among the references"),
        ({"units": {"1": {"contributors": "A"}}}, 'needs "contributors"'),
        ({"units": {}}, "no units"),
        ({"units": []}, 'needs "units"'),
        ({"summaries": {"s": {"units": ["3"]}}}, "no unit '3'"),
        ({"summaries": {"s": ["1"]}}, "summary 's' needs"),
    ],
)
def test_invalid_annotations(write, change, words):
    path = write(LOPEZ | change)
    with pytest.raises(ValueError, match=words) as caught:
        read_pyramid(path)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def test_error_names_the_line_of_the_unit(write):
    bad = DUCVIEW.replace(
        '  <contributor label="He went"><part label="He went" start="34" end="41"/></contributor>\n', ""
    )
    line = bad[: bad.index('<scu uid="9"')].count("\n") + 1
    with pytest.raises(ValueError, match=rf"bad\.pan:{line}: unit '9' \(he went\) has no contributors"):
        read_pyramid(write(bad, "bad.pan"))


def test_invalid_files(write, tmp_path):
    for text, words in (
        ('{"units": ', ":1: not JSON"),
        ("A;B", ":1: neither"),
        ("<a></a>", "has no <pyramid>"),
        (DUCVIEW.replace("[A-C]", "[X-Z]"), "matches no reference summary"),
        (DUCVIEW.replace("[A-C]", "[A-C"), "not a regular expression"),
        (DUCVIEW.replace('start="34" ', ""), "'He went' has no part with a start"),
    ):
        with pytest.raises(ValueError, match=words):
            read_pyramid(write(text))
    with pytest.raises(ValueError, match="cannot be read"):
        read_pyramid(tmp_path / "nothing.json")
