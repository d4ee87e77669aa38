"""What the other layers talk about: events, evidence, findings, reports, errors."""
