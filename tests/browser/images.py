"""Draws the images of docs/images again: reports as a browser shows them, with few colours.

The sample report, the timeline of a composed job of 1,024 ranks in which one rank fails, and a
run beside its baseline. `make images` runs it; it needs the `dev` extra and a chromium.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conftest import chromium
from PIL import Image
from playwright.sync_api import sync_playwright

from hcp_logscan import demo_run, scan

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from compose import Job, Line, compose, lines_of  # noqa: E402  # found beside this folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

RANKS, CULPRIT = 1024, 517
MAX_BYTES: Final = 250_000
MARGIN: Final = 20


@dataclass(frozen=True)
class Shot:
    """One image: of the first screen, or of one part of a page."""

    name: str
    page: str
    width: int
    scheme: str
    part: str = ""
    "Selector; empty for the first screen."

    height: int = 900
    scale: float = 1


SHOTS: Final = (
    Shot("report", "sample", 1440, "light", height=1100),
    Shot("report-dark-phone", "sample", 390, "dark", height=844, scale=2),
    Shot("timeline", "cascade", 1080, "light", part="#story"),
    Shot("baseline", "baseline", 1080, "light", part="#course"),
)


def cascade(folder: Path) -> Path:
    """A thousand ranks wait for one whose data loader failed, until they time out."""
    job = Job(
        world_size=RANKS, cp=16, sizes=(8, 2), layout="srun_label", iterations=24, planned=5000
    )
    job = replace(job, shape=replace(job.shape, batch=64))
    made = [line for line in lines_of(job) if "after training is done" not in line.text]
    stamp = made[-1].when
    saved = "  successfully saved checkpoint from iteration      20 to /ckpt/run [ t 1/1, p 1/1 ]"
    at = next(n for n, line in enumerate(made) if " iteration       21/" in line.text)
    made.insert(at, Line(0, saved, when=stamp))
    for rank in range(RANKS):
        texts = _raises(rank) if rank == CULPRIT else _waits(rank)
        made += [Line(rank, text, "stderr", when=stamp) for text in texts]
    return compose(job, folder / "moe-1024-gpus", made)


def _raises(rank: int) -> Iterator[str]:
    head = f"[rank{rank}]: "
    yield f"{head}Traceback (most recent call last):"
    yield f'{head}  File "/opt/train/pretrain_gpt.py", line 214, in get_batch'
    yield f"{head}    return self.samples[index]"
    yield f"{head}IndexError: index 99 is out of bounds for axis 0 with size 99"


def _waits(rank: int) -> Iterator[str]:
    yield (
        f"[rank{rank}]:[E301 09:32:02.111222333 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog"
        " caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
    )


def pair(folder: Path) -> tuple[Path, Path]:
    """A run whose context parallelism is silently off, and one like it where it is on."""
    good = Job(stack="own-core-0.16", iterations=60, cp=8, sizes=(4, 2), tflops=410)
    bad = replace(good, sizes=None, job_id=4712)
    worse = [replace(line, text=_worse(line.text)) for line in lines_of(bad)]
    return (
        compose(bad, folder / "cp8-without-sizes", worse),
        compose(good, folder / "cp8-known-good"),
    )


def _worse(text: str) -> str:
    """A loss that falls less: attention that sees an eighth of the sequence learns less."""
    return re.sub(
        r"(lm loss: )(\S+)", lambda found: f"{found[1]}{2.2 + 0.8 * float(found[2]):.6E}", text
    )


def pages(folder: Path) -> dict[str, str]:
    with demo_run() as run:
        sample = scan(run, baseline=None).to_html(charts="static")
    run, baseline = pair(folder / "pair")
    return {
        "sample": sample,
        "cascade": scan(cascade(folder)).to_html(charts="static"),
        "baseline": scan(run, baseline=baseline, gpu="H100 SXM").to_html(charts="static"),
    }


def taken(browser: Browser, shot: Shot, path: Path) -> bytes:
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.scheme,
        device_scale_factor=shot.scale,
    )
    page = context.new_page()
    page.goto(path.as_uri())
    if shot.part:  # the navigation would lie over what is taller than the screen
        page.add_style_tag(content="nav { display: none !important }")
        box = page.locator(shot.part).bounding_box()
        assert box is not None
        clip = {key: box[key] - MARGIN for key in ("x", "y")}
        clip |= {key: box[key] + 2 * MARGIN for key in ("width", "height")}
        image = page.screenshot(full_page=True, clip=clip)
    else:
        image = page.screenshot()
    context.close()
    return image


def compressed(image: bytes) -> bytes:
    """The image with a palette: text and flat areas need no more, rare colours are kept."""
    whole = Image.open(io.BytesIO(image)).convert("RGB")
    few = whole.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    out = io.BytesIO()
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        made = pages(folder)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for shot in SHOTS:
            path = folder / f"{shot.page}.html"
            path.write_text(made[shot.page], encoding="utf-8")
            image = compressed(taken(browser, shot, path))
            assert len(image) < MAX_BYTES, (shot.name, len(image))
            (target / f"{shot.name}.png").write_bytes(image)
            sys.stdout.write(f"{shot.name}.png: {len(image):,} bytes\n")
        browser.close()


if __name__ == "__main__":
    main()
