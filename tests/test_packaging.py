"""Data files beside the code are part of the installed packages."""

import tomllib

from tests.conftest import ROOT


def test_package_data_covers_all_data_files():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    for package in ("nmt_jax", "metrics_jax"):
        folder = ROOT / package
        files = {path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
        matched = {path for pattern in settings["package-data"][package] for path in folder.glob(pattern)}
        assert files == matched
