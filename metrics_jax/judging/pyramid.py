"""Pyramids of summary content units, and pyramid scores of summaries (Nenkova and Passonneau, 2004).

Annotators mark the content that several reference summaries have in common as summary content units (SCUs); the weight
of a unit is the number of reference summaries that express it. The scores rest on annotation, so they are human
judgements, with which metrics can be compared.
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
    """A summary content unit: its label, and the names of the reference summaries that express it."""

    label: str
    contributors: frozenset[str]

    @property
    def weight(self) -> int:
        """Number of reference summaries that express the unit: its tier."""
        return len(self.contributors)


@dataclasses.dataclass(frozen=True)
class Peer:
    """Annotation of a summary: names of the pyramid's units that it expresses, and the number of other units."""

    units: frozenset[str]
    others: int = 0


@dataclasses.dataclass(frozen=True)
class Pyramid:
    """Units by name, and the names of the reference summaries they were found in.

    Raises ValueError for no units, a unit without contributors, and a contributor that is not among the references.
    """

    units: Mapping[str, Unit]
    references: frozenset[str]

    def __post_init__(self) -> None:
        if not self.units:
            raise ValueError("no units: a pyramid needs at least one")
        for name, unit in self.units.items():
            if not unit.weight:
                raise ValueError(f"unit {name!r} ({unit.label}) has no contributors, so it has no weight")
            if unknown := unit.contributors - self.references:
                raise ValueError(f"unit {name!r} has contributor {min(unknown)!r}, which is not among the references")

    @property
    def tiers(self) -> dict[int, list[str]]:
        """Names of the units of each weight, heaviest first."""
        ordered = sorted(self.units, key=lambda name: -self.units[name].weight)
        return {weight: list(names) for weight, names in itertools.groupby(ordered, lambda n: self.units[n].weight)}

    def optimal(self, size: int) -> list[str]:
        """Units of an optimal summary of `size` units: all of tier n before any of tier n - 1 (equation 2)."""
        return [name for names in self.tiers.values() for name in names][:size]

    def best(self, size: int) -> int:
        """Max, the sum of weights of an optimal summary of `size` units."""
        return sum(self.units[name].weight for name in self.optimal(size))

    @property
    def mean_size(self) -> float:
        """Mean number of units per reference summary."""
        return sum(unit.weight for unit in self.units.values()) / len(self.references)

    def weight(self, peer: Peer) -> int:
        """D, the sum of weights of the units that a summary expresses; raises ValueError for an unknown unit."""
        if unknown := peer.units - self.units.keys():
            raise ValueError(f"there is no unit {min(unknown)!r}")
        return sum(self.units[name].weight for name in peer.units)

    def original(self, peer: Peer) -> float:
        """Original score, 0 to 1: D / Max for as many units as the summary has. It resembles precision.

        Units that are not in the pyramid count towards the number of units. A summary without units scores 0.
        """
        size = len(peer.units) + peer.others
        return self.weight(peer) / self.best(size) if size else 0.0

    def modified(self, peer: Peer) -> float:
        """Modified score: D / Max for the mean number of units of a reference, rounded; like recall, may exceed 1."""
        return self.weight(peer) / self.best(max(1, int(self.mean_size + 0.5)))


def read_pyramid(path: str | os.PathLike[str]) -> tuple[Pyramid, dict[str, Peer]]:
    """Read a pyramid, and annotations of other summaries by name, from a file.

    JSON: {"references": ["A", …], "units": {"1": {"label": "…", "contributors": ["A", …]}}, "summaries": {"system":
    {"units": ["1", …], "others": 2}}}, where "references" and "summaries" are optional; contributors may also be an
    object with the names as keys. XML of DUCView: .pyr, a pyramid, and .pan, a pyramid with one summary, which is named
    after the file. Raises ValueError `FILE: …` for any other file, and `FILE:LINE: …` for an invalid unit.
    """
    path = pathlib.Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse_pyramid(text, path)


def parse_pyramid(text: str, path: str | os.PathLike[str]) -> tuple[Pyramid, dict[str, Peer]]:
    """As `read_pyramid`, from the text of the file `path`."""
    path = pathlib.Path(path)
    try:
        return _parse_json(text) if text.lstrip().startswith("{") else _parse_ducview(text, path.stem)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON ({error.msg})") from None
    except xml.etree.ElementTree.ParseError as error:
        raise ValueError(f"{path}:{error.position[0]}: neither a JSON object nor DUCView's XML ({error})") from None
    except RecursionError:
        raise ValueError(f"{path}:1: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}:{_find_line(text, str(error))}: {error}") from None


def _parse_json(text: str) -> tuple[Pyramid, dict[str, Peer]]:
    content = json.loads(text)
    units = {}
    for name, unit in _object(content, "units").items():
        if not isinstance(unit, dict) or not isinstance(unit.get("contributors"), list | dict):
            raise ValueError(f'unit {name!r} needs "contributors", a list of reference summaries')
        units[name] = Unit(str(unit.get("label", name)), frozenset(map(str, unit["contributors"])))
    references = content.get("references")
    if references is not None and not isinstance(references, list):
        raise ValueError('"references" must be a list of names')
    names = map(str, references or itertools.chain(*(unit.contributors for unit in units.values())))
    pyramid = Pyramid(units, frozenset(names))
    peers = {}
    for name, peer in (_object(content, "summaries") if "summaries" in content else {}).items():
        if not isinstance(peer, dict) or not isinstance(peer.get("units"), list):
            raise ValueError(f'summary {name!r} needs "units", a list of names')
        others = peer.get("others", 0)
        if type(others) is not int or others < 0:
            raise ValueError(f'summary {name!r}: "others" must be a whole number, 0 or more')
        peers[name] = Peer(frozenset(map(str, peer["units"])), others)
        pyramid.weight(peers[name])
    return pyramid, peers


def _object(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    if not isinstance(content.get(key), dict):
        raise ValueError(f'the file needs "{key}", an object')
    return content[key]


def _parse_ducview(text: str, name: str) -> tuple[Pyramid, dict[str, Peer]]:
    """Parse a <pyramid>, and in a .pan file the <annotation> of a summary, which has a <peerscu> for every unit.

    The reference summaries are concatenated in the pyramid's <text>. Each begins at a match of the regular expression
    in <startDocumentRegEx>; a contributor belongs to the one that contains the start of its first <part>. Unit 0 of a
    summary holds the contributors that are in no unit of the pyramid.
    """
    root = xml.etree.ElementTree.fromstring(text)
    top = root if root.tag == "pyramid" and root.find("scu") is not None else root.find(".//pyramid")
    if top is None:
        raise ValueError("the file has no <pyramid>")
    starts = _find_starts(top)
    units = {}
    for scu in top.findall("scu"):
        uid = scu.get("uid", "")
        contributors = (_find_reference(contributor, starts) for contributor in scu.findall("contributor"))
        units[uid] = Unit(scu.get("label", uid), frozenset(contributors))
    pyramid = Pyramid(units, frozenset(map(str, range(1, len(starts) + 1))))
    annotated = root.findall(".//peerscu")
    if not annotated:
        return pyramid, {}
    counts = {scu.get("uid", ""): len(scu.findall("contributor")) for scu in annotated}
    peer = Peer(frozenset(uid for uid, count in counts.items() if count and uid != "0"), counts.get("0", 0))
    pyramid.weight(peer)
    return pyramid, {name: peer}


def _find_starts(pyramid: xml.etree.ElementTree.Element) -> list[int]:
    """The positions, in characters, where the reference summaries begin."""
    lines = [line.text or "" for line in pyramid.findall("text/line")]
    pattern = pyramid.findtext("startDocumentRegEx") or ""
    try:
        found = [match.start() for match in re.finditer(pattern, "\n".join(lines))] if pattern else []
    except re.error as error:
        raise ValueError(f"startDocumentRegEx {pattern!r} is not a regular expression: {error}") from None
    if not found:
        raise ValueError(
            "startDocumentRegEx matches no reference summary in <text>, so that contributors have no summary"
        )
    return found


def _find_reference(contributor: xml.etree.ElementTree.Element, starts: list[int]) -> str:
    """The number, from 1, of the reference summary that a contributor belongs to."""
    try:
        begin = min(int(part.attrib["start"]) for part in contributor.iter("part"))
    except (KeyError, ValueError):
        raise ValueError(f"contributor {contributor.get('label')!r} has no part with a start") from None
    return str(max(1, bisect.bisect_right(starts, begin)))


def _find_line(text: str, message: str) -> int:
    """The line of the unit or summary that an error message names; 1 if it names none."""
    named = re.match(r"(?:unit|summary|there is no unit) '([^']*)'", message)
    if not named:
        return 1
    positions = [text.find(key) for key in (f'<scu uid="{named[1]}"', f'"{named[1]}"') if key in text]
    return text.count("\n", 0, positions[0]) + 1 if positions else 1
