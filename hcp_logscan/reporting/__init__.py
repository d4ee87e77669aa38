"""ReportData in, text out: every output format is a pure function of the report."""
