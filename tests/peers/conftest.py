"""The scripts of bench/peers run in this process."""

import sys

import pytest

from tests.commands import ROOT

sys.path.insert(0, str(ROOT / "bench/peers"))


@pytest.fixture
def main_of(monkeypatch, tmp_path, capsys):
    """Runs a script: gives its status, what it printed and its run folder."""
    def call(module, *options):
        monkeypatch.setattr(sys, "argv", [module.__file__, "--out", str(tmp_path / "run"),
                                          *map(str, options)])
        status = module.main()
        return status, capsys.readouterr().out, tmp_path / "run"
    return call
