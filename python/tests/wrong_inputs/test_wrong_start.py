"""Command lines, variables, files and addresses that stop the start."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from server import Server
from starts import contents, crc32c, refused_start, serve
from wire import Wire, rows
from wrong import Target

CONFIGURATION, FAILED = 2, 1

#: Arguments, variables, what is said: the wrong value, where it was found, what is right.
SETTINGS = {
    "an unknown option": (["--hnsw-n", "16"], {}, ["--hnsw-n", "--hnsw-m"]),
    "an option without a value": (["--hnsw-m"], {}, ["--hnsw-m", "value"]),
    "a stray word": (["now"], {}, ["'now'"]),
    "an unknown variable": (
        [],
        {"LONGBOW_DATA_PTH": "x"},
        ["LONGBOW_DATA_PTH", "did you mean LONGBOW_DATA_PATH?"],
    ),
    "a variable like no other": ([], {"LONGBOW_COLOUR": "red"}, ["LONGBOW_COLOUR", "config"]),
    "a number below its range": (
        ["--hnsw-m", "1"],
        {},
        ["hnsw_m", '"1"', "flag --hnsw-m", "from 2 to 128"],
    ),
    "a number above its range": (["--hnsw-m", "129"], {}, ['"129"', "from 2 to 128"]),
    "a negative number": (["--index-workers", "-1"], {}, ["index_workers", '"-1"']),
    "no number": ([], {"LONGBOW_HNSW_M": "many"}, ['"many"', "variable LONGBOW_HNSW_M"]),
    "a size of an unknown unit": (["--memory-limit", "1zb"], {}, ["memory_limit", '"1zb"', "MiB"]),
    "too little memory": (["--memory-limit", "1KiB"], {}, ["memory_limit", '"1KiB"', "64MiB"]),
    "a message limit beyond bounds": (
        ["--grpc-max-recv-msg-size", "4GiB"],
        {},
        ["grpc_max_recv_msg_size", '"4GiB"'],
    ),
    "a time without a unit": (["--wal-linger", "soon"], {}, ["wal_linger", '"soon"', "200ms"]),
    "an address without a port": (
        ["--listen-addr", "127.0.0.1"],
        {},
        ["listen_addr", '"127.0.0.1"', "127.0.0.1:3000"],
    ),
    "an unknown log level": (["--log-level", "loud"], {}, ["log_level", '"loud"', "warn"]),
    "an unknown log format": (["--log-format", "xml"], {}, ["log_format", '"xml"', "json"]),
    "no boolean": (["--storage-async-fsync", "perhaps"], {}, ['"perhaps"', "true"]),
    "two names of one option": (
        [],
        {"LONGBOW_MAX_MEMORY": "1GiB", "LONGBOW_MEMORY_LIMIT": "2GiB"},
        ["memory_limit is set twice", "LONGBOW_MAX_MEMORY", "LONGBOW_MEMORY_LIMIT"],
    ),
    "what is not built": (["--ttl", "1h"], {}, ["ttl", '"1h"', "not available in this version"]),
    "an address for all": (
        ["--listen-addr", "0.0.0.0:0"],
        {},
        ["listen_addr", "0.0.0.0:0", "127.0.0.1", "--insecure"],
    ),
    "a metrics address for all": (
        ["--metrics-addr", "[::]:0"],
        {},
        ["metrics_addr", "[::]:0", "--insecure"],
    ),
    "a file that is not there": (["--config", "/nonexistent.toml"], {}, ["/nonexistent.toml"]),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_are_wrong_stop_the_start(tmp_path: Path, name: str) -> None:
    arguments, variables, words = SETTINGS[name]
    code, told = serve(tmp_path / "data", *arguments, variables=variables)
    assert code == CONFIGURATION, told
    for word in words:
        assert word in told, told
    assert not (tmp_path / "data").exists()


FILES = {
    "no TOML": ("hnsw_m = ", ["not valid TOML", "line 1"]),
    "an unknown key": ("memory_limits = 1", ["memory_limits", "did you mean memory_limit?"]),
    "a value of a wrong type": ("[hnsw_m]\nx = 1", ["hnsw_m", "whole number"]),
    "a value out of its range": ("hnsw_ef_search = 0", ["hnsw_ef_search", '"0"', "from 1 to"]),
    "an address for all": ('meta_addr = "0.0.0.0:1"', ["meta_addr", "0.0.0.0:1", "--insecure"]),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_wrong_stop_the_start(tmp_path: Path, name: str) -> None:
    text, words = FILES[name]
    file = tmp_path / "longbow.toml"
    file.write_text(text)
    # Free ports are flags, which would hide a wrong address of the file.
    arguments = ("serve", "--data-path", str(tmp_path / "data"), "--config", str(file))
    code, told = refused_start(*arguments)
    assert code == CONFIGURATION, told
    for word in (*words, str(file)):
        assert word in told, told
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("arguments", [[], ["server"], ["serve", "config"]], ids=str)
def test_a_command_that_is_none_is_refused(arguments: list[str]) -> None:
    code, told = refused_start(*arguments)
    assert code == CONFIGURATION
    assert "Usage: longbow" in told


def check_failed(told: tuple[int, str], name: str, *words: str) -> None:
    """Checks the last thing that was said: a stable code, the words, and a remedy."""
    code, text = told
    assert code == FAILED, text
    last = text.strip().splitlines()[-1]
    assert last.startswith(f"longbow: {name}: "), last
    for word in words:
        assert word in last, last
    assert "; " in last, f"no remedy in: {last}"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Target]:
    """A server of its own with rows."""
    server = Server(tmp_path / "data")
    yield Target(server).fill()
    server.kill()


def test_a_second_server_on_a_folder_is_refused(running: Target) -> None:
    path = running.server.path
    before = contents(path)
    check_failed(serve(path), "data_folder_locked", str(path), "pid ", "another folder")
    assert contents(path) == before
    running.check_alive()


@pytest.mark.parametrize("side", ["listen", "meta", "metrics"])
def test_a_port_in_use_is_refused(tmp_path: Path, side: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = serve(tmp_path / "data", f"--{side}-addr", address)
    check_failed(told, "port_in_use", address, f"LONGBOW_{side.upper()}_ADDR")
    assert not (tmp_path / "data").exists()


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    # An address for documentation (RFC 5737), which no machine has.
    told = serve(tmp_path / "data", "--listen-addr", "192.0.2.1:0", "--insecure")
    check_failed(told, "cannot_listen", "192.0.2.1:0", "LONGBOW_LISTEN_ADDR")


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("not a folder")
    check_failed(serve(file), "data_folder_refused", str(file))
    assert file.read_text() == "not a folder"


def test_a_data_folder_that_cannot_be_made_is_refused() -> None:
    check_failed(serve(Path("/proc/longbow")), "data_folder_refused", "/proc/longbow")


def test_the_checksum_of_these_tests_is_the_one_on_disk() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_good_start_says_that_it_is_ready(tmp_path: Path) -> None:
    # What the tests above rest on: nothing but the wrong input keeps the server from starting.
    server = Server(tmp_path / "data")
    wire = Wire(server.data, server.meta)
    assert wire.put("d", rows(1))[0]["rows"] == 1
    assert re.fullmatch(r"127\.0\.0\.1:\d+", server.http)
    assert server.stop() == 0
