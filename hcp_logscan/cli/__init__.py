"""argv, exit codes, and the only module that knows everybody."""
