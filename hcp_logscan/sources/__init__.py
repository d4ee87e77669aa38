"""The only reading of logs: run directory -> LogFile* -> blocks of bytes -> survivor lines."""
