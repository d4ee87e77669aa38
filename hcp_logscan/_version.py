"""The version, alone in its file: `--version` must not import anything heavy."""

__version__ = "0.1.0"
