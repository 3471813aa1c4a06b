"""Pyramids: what several people's summaries of a text say, and how much of the best of that another summary says.

Nenkova and Passonneau (2004). People mark what summaries say in common as summary content units; the weight of a unit
is the number of reference summaries that express it. It takes people's annotation, so the score is a human judgement,
which metrics are judged by.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import json
import os
import pathlib
import re
import xml.etree.ElementTree
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Unit:
    """A summary content unit: its label, and the reference summaries that express it."""

    label: str
    contributors: frozenset[str]

    @property
    def weight(self) -> int:
        """How many reference summaries express it: its tier."""
        return len(self.contributors)


@dataclasses.dataclass(frozen=True)
class Peer:
    """What a summary says: names of units of a pyramid, and the number of units that are not in it."""

    units: frozenset[str]
    others: int = 0


@dataclasses.dataclass(frozen=True)
class Pyramid:
    """Units by name, and the names of the reference summaries they were found in.

    ValueError for no units, a unit that no summary expresses, and one of a summary that is not among the references.
    """

    units: Mapping[str, Unit]
    references: frozenset[str]

    def __post_init__(self) -> None:
        if not self.units:
            raise ValueError("no units: a pyramid has one at least")
        for name, unit in self.units.items():
            if not unit.weight:
                raise ValueError(f"unit {name!r} ({unit.label}) has no contributors, so it has no weight")
            if unknown := unit.contributors - self.references:
                raise ValueError(f"unit {name!r} is of summary {min(unknown)!r}, which is not among the references")

    @property
    def tiers(self) -> dict[int, list[str]]:
        """Names of the units of each weight, the heaviest tier first."""
        ordered = sorted(self.units, key=lambda name: -self.units[name].weight)
        return {weight: list(names) for weight, names in itertools.groupby(ordered, lambda n: self.units[n].weight)}

    def optimal(self, size: int) -> list[str]:
        """The units of a best summary of `size` units: none of tier n - 1 before all of tier n (equation 2)."""
        return [name for names in self.tiers.values() for name in names][:size]

    def best(self, size: int) -> int:
        """Max, the sum of weights of a best summary of `size` units."""
        return sum(self.units[name].weight for name in self.optimal(size))

    @property
    def mean_size(self) -> float:
        """Units of a reference summary, on average."""
        return sum(unit.weight for unit in self.units.values()) / len(self.references)

    def weight(self, peer: Peer) -> int:
        """D, the sum of weights of the units that a summary expresses, each once; ValueError for one not in here."""
        for name in sorted(peer.units):
            if name not in self.units:
                raise ValueError(f"there is no unit {name!r}")
        return sum(self.units[name].weight for name in peer.units)

    def original(self, peer: Peer) -> float:
        """D / Max of as many units as the summary has, those not in the pyramid counted: like precision, 0 to 1.

        0 for a summary that says nothing.
        """
        size = len(peer.units) + peer.others
        return self.weight(peer) / self.best(size) if size else 0.0

    def modified(self, peer: Peer) -> float:
        """D / Max of as many units as a reference has on average, rounded: like recall; more than 1 is possible."""
        return self.weight(peer) / self.best(max(1, int(self.mean_size + 0.5)))


def read_pyramid(path: str | os.PathLike[str]) -> tuple[Pyramid, dict[str, Peer]]:
    """A file of annotations -> its pyramid, and what other summaries say, by name.

    JSON: {"references": ["A", …], "units": {"1": {"label": "…", "contributors": ["A", …]}}, "summaries": {"system":
    {"units": ["1", …], "others": 2}}}, the last one optional; contributors may also be {"A": where it says so}.
    DUCView's XML: .pyr, a pyramid, and .pan, a pyramid with one summary, named as the file is.
    ValueError `FILE: …` for what is not such a file, and FILE:LINE where a unit is at fault.
    """
    path = pathlib.Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot read it: {getattr(error, 'strerror', None) or error}") from None
    try:
        return _json(text) if text.lstrip().startswith("{") else _ducview(text, path.stem)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON ({error.msg})") from None
    except xml.etree.ElementTree.ParseError as error:
        raise ValueError(f"{path}:{error.position[0]}: neither a JSON object nor XML of DUCView ({error})") from None
    except ValueError as error:
        raise ValueError(f"{path}:{_line(text, str(error))}: {error}") from None


def _json(text: str) -> tuple[Pyramid, dict[str, Peer]]:
    content = json.loads(text)
    units = {}
    for name, unit in _object(content, "units").items():
        if not isinstance(unit, dict) or not isinstance(unit.get("contributors"), list | dict):
            raise ValueError(f"unit {name!r} needs contributors, a list of reference summaries")
        units[name] = Unit(str(unit.get("label", name)), frozenset(map(str, unit["contributors"])))
    references = content.get("references")
    if references is not None and not isinstance(references, list):
        raise ValueError('"references" must be a list of names')
    everyone = frozenset(map(str, references or itertools.chain(*(unit.contributors for unit in units.values()))))
    pyramid = Pyramid(units, everyone)
    peers = {}
    for name, peer in (_object(content, "summaries") if "summaries" in content else {}).items():
        if not isinstance(peer, dict) or not isinstance(peer.get("units"), list):
            raise ValueError(f'summary {name!r} needs "units", a list of names')
        peers[name] = Peer(frozenset(map(str, peer["units"])), int(peer.get("others", 0)))
        pyramid.weight(peers[name])
    return pyramid, peers


def _object(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    if not isinstance(content.get(key), dict):
        raise ValueError(f'needs "{key}", an object')
    return content[key]


def _ducview(text: str, name: str) -> tuple[Pyramid, dict[str, Peer]]:
    """A <pyramid>, and in a .pan file beside it the <annotation> of a summary with a <peerscu> of every unit.

    The reference summaries stand in the pyramid's <text>, one after another; each begins where the expression
    <startDocumentRegEx> is found, and a contributor belongs to the one that its first <part> starts in. In place of
    the unit 0 of a summary are contributors that are in no unit of the pyramid.
    """
    root = xml.etree.ElementTree.fromstring(text)
    top = root if root.tag == "pyramid" and root.find("scu") is not None else root.find(".//pyramid")
    if top is None:
        raise ValueError("no <pyramid> in it")
    starts = _starts(top)
    units = {}
    for scu in top.findall("scu"):
        uid = scu.get("uid", "")
        contributors = (_reference(one, starts) for one in scu.findall("contributor"))
        units[uid] = Unit(scu.get("label", uid), frozenset(contributors))
    pyramid = Pyramid(units, frozenset(map(str, range(1, len(starts) + 1))))
    annotated = root.findall(".//peerscu")
    if not annotated:
        return pyramid, {}
    said = {scu.get("uid", ""): len(scu.findall("contributor")) for scu in annotated}
    peer = Peer(frozenset(uid for uid, times in said.items() if times and uid != "0"), said.get("0", 0))
    pyramid.weight(peer)
    return pyramid, {name: peer}


def _starts(pyramid: xml.etree.ElementTree.Element) -> list[int]:
    """Where the reference summaries begin, in characters."""
    lines = [line.text or "" for line in pyramid.findall("text/line")]
    pattern = pyramid.findtext("startDocumentRegEx") or ""
    try:
        found = [match.start() for match in re.finditer(pattern, "\n".join(lines))] if pattern else []
    except re.error as error:
        raise ValueError(f"startDocumentRegEx {pattern!r} is no expression: {error}") from None
    if not found:
        raise ValueError(
            "startDocumentRegEx finds no reference summary in the text: nothing says whose units these are"
        )
    return found


def _reference(contributor: xml.etree.ElementTree.Element, starts: list[int]) -> str:
    """The number of the summary that a contributor is of, 1 the first."""
    try:
        begin = min(int(part.attrib["start"]) for part in contributor.iter("part"))
    except (KeyError, ValueError):
        raise ValueError(f"contributor {contributor.get('label')!r} has no part with a start") from None
    return str(max(1, bisect.bisect_right(starts, begin)))


def _line(text: str, problem: str) -> int:
    """The line of the unit or summary that a problem names; 1 where it names none."""
    named = re.match(r"(?:unit|summary|there is no unit) '([^']*)'", problem)
    if not named:
        return 1
    wanted = (f'"{named[1]}"', f'<scu uid="{named[1]}"')
    places = [text.find(one) for one in reversed(wanted) if one in text]
    return text.count("\n", 0, places[0]) + 1 if places else 1
