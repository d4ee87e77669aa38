"""The images of the documentation: small, and all of them drawn by images.py."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"


def test_images_are_palettes_of_few_bytes():
    found = list(IMAGES.glob("*.png"))
    assert found
    for path in found:
        content = path.read_bytes()
        assert len(content) < 250_000, path.name
        assert content[25] == 3, path.name  # the colour type of a palette


def test_every_image_is_drawn_by_the_script():
    named = re.findall(r'Shot\("([a-z-]+)"', Path(__file__).with_name("images.py").read_text())
    assert sorted(named) == sorted(path.stem for path in IMAGES.iterdir())


def test_the_readme_shows_the_report():
    assert "](docs/images/report.png)" in (ROOT / "README.md").read_text()
