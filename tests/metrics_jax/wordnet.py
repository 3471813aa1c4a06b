"""A WordNet database of a few words, written in the format of Princeton's files."""

import gzip
import pathlib
from collections.abc import Mapping, Sequence

SYNSETS = {
    "noun": [
        ["car", "auto", "automobile", "motor_car"],
        ["car", "railway_car", "cable_car"],
        ["bicycle", "bike", "cycle"],
        ["America", "USA", "United_States"],
        ["boy", "lad"],
        ["axis"],
        ["ax"],
    ],
    "verb": [["run", "jog"], ["be", "exist"], ["offer"], ["fly", "wing"]],
    "adj": [["big", "large(a)"], ["asleep(p)", "dormant"]],
    "adv": [["fast", "quickly"]],
}
EXCEPTIONS = {"noun": ["axes ax", "axes axis"], "verb": ["was be", "ran run", "flies fly"], "adj": [], "adv": []}
LETTERS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}


def write(
    folder: pathlib.Path,
    synsets: Mapping[str, Sequence[Sequence[str]]] = SYNSETS,
    exceptions: Mapping[str, Sequence[str]] = EXCEPTIONS,
    packed: bool = False,
) -> pathlib.Path:
    """Write data, index and exception files, gzipped if wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, letter in LETTERS.items():
        data = "  1 A licence line, which begins with a blank.  \n"
        offsets: dict[str, list[int]] = {}
        for words in synsets[part]:
            for word in words:
                offsets.setdefault(word.partition("(")[0].lower(), []).append(len(data))
            members = " ".join(f"{word} 0" for word in words)
            data += f"{len(data):08d} 03 {letter} {len(words):02x} {members} 001 @ 00000001 {letter} 0000 | a gloss  \n"
        index = "  1 A licence line, which begins with a blank.  \n"
        for word, places in sorted(offsets.items()):
            listed = " ".join(f"{place:08d}" for place in places)
            index += f"{word} {letter} {len(places)} 1 @ {len(places)} 0 {listed}  \n"
        rows = "".join(f"{row}\n" for row in exceptions[part])
        for name, text in ((f"data.{part}", data), (f"index.{part}", index), (f"{part}.exc", rows)):
            content = text.encode()
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)
    return folder
