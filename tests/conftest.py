"""What all tests share: polars, when it is first imported, finds that it has one thread.

The tests run in as many processes as there are CPUs, on tables of a few rows.
"""

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

collect_ignore = ["conftest.py"]  # the search for doctests would import it under another name
