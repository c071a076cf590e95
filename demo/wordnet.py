"""WordNet's own files, read: every synset with its words, its definition, and how common it is.

A synset is one meaning: a set of words (lemmas) that share a definition. The file formats are
those of WordNet 3.0's manual pages wndb(5WN), cntlist(5WN) and lexnames(5WN).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FILES = {"noun": "data.noun", "verb": "data.verb", "adjective": "data.adj"}
POS_DIGIT = {"noun": 1, "verb": 2, "adjective": 3}
SENSE_TYPE = {"n": 1, "v": 2, "a": 3, "s": 5}
LEXFILES = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute "
    "noun.body noun.cognition noun.communication noun.event noun.feeling noun.food noun.group "
    "noun.location noun.motive noun.object noun.person noun.phenomenon noun.plant "
    "noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
    "noun.substance noun.time verb.body verb.change verb.cognition verb.communication "
    "verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion "
    "verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl"
).split()
# A dictionary that is shown to anyone leaves out what WordNet itself marks as abuse, in a gloss or
# by a pointer that says how a word is used: as an obscenity, a disparagement, an ethnic slur. The
# numbers are offsets in data.noun.
ABUSE = re.compile(r"\bslur|offensive (term|name|word)|disparaging|derogatory|obscen|vulgar")
OBSCENITY = "07124340"
ABUSE_POINTERS = {OBSCENITY, "06717170", "06718862"}


@dataclass
class Synset:
    """One meaning.

    `uses` counts it in WordNet's sense-tagged texts; it is the main sense of the words `first_for`.
    """

    id: int
    pos: str
    lexfile: str
    lemmas: list[str]
    gloss: str
    proper: bool
    usage: set[str]
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
    pointers = list(zip(fields[5 + 2 * words :: 4], fields[6 + 2 * words :: 4]))
    proper = any(kind == "@i" for kind, _ in pointers) or all(
        lemma[0].isupper() for lemma in lemmas
    )
    usage = {target for kind, target in pointers if kind == ";u"}
    number = POS_DIGIT[pos] * 100_000_000 + offset
    return Synset(number, pos, LEXFILES[lexfile], lemmas, definition(gloss), proper, usage), keys


def read(folder: Path) -> dict[int, Synset]:
    """Every noun, verb and adjective meaning, by id: a digit for the part of speech, the offset."""
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
        # Adverbs are counted too, and are not read here.
        counted = by_key.get((lemma, *map(int, place.split(":")[:3])))
        if counted:
            counted.uses += int(count)
    for pos in FILES:
        for line in lines(folder / FILES[pos].replace("data", "index")):
            fields = line.split()
            offset = int(fields[6 + int(fields[3])])
            synsets[POS_DIGIT[pos] * 100_000_000 + offset].first_for.add(
                fields[0].replace("_", " ")
            )
    drop_obscene_words(synsets)
    return synsets


def drop_obscene_words(synsets: dict[int, Synset]) -> None:
    """Takes words whose main meaning is obscene, and phrases with them, out of all meanings."""
    obscene = {
        word
        for synset in synsets.values()
        if OBSCENITY in synset.usage
        for word in synset.first_for
    }
    for synset in synsets.values():
        clean = [
            lemma
            for lemma in synset.lemmas
            if obscene.isdisjoint({lemma, *re.split(r"[ -]", lemma)})
        ]
        synset.lemmas = clean
        synset.first_for &= {lemma.lower() for lemma in clean}


def lines(path: Path) -> list[str]:
    """The file's lines without the licence at its head, whose lines begin with two blanks."""
    return [
        line
        for line in path.read_text(encoding="latin-1").splitlines()
        if line and not line.startswith("  ")
    ]


def licence(folder: Path) -> str:
    """The licence as it heads every data file, without its line numbers."""
    head = (folder / "data.noun").read_text(encoding="latin-1").splitlines()
    return (
        "\n".join(re.sub(r"^\s+\d+ ", "", line).rstrip() for line in head if line.startswith("  "))
        + "\n"
    )


def choose(
    synsets: dict[int, Synset], vocabulary: set[str], quota: dict[str, int], must: set[int]
) -> list[Synset]:
    """The most common meanings of each part of speech, by id; those in `must` are always in.

    Common means: the main sense of some word, used often in WordNet's tagged texts. Those texts are
    small, so a word that `vocabulary` (the model's 30,000 word pieces) keeps whole counts as three
    uses more. Proper names are left out.
    """
    chosen = []
    for pos, count in quota.items():
        ranked = []
        for synset in synsets.values():
            if synset.pos != pos or not synset.gloss or not synset.lemmas:
                continue
            abuse = ABUSE.search(synset.gloss) or not ABUSE_POINTERS.isdisjoint(synset.usage)
            plain = synset.first_for and not synset.proper and not abuse
            if synset.id in must:
                ranked.append((0, 0, synset.id))
            elif plain:
                whole = any(len(word) > 2 and word in vocabulary for word in synset.first_for)
                ranked.append((1, -(synset.uses + 3 * whole), synset.id))
        chosen += [synsets[number] for _, _, number in sorted(ranked)[:count]]
    return sorted(chosen, key=lambda synset: synset.id)
