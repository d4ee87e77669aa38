"""The charts of the report: series, axes, the still drawing and the interactive one."""
