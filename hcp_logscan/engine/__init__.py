"""Files -> event tables: one task per unit of a file, merged in order."""
