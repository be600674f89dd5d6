"""Runs programs on two workers of this machine; started by `test_workers.py`.

TensorFlow is imported once, and every worker forked before it has started its threads.
"""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import keras

from experiments.kit import main as binaries
from experiments.mi_vae.__main__ import BINARY
from rlm_tf.distribution import strategy
from tests.training.toy import InterruptAt, train
from tests.workers.cases import CASES, trained

WORKERS = 2


def free_ports(number: int) -> list[int]:
    """Returns ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start(
    program: Callable[[int], Any], result: str, number: int = WORKERS
) -> list[int]:
    """Forks a process for each of some workers, which runs `program(index)`.

    What the program returns is in `result`-INDEX.pickle, what it prints or how it fails
    in `result`-INDEX.txt.

    Returns:
        The numbers of the processes.
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(WORKERS)]
    children = []
    for index in range(number):
        child = os.fork()
        if child == 0:
            _work(program, index, addresses, f"{result}-{index}")
        children.append(child)
    return children


def _work(
    program: Callable[[int], Any], index: int, addresses: list[str], result: str
) -> None:
    status = 1
    try:
        output = os.open(f"{result}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        task = {"type": "worker", "index": index}
        os.environ["TF_CONFIG"] = json.dumps(
            {"cluster": {"worker": addresses}, "task": task}
        )
        try:
            outcome = program(index)
        except ConnectionError as error:
            outcome = {"lost": str(error)}
        outcome["ended"] = time.time()
        pathlib.Path(f"{result}.pickle").write_bytes(pickle.dumps(outcome))
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(status)


def wait(children: list[int], seconds: float = 120.0) -> list[int]:
    """Returns how the processes ended; kills those that take too long."""
    statuses: dict[int, int] = {}
    end = time.time() + seconds
    while len(statuses) < len(children):
        for child in children:
            if child not in statuses:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    statuses[child] = os.waitstatus_to_exitcode(status)
        if time.time() > end:
            for child in set(children) - set(statuses):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.05)
    return [statuses[child] for child in children]


def all_cases(index: int) -> dict[str, Any]:
    """Trains every case."""
    workers = strategy("multi_worker_mirrored")
    return {name: trained(case, workers) for name, case in CASES.items()}


def resumable(folder: pathlib.Path, die: int | None) -> Callable[[int], Any]:
    """Returns a program with checkpoints after each step, of which one worker dies."""

    def program(index: int) -> dict[str, Any]:
        extra: tuple[keras.callbacks.Callback, ...] = ()
        if index == die:
            extra = (InterruptAt(9, lambda: _die(folder)),)
        found = train(
            folder,
            strategy=strategy("multi_worker_mirrored"),
            extra=extra,
            every_steps=2,
        )
        kept = ("arrays", "history", "epochs", "log", "first")
        return {name: found[name] for name in kept}

    return program


def binary(arguments: list[str]) -> Callable[[int], Any]:
    """Returns a program that runs `experiments.mi_vae`."""

    def program(_: int) -> dict[str, Any]:
        sys.argv = ["mi_vae", "--preset=smoke", *arguments]
        try:
            binaries.start(BINARY)
        except SystemExit as end:
            return {"code": end.code}
        return {"code": "went on"}

    return program


def _die(folder: pathlib.Path) -> None:
    (folder / "died").write_text(str(time.time()))
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def main(folder: pathlib.Path) -> None:
    """Runs everything; statuses of the workers are in statuses.json."""
    statuses: dict[str, list[int]] = {}

    def run(name: str, program: Callable[[int], Any], number: int = WORKERS) -> None:
        statuses[name] = wait(start(program, str(folder / name), number))

    run("cases", all_cases)
    run("whole", resumable(folder / "whole", None))
    for die in range(WORKERS):
        own = folder / f"killed_{die}"
        run(f"death_{die}", resumable(own, die))
        run(f"resumed_{die}", resumable(own, None))
    several = "--strategy=multi_worker_mirrored"
    run("alone", binary([f"--output_dir={folder}/alone"]), number=1)
    run("led", binary([several, f"--output_dir={folder}/led"]))
    run("again", binary([several, f"--output_dir={folder}/led", "--seeds=1,2"]))
    run("search", binary([several, f"--output_dir={folder}/search", "--trials=2"]))
    (folder / "statuses.json").write_text(json.dumps(statuses))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
