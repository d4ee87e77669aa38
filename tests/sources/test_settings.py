import fsspec
import pytest
from test_archive import PACK

from hcp_logscan import scan
from hcp_logscan.model.errors import UsageError
from hcp_logscan.sources import settings
from hcp_logscan.sources.discover import discover
from hcp_logscan.sources.settings import Settings


def write(folder, text):
    (folder / settings.FILE_NAME).write_text(text, encoding="utf-8")
    return folder


def test_a_file_says_all_four(tmp_path):
    write(tmp_path, 'gpu = "H200"\nprecision = "fp8"\npeak_tflops = 1979\nworld_size = 32\n')
    assert settings.load(tmp_path) == Settings(32, "H200", "fp8", 1979)


def test_no_file_says_nothing(tmp_path):
    assert settings.load(tmp_path) == Settings()


def test_the_stronger_word_counts():
    weak, strong = Settings(8, "H100", "bf16", 900.0), Settings(gpu="H200", world_size=16)
    assert weak.under(strong) == Settings(16, "H200", "bf16", 900.0)
    assert weak.under(Settings()) == weak


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu = H200", "cannot be read"),
        ("card = 'H200'", "no setting is called 'card'; known are world_size, gpu"),
        ("gpu = 100", "gpu is a text"),
        ("world_size = true", "world_size is a number"),
        ("world_size = 0", "a job has 1 to"),
        ("precision = 'fp7'", "known are bf16"),
        ("peak_tflops = -1", "such as 989.4"),
        ("peak_tflops = nan", "such as 989.4"),
        ("gpu = 'H200'\n" + "#" * 70_000, "larger than"),
        ("a = " + "[" * 5_000, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        settings.load(write(tmp_path, text))
    assert settings.FILE_NAME in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / settings.FILE_NAME).write_bytes(b"gpu = '\xff\xfe'")
    with pytest.raises(UsageError, match="cannot be read"):
        settings.load(tmp_path)


def test_a_link_out_of_the_run_directory_is_not_followed(tmp_path):
    outside = write(tmp_path, "gpu = 'H200'") / settings.FILE_NAME
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / settings.FILE_NAME).symlink_to(outside)
    assert settings.load(run_dir) == Settings()


LOG = b"> initialized tensor model parallel with size 1\n"
OWN = b"world_size = 32\ngpu = 'H200'\n"
PLACES = {
    "at the top": [("a.log", LOG), (settings.FILE_NAME, OWN)],
    "in the one folder": [("job-7/a.log", LOG), (f"job-7/{settings.FILE_NAME}", OWN)],
    "at the top before one below": [
        ("a.log", LOG),
        (f"old/{settings.FILE_NAME}", b"world_size = 64"),
        (settings.FILE_NAME, OWN),
    ],
    "far below": [("a.log", LOG), (f"a/b/{settings.FILE_NAME}", OWN)],
    "in two folders": [
        ("a.log", LOG),
        (f"a/{settings.FILE_NAME}", OWN),
        (f"b/{settings.FILE_NAME}", b"world_size = 64"),
    ],
}


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".zip"])
@pytest.mark.parametrize("where", PLACES)
def test_settings_in_an_archive_are_those_of_the_directory_that_was_packed(tmp_path, suffix, where):
    (tmp_path / f"run{suffix}").write_bytes(PACK[suffix](PLACES[where]))

    said = discover(tmp_path / f"run{suffix}").settings

    assert said == (
        Settings() if where in {"far below", "in two folders"} else Settings(32, "H200")
    )


def test_settings_behind_a_url_and_in_an_archive_count_as_those_of_a_directory(tmp_path):
    files = fsspec.filesystem("memory")
    files.pipe({"/set/a.log": LOG, f"/set/{settings.FILE_NAME}": OWN})
    (tmp_path / "run.tar.zst").write_bytes(PACK[".tar.zst"](PLACES["in the one folder"]))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.log").write_bytes(LOG)
    (tmp_path / "run" / settings.FILE_NAME).write_bytes(OWN)
    try:
        reports = [
            scan(run) for run in ("memory://set", tmp_path / "run.tar.zst", tmp_path / "run")
        ]
    finally:
        files.rm("/set", recursive=True)

    assert {(one.data.run.world_size, one.data.run.gpu) for one in reports} == {(32, "H200")}
    assert not any(one.data.health.skipped for one in reports)
    assert scan(tmp_path / "run.tar.zst", world_size=8).data.run.world_size == 8


@pytest.mark.parametrize("text", [b"gpu = H200", b"gpu = 'NoSuchCard'", b"#" * 70_000])
def test_settings_in_an_archive_that_cannot_be_used_are_an_error(tmp_path, text):
    files = [("job-7/a.log", LOG), (f"job-7/{settings.FILE_NAME}", text)]
    (tmp_path / "run.tar").write_bytes(PACK[".tar"](files))

    with pytest.raises(UsageError):
        scan(tmp_path / "run.tar")
