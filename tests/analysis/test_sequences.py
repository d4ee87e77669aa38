import polars as pl
import pytest

from hcp_logscan.analysis import sequences
from hcp_logscan.analysis.config import Block, Config, Place
from hcp_logscan.analysis.facts import CONFIG_FACTS

NO_LINES = pl.DataFrame(
    schema={"kind": pl.String, "is_training": pl.Boolean, "qkv_layout": pl.String}
)


def config(values, *, complete=True):
    placed = {key: (text, Place(0, 1, "", "bridge_yaml")) for key, text in values.items()}
    facts = {**dict.fromkeys(CONFIG_FACTS), "seq_length": 4096}
    return Config(facts, {}, complete, blocks=(Block("bridge_yaml", complete, placed),))


def layouts(*names):
    rows = [("config", True, name) for name in names]
    return pl.DataFrame(rows, schema=NO_LINES.schema, orient="row")


@pytest.mark.parametrize(
    ("values", "lines", "vary", "length"),
    [
        ({}, NO_LINES, False, 4096),
        ({("model", "variable_seq_lengths"): "false"}, NO_LINES, False, 4096),
        ({("model", "variable_seq_lengths"): "true"}, NO_LINES, True, None),
        ({("dataset", "packed_sequence_specs.packed_sequence_size"): "4096"}, NO_LINES, True, None),
        ({("dataset", "packed_sequence_specs"): "null"}, NO_LINES, False, 4096),
        ({}, layouts("sbhd_sbhd_sbhd", "thd_thd_thd"), True, None),
        ({("dataset", "sequence_length"): "1024"}, NO_LINES, False, None),
        ({("dataset", "sequence_length"): "4096"}, NO_LINES, False, 4096),
    ],
)
def test_packed_and_varied_sequences_have_no_one_length(values, lines, vary, length):
    known = config(values)
    assert sequences.vary(known, lines) is vary
    assert sequences.trained_length(known, lines) == length


def test_a_configuration_that_is_cut_off_does_not_say():
    assert sequences.vary(config({}, complete=False), NO_LINES) is None
    assert sequences.vary(config({}, complete=False), layouts("sbhd_sbhd_sbhd")) is False
