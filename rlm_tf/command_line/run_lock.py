"""One process a run: two that write into one folder would mix what they write."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import time
from collections.abc import Iterator
from typing import Any

_BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id")
# Seconds after which a file without a readable owner is what a kill has left.
_UNFINISHED = 10.0


@contextlib.contextmanager
def held(folder: pathlib.Path, flag: str = "--output_dir") -> Iterator[None]:
    """Holds the lock of a run's folder, the file `.NAME.lock` beside it.

    The lock is one of the operating system (`flock`) and ends with its process, however
    that ends: a file that a kill has left is no obstacle. Where the file system has no
    such locks, a second file names the process that holds it, with the moments at which
    process and machine were started; if either is gone, so is the lock.

    Args:
        folder: Of the run; need not be there.
        flag: That names the folder, for the message.

    Raises:
        BlockingIOError: If another process (or this one) holds it.
    """
    path = folder.with_name(f".{folder.name}.lock")
    owned = path.with_name(f"{path.name}.owner")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, locked = _lock_file(path, folder, flag)
    try:
        if not locked:
            _own_file(owned, folder, flag)
        try:
            yield
        finally:
            if not locked:
                owned.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _lock_file(path: pathlib.Path, folder: pathlib.Path, flag: str) -> tuple[int, bool]:
    """Returns an open file, and whether it is locked: some file systems cannot."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError as error:
            # Its parent is there: some file systems take no files, and say this.
            raise FileNotFoundError(f"{flag}={folder} cannot be written.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _read(path)
            os.close(descriptor)
            raise _taken(folder, flag, owner) from None
        except OSError:
            return descriptor, False
        # The one who held it may have removed the file before the lock was ours.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, json.dumps(_myself()).encode())
                return descriptor, True
        os.close(descriptor)


def _own_file(path: pathlib.Path, folder: pathlib.Path, flag: str) -> None:
    """Creates the file that names this process; removes that of one that is gone."""
    while True:
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump(_myself(), file)
            return
        except FileExistsError:
            owner = _read(path)
            if _may_live(owner, path):
                raise _taken(folder, flag, owner, path) from None
            path.unlink(missing_ok=True)


def _taken(
    folder: pathlib.Path,
    flag: str,
    owner: dict[str, Any],
    path: pathlib.Path | None = None,
) -> BlockingIOError:
    who = f"process {owner.get('pid')} on {owner.get('host')}" if owner else "a process"
    remedy = f" If it is gone, remove {path}." if path else ""
    return BlockingIOError(
        f"{folder} is being written by {who}. Wait for it, or use another {flag}."
        f"{remedy}"
    )


def _myself() -> dict[str, Any]:
    """Returns what tells this process from all others, of earlier times, too."""
    return {
        "host": socket.gethostname(),
        "boot": _boot(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def _may_live(owner: dict[str, Any], path: pathlib.Path) -> bool:
    """Whether the process that a file names may still run."""
    if not owner:
        with contextlib.suppress(FileNotFoundError):
            return time.time() - path.stat().st_mtime < _UNFINISHED
        return False
    if owner["host"] != socket.gethostname():
        return True
    return owner["boot"] == _boot() and owner["started"] == _started(owner["pid"])


def _read(path: pathlib.Path) -> dict[str, Any]:
    """Returns who holds a lock; nothing if the file does not say."""
    try:
        owner = json.loads(path.read_bytes())
        return {key: owner[key] for key in ("host", "boot", "pid", "started")}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _boot() -> str:
    """Returns what is another at every start of the machine."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """Returns when a process was started, in the kernel's ticks; None: there is none.

    The same number may be given to another process later.
    """
    try:
        # The name, in parentheses, may hold blanks.
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return None
    return int(fields.split()[19])
