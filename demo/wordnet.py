"""WordNet's own files, read: every synset with its words, its definition, and how common it is.

A synset is one meaning: a set of words (lemmas) that share a definition. The file formats are those of WordNet 3.0's
manual pages wndb(5WN), cntlist(5WN) and lexnames(5WN).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FILES = {"noun": "data.noun", "verb": "data.verb", "adjective": "data.adj"}
POS_DIGIT = {"noun": 1, "verb": 2, "adjective": 3}
SENSE_TYPE = {"n": 1, "v": 2, "a": 3, "s": 5}
LEXFILES = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
    "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
    "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
    "noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition "
    "verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social "
    "verb.stative verb.weather adj.ppl"
).split()
# A dictionary that is shown to anyone leaves out what the glosses themselves mark as abuse.
ABUSE = re.compile(r"\bslur|offensive (term|name|word)|disparaging|derogatory|obscen|vulgar")


@dataclass
class Synset:
    """One meaning. `uses` counts it in WordNet's sense-tagged texts; `first_for` are the words it is the main sense of."""

    id: int
    pos: str
    lexfile: str
    lemmas: list[str]
    gloss: str
    proper: bool
    uses: int = 0
    first_for: set[str] = field(default_factory=set)


def definition(gloss: str) -> str:
    """The gloss without its quoted examples, which would give the word away."""
    return gloss.split('"')[0].strip().rstrip(";:, ")


def parse_line(line: str, pos: str) -> tuple[Synset, list[tuple]]:
    """A line of a data file: the synset, and the keys under which the counts name it."""
    head, gloss = line.split(" | ", 1)
    fields = head.split()
    offset, lexfile, kind, words = int(fields[0]), int(fields[1]), fields[2], int(fields[3], 16)
    lemmas, keys = [], []
    for n in range(words):
        lemma = re.sub(r"\([a-z]+\)$", "", fields[4 + 2 * n])
        lemmas.append(lemma.replace("_", " "))
        keys.append((lemma.lower(), SENSE_TYPE[kind], lexfile, int(fields[5 + 2 * n], 16)))
    pointers = fields[5 + 2 * words :: 4]
    proper = "@i" in pointers or all(lemma[0].isupper() for lemma in lemmas)
    number = POS_DIGIT[pos] * 100_000_000 + offset
    return Synset(number, pos, LEXFILES[lexfile], lemmas, definition(gloss), proper), keys


def read(folder: Path) -> dict[int, Synset]:
    """Every noun, verb and adjective meaning, by id (the part of speech's digit, then the file offset)."""
    synsets: dict[int, Synset] = {}
    by_key: dict[tuple, Synset] = {}
    for pos, name in FILES.items():
        for line in lines(folder / name):
            synset, keys = parse_line(line, pos)
            synsets[synset.id] = synset
            by_key.update((key, synset) for key in keys)
    for line in lines(folder / "cntlist.rev"):
        sense, _number, count = line.split()
        lemma, place = sense.split("%")
        synset = by_key.get((lemma, *map(int, place.split(":")[:3])))
        if synset:
            synset.uses += int(count)
    for pos in FILES:
        for line in lines(folder / FILES[pos].replace("data", "index")):
            fields = line.split()
            offset = int(fields[6 + int(fields[3])])
            synsets[POS_DIGIT[pos] * 100_000_000 + offset].first_for.add(fields[0].replace("_", " "))
    return synsets


def lines(path: Path) -> list[str]:
    """The file's lines without the licence that heads some of them (its lines begin with two blanks)."""
    return [line for line in path.read_text(encoding="latin-1").splitlines() if line and not line.startswith("  ")]


def licence(folder: Path) -> str:
    """The licence as it heads every data file, without its line numbers."""
    head = (folder / "data.noun").read_text(encoding="latin-1").splitlines()
    return "\n".join(re.sub(r"^\s+\d+ ", "", line).rstrip() for line in head if line.startswith("  ")) + "\n"


def choose(synsets: dict[int, Synset], vocabulary: set[str], quota: dict[str, int], must: set[int]) -> list[Synset]:
    """The most common meanings of each part of speech by id, proper names left out, those in `must` always in.

    Common means: the main sense of some word, used often in WordNet's tagged texts. Those texts are small, so a word
    that `vocabulary` (the model's 30,000 word pieces) keeps whole counts as three uses more.
    """
    chosen = []
    for pos, count in quota.items():
        ranked = []
        for synset in synsets.values():
            if synset.pos != pos or not synset.gloss:
                continue
            plain = synset.first_for and not synset.proper and not ABUSE.search(synset.gloss)
            if synset.id in must:
                ranked.append((0, 0, synset.id))
            elif plain:
                whole = any(len(word) > 2 and word in vocabulary for word in synset.first_for)
                ranked.append((1, -(synset.uses + 3 * whole), synset.id))
        chosen += [synsets[number] for _, _, number in sorted(ranked)[:count]]
    return sorted(chosen, key=lambda synset: synset.id)
