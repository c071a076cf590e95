"""Data folders that are damaged or newer: refused by file and offset, and nothing changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from server import Server
from starts import contents, crc32c, serve
from test_wrong_start import check_failed
from wire import Wire, rows

#: Small, so that the log has several files.
SEGMENTS = ("--wal-segment-size", "64KiB")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a server left: a checkpoint with dead rows, and a log after it."""
    path = tmp_path_factory.mktemp("folder") / "data"
    server = Server(path, *SEGMENTS)
    wire = Wire(server.data, server.meta)
    wire.put("d", *[rows(500, n * 500) for n in range(4)])
    wire.act("delete", {"dataset": "d", "ids": [1, 2]})
    wire.act("ForceSnapshot")
    for n in range(4, 12):
        wire.put("d", rows(500, n * 500))
    wire.act("delete", {"dataset": "d", "ids": [3, 4]})
    assert server.stop() == 0
    return path


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    return Path(shutil.copytree(good, tmp_path / "data"))


def check_good(path: Path) -> None:
    """A server starts on the folder and has all of its rows."""
    server = Server(path, *SEGMENTS)
    wire = Wire(server.data, server.meta)
    assert sorted(wire.get("d")["id"].to_pylist()) == [0, *range(5, 6000)]
    assert wire.search("d", vector=[777.0, 1.0], k=1)["id"].to_pylist() == [777]
    assert wire.put("d", rows(1, 9000))[0]["rows"] == 1
    assert server.stop() == 0


def test_the_folder_itself_is_good(folder: Path) -> None:
    check_good(folder)


def only(folder: Path, pattern: str) -> Path:
    (file,) = folder.glob(pattern)
    return file


def manifest(folder: Path) -> Path:
    return folder / "MANIFEST"


def rows_file(folder: Path) -> Path:
    return only(folder, "datasets/*/rows-*.arrow")


def dead_file(folder: Path) -> Path:
    return only(folder, "datasets/*/dead-*.roaring")


def largest_log(folder: Path) -> Path:
    return max(folder.glob("log/*.log"), key=lambda file: file.stat().st_size)


def middle_log(folder: Path) -> Path:
    files = sorted(folder.glob("log/*.log"))
    assert len(files) > 2
    return files[len(files) // 2]


def flip(file: Path, at: int) -> None:
    """Changes one bit; ``at`` counts from the end if it is below zero."""
    data = bytearray(file.read_bytes())
    data[at] ^= 0x10
    file.write_bytes(bytes(data))


def flipped(at: int) -> Callable[[Path], None]:
    return lambda file: flip(file, at)


def middle(file: Path) -> None:
    flip(file, file.stat().st_size // 2)


def shorter(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def removed(file: Path) -> None:
    file.unlink()


@dataclass(frozen=True)
class Damage:
    """What happens to which file, the stable code, and what else is said."""

    name: str
    file: Callable[[Path], Path]
    happens: Callable[[Path], None]
    code: str
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


DAMAGED = "data_damaged"
DAMAGES = [
    Damage("manifest: magic", manifest, flipped(0), DAMAGED, ("offset 0",)),
    Damage("manifest: checksum", manifest, flipped(12), DAMAGED, ("checksum", "offset 0")),
    Damage("manifest: middle", manifest, middle, DAMAGED, ("checksum", "offset 0")),
    Damage("manifest: last byte", manifest, flipped(-1), DAMAGED, ("checksum", "offset 0")),
    Damage("manifest: too short", manifest, shorter, DAMAGED, ("bytes", "expected")),
    Damage("manifest: too long", manifest, longer, DAMAGED, ("bytes", "expected")),
    Damage("manifest: empty", manifest, emptied, DAMAGED, ("offset",)),
    Damage("manifest: gone", manifest, removed, DAMAGED, ("missing", "log")),
    Damage("rows: first byte", rows_file, flipped(0), DAMAGED, ("offset 0",)),
    Damage("rows: middle", rows_file, middle, DAMAGED, ("offset", "checksum")),
    Damage("rows: last byte", rows_file, flipped(-1), DAMAGED, ("offset",)),
    Damage("rows: too short", rows_file, shorter, DAMAGED, ("bytes", "expected")),
    Damage("rows: too long", rows_file, longer, DAMAGED, ("bytes", "expected")),
    Damage("rows: gone", rows_file, removed, DAMAGED, ("No such file",)),
    Damage("dead rows: middle", dead_file, middle, DAMAGED, ("checksum",)),
    Damage("dead rows: gone", dead_file, removed, DAMAGED, ("No such file",)),
    Damage("log: header of the file", largest_log, flipped(16), DAMAGED, ("offset 0",)),
    Damage("log: header of a frame", largest_log, flipped(38), DAMAGED, ("offset 32",)),
    Damage("log: rows of a frame", largest_log, flipped(400), DAMAGED, ("offset", "payload")),
    Damage("log: middle", largest_log, middle, DAMAGED, ("offset", "index")),
    Damage("log: a file gone", middle_log, removed, DAMAGED, ("offset 0", "begins at index")),
]


def check_untouched(folder: Path, code: str, *words: str) -> None:
    """A start is refused with these words, twice the same, and no byte of the folder changes."""
    before = contents(folder)
    for _ in range(2):
        check_failed(serve(folder, *SEGMENTS), code, *words)
    assert contents(folder) == before


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_damage_is_refused_and_repaired_by_the_old_bytes(folder: Path, damage: Damage) -> None:
    file = damage.file(folder)
    saved = file.read_bytes()
    damage.happens(file)
    # Whatever took a file away, the file that is named is the one that shows it.
    named = () if damage.happens is removed else (str(file),)
    check_untouched(folder, damage.code, *named, *damage.words)
    file.write_bytes(saved)
    check_good(folder)


def newer_manifest(folder: Path) -> Path:
    """Writes version 4 into the manifest, with a checksum that is right for it."""
    file = manifest(folder)
    data = file.read_bytes()
    version, length, payload = (4).to_bytes(4, "little"), data[16:24], data[24:]
    crc = crc32c(version + length + payload).to_bytes(4, "little")
    file.write_bytes(data[:8] + version + crc + length + payload)
    return file


def newer_log(folder: Path) -> Path:
    """Writes version 3 into a file of the log, with a checksum that is right for it."""
    file = largest_log(folder)
    data = file.read_bytes()
    version, first = (3).to_bytes(4, "little"), data[16:24]
    crc = crc32c(data[:8] + version + first).to_bytes(4, "little")
    file.write_bytes(data[:8] + version + crc + first + data[24:])
    return file


@pytest.mark.parametrize(("make", "known"), [(newer_manifest, 3), (newer_log, 2)])
def test_a_newer_version_is_refused_and_not_called_damage(
    folder: Path, make: Callable[[Path], Path], known: int
) -> None:
    file = make(folder)
    check_untouched(folder, "newer_version", str(file), str(known + 1), str(known))


def test_the_bytes_of_these_tests_are_those_of_the_format(folder: Path) -> None:
    # A version that is known, written in the same way, is the file as it was.
    data = manifest(folder).read_bytes()
    crc = crc32c(data[8:12] + data[16:24] + data[24:]).to_bytes(4, "little")
    assert data[12:16] == crc
    data = largest_log(folder).read_bytes()
    assert data[12:16] == crc32c(data[:12] + data[16:24]).to_bytes(4, "little")


def test_a_damaged_graph_is_built_anew_and_nothing_is_lost(folder: Path) -> None:
    middle(only(folder, "datasets/*/graph-*.hnsw"))
    check_good(folder)


def test_rows_of_a_checkpoint_are_never_taken_for_leftovers(folder: Path) -> None:
    # Without manifest and log the files of rows look like those that a failed checkpoint left.
    manifest(folder).unlink()
    shutil.rmtree(folder / "log")
    check_untouched(folder, DAMAGED, str(folder / "log"), "no log")
    assert not (folder / "log").exists()


def test_a_log_that_is_gone_is_not_an_empty_one(folder: Path) -> None:
    saved = shutil.move(folder / "log", folder.parent / "saved")
    check_untouched(folder, DAMAGED, str(folder / "log"), "no log")
    (folder / "log").mkdir()
    check_untouched(folder, DAMAGED, str(folder / "log"), "no log")
    (folder / "log").rmdir()
    shutil.move(saved, folder / "log")
    check_good(folder)


def test_other_files_in_the_folder_do_not_matter(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "log" / "notes.txt").write_text("mine")
    check_good(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "log" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("LOCK", "disk_refused", "no lock"),
        ("log/00000000000000000001.log", DAMAGED, "none of a log"),
    ],
)
def test_files_of_others_are_left_as_they_are(
    tmp_path: Path, name: str, code: str, words: str
) -> None:
    file = tmp_path / "data" / name
    file.parent.mkdir(parents=True)
    file.write_text("a diary, by chance of this name")
    check_failed(serve(tmp_path / "data", *SEGMENTS), code, str(file), words)
    assert file.read_text() == "a diary, by chance of this name"
