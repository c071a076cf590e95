"""Commands and servers: a failure becomes a reason that the table can print, and a server is ended by its own pid."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from case import NotMeasured

STOP_SECONDS = 30.0


def run(command: Sequence[str | Path], timeout: float, user: str | None = None, **environment: str) -> str:
    """The command's standard output. `user` runs it as that user."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            [str(part) for part in command],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=timeout,
            env=os.environ | environment,
            cwd="/",
            **_identity(user),
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"{name} did not end within {timeout:.0f} s") from None
    except OSError as error:
        raise NotMeasured(f"{name} does not start: {error}") from None
    if done.returncode != 0:
        raise NotMeasured(f"{name} failed ({done.returncode}): {_last_line(done.stderr or done.stdout)}")
    return done.stdout


class Server:
    """A server in the background; what it prints goes to a file."""

    def __init__(self, command: Sequence[str | Path], log: Path, user: str | None = None) -> None:
        self.name, self.log = Path(command[0]).name, log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd="/",
                **_identity(user),
            )

    def wait_ready(self, ready: Callable[[], bool], seconds: float) -> None:
        """Returns once `ready()` holds."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise NotMeasured(
                    f"{self.name} ended at once: {_last_line(self.log.read_text(errors='replace'))}"
                )
            if time.monotonic() > deadline:
                raise NotMeasured(f"{self.name} was not ready within {seconds:.0f} s")
            time.sleep(0.1)

    def stop(self, gently: signal.Signals = signal.SIGTERM) -> None:
        """Asks it to end, and kills it if it does not."""
        if self.process.poll() is None:
            self.process.send_signal(gently)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def apt_install(*packages: str) -> None:
    """Installs Debian's packages."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotMeasured(f"{' '.join(packages)} is not installed, and installing it takes root and apt-get")
    run(["apt-get", "update", "-qq"], 300)
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages]
    run(install, 900, DEBIAN_FRONTEND="noninteractive")


def program(name: str, package: str) -> str:
    """The path of a program in PATH, installed with its package if it is missing."""
    if not shutil.which(name):
        apt_install(package)
    if found := shutil.which(name):
        return found
    raise NotMeasured(f"{name} is not there after installing {package}")


def free_port() -> int:
    """A port of the loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Whether somebody takes connections on this port of the loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _identity(user: str | None) -> dict[str, object]:
    """The process itself changes its user, so that its pid is the server's and no wrapper's."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"
