"""What the wheel holds, by the rules of setup.cfg that setuptools follows."""

from __future__ import annotations

import configparser
import pathlib

from setuptools import find_packages

ROOT = pathlib.Path(__file__).parents[1]


def _settings() -> configparser.ConfigParser:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", "utf-8")
    return settings


def test_it_holds_the_library_alone_and_all_of_it():
    include = _settings()["options.packages.find"]["include"].split()
    folders = {file.parent for file in (ROOT / "rlm_tf").rglob("*.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert set(find_packages(str(ROOT), include=include)) == names


def test_it_says_that_it_has_types():
    data = _settings()["options.package_data"]["rlm_tf"].split()
    files = {file.name for file in (ROOT / "rlm_tf").glob("*") if file.is_file()}
    assert {file for file in files if not file.endswith(".py")} == {*data}
