"""Event tables -> facts, verdict. Pure polars: nothing is read here, and nothing goes back up."""
