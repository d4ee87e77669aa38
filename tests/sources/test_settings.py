import pytest

from hcp_logscan.model.errors import UsageError
from hcp_logscan.sources import settings
from hcp_logscan.sources.settings import Settings


def write(folder, text):
    (folder / settings.FILE_NAME).write_text(text, encoding="utf-8")
    return folder


def test_a_file_says_all_four(tmp_path):
    write(tmp_path, 'gpu = "H200"\nprecision = "fp8"\npeak_tflops = 1979\nworld_size = 32\n')
    assert settings.load(tmp_path) == Settings(32, "H200", "fp8", 1979)


def test_no_file_says_nothing(tmp_path):
    assert settings.load(tmp_path) == Settings()
    assert settings.of_run(tmp_path / "one.log") == settings.of_run("-") == Settings()


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
