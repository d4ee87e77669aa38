import polars as pl
import pytest

from hcp_logscan.analysis import gpus
from hcp_logscan.model.errors import UsageError

UNSAID = gpus.Stated()


def lines(*names, kind="name"):
    return pl.DataFrame(
        [(kind, name) for name in names],
        schema={"kind": pl.String, "name": pl.String},
        orient="row",
    )


@pytest.mark.parametrize("gpu", gpus.table(), ids=lambda gpu: gpu.name)
def test_every_entry_of_the_table_is_whole(gpu):
    assert gpus.find(gpu.name) is gpu
    assert gpus.find(gpu.name.lower()) is gpu
    assert gpu.datasheet.startswith("https://")
    assert set(gpu.dense) <= set(gpus.PRECISIONS)
    half = {gpu.dense[name] for name in ("bf16", "fp16") if name in gpu.dense}
    assert len(half) == 1
    assert gpu.dense.get("fp8", max(half) * 2) >= max(half) * 1.9
    assert gpu.dense.get("fp32", 0) <= max(half)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA H20-3e", "H20"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("NVIDIA GB300", "GB300"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("AMD Instinct MI355X", "MI355X"),
        ("AMD Instinct MI250X", "MI250X"),
        ("NVIDIA GeForce RTX 4090", None),
        ("NVIDIA A1000 Laptop GPU", None),
        ("llama-h1000", None),
    ],
)
def test_device_names_find_their_entry(said, name):
    found = gpus.find(said)
    assert (found.name if found else None) == name


def test_an_unknown_gpu_gets_near_names_and_the_way_out():
    with pytest.raises(UsageError, match=r"H200.*--peak-tflops"):
        gpus.hardware(lines(), gpus.Stated(gpu="H2000"))


def test_names_of_one_gpu_are_one_gpu():
    found = gpus.hardware(lines("NVIDIA H100 80GB HBM3", "NVIDIA H100 80G"), UNSAID)
    assert (found.known, found.name) == (True, "H100 SXM")


@pytest.mark.parametrize(
    ("gpu", "bound"),
    [("B200", 9_000), ("GB200", 10_000), ("B300", 13_500), ("MI355X", 10_066.3), ("H200", None)],
)
def test_fp4_has_its_own_dense_peak_where_one_is_published(gpu, bound):
    found = gpus.hardware(lines(), gpus.Stated(gpu=gpu))
    measured = gpus.peak(found, "fp4", UNSAID)
    assert measured is not None
    assert measured.tflops == bound


def test_a_precision_that_the_datasheet_lacks_has_no_peak():
    found = gpus.hardware(lines("NVIDIA A100-SXM4-80GB"), UNSAID)
    measured = gpus.peak(found, "fp8", UNSAID)
    assert measured is not None
    assert (measured.tflops, measured.bound_tflops) == (None, None)
    assert "no dense FP8 figure" in measured.explanation


def test_an_architecture_is_bounded_by_the_highest_peak_of_its_gpus():
    found = gpus.hardware(lines("sm90", kind="architecture"), UNSAID)
    bf16, unknown = (gpus.peak(found, one, UNSAID) for one in ("bf16", None))
    assert bf16 is not None
    assert unknown is not None
    assert (bf16.gpu, bf16.tflops, bf16.bound_tflops) == (None, None, 989.4)
    assert (unknown.bound_tflops, unknown.assumed) == (1979, True)


@pytest.mark.parametrize("kinds", [("sm999",), ("sm90", "sm100"), ()])
def test_an_architecture_without_an_answer_bounds_nothing(kinds):
    assert (
        gpus.peak(gpus.hardware(lines(*kinds, kind="architecture"), UNSAID), "bf16", UNSAID) is None
    )


def test_the_peak_that_the_user_gives_wins_and_is_never_assumed():
    stated = gpus.Stated(peak_tflops=500.0)
    measured = gpus.peak(gpus.hardware(lines("NVIDIA H200"), stated), None, stated)
    assert measured is not None
    assert (measured.tflops, measured.bound_tflops, measured.assumed) == (500.0, 500.0, False)


def series(*rows):
    """Rows of (time, interval, step_ms, tflops, mfu)."""
    return pl.DataFrame(
        list(rows),
        schema={
            "time": pl.String,
            "interval_iterations": pl.Int64,
            "step_ms": pl.Float64,
            "tflops_per_gpu": pl.Float64,
            "mfu": pl.Float64,
        },
        orient="row",
    )


def stamped(*seconds, interval=1, step_ms=5000.0):
    times = (f"2026-03-01 09:{second // 60:02}:{second % 60:02}.5" for second in seconds)
    return series(*((time, interval, step_ms, None, None) for time in times))


def test_the_clock_gives_the_median_time_per_iteration():
    assert gpus.clock_step_ms(stamped(0, 5, 10, 40, 45)) == 5000
    assert gpus.clock_step_ms(stamped(0, 50, 100, 150, interval=10)) == 5000
    iso = stamped(0, 5, 10, 15).with_columns(pl.col("time").str.replace(" ", "T"))
    assert gpus.clock_step_ms(iso) == 5000


@pytest.mark.parametrize(
    "rows",
    [
        stamped(0, 1, 2, 3, 4),  # stamps of one second cannot tell
        stamped(0, 0, 0, 5, 5, 5, 10),
        stamped(*range(9), 14, *range(15, 20), 25, *range(26, 30), 35, *range(36, 40), 45),
        stamped(0, 5),
        series((None, 1, 5.0, None, None)),
        series(*((f"9999-99-99 0{n}:00:00", 1, 5.0, None, None) for n in range(6))),
        series(),
    ],
    ids=[
        "too close",
        "mostly equal",
        "long pauses between short steps",
        "too few",
        "no stamps",
        "damaged stamps",
        "no rows",
    ],
)
def test_the_clock_cannot_tell(rows):
    assert gpus.clock_step_ms(rows) is None


@pytest.mark.parametrize(
    ("tflops", "mfu", "precision", "wrong"),
    [
        (431.9, 0.4365, "bf16", False),
        (431.9, 0.2182, "bf16", True),  # the sparse figure
        (431.9, 0.2182, None, False),  # which may be that of FP8
        (863.8, 0.8731, "fp8", False),  # many divide by the 16-bit peak whatever runs
        (431.9, 1.3843, None, True),  # A100's
    ],
)
def test_an_mfu_may_divide_by_a_dense_peak_of_this_gpu_only(tflops, mfu, precision, wrong):
    found = gpus.hardware(lines("NVIDIA H200"), UNSAID)
    known = gpus.facts(found, precision, UNSAID, series((None, 1, 5.0, tflops, mfu)))
    assert (known["mfu_denominator_error"] > 0.1) is wrong


def test_numbers_that_are_none_are_not_averaged():
    odd = [float("nan"), float("inf"), -1.0, 0.0, None]
    rows = series(*((None, 1, value, value, value) for value in odd), (None, 1, 5.0, 400.0, 0.4))
    known = gpus.facts(gpus.Hardware(), None, UNSAID, rows)
    assert (known["tflops_median"], known["mfu_median"], known["step_ms_median"]) == (400, 0.4, 5)
    assert known["mfu_denominator_tflops"] == pytest.approx(1000)
