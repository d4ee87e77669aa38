"""Survivor lines -> event tables. No I/O, and no state across files."""
