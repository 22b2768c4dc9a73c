"""Charts, tables and the report of stepladder, drawn from a run folder alone."""
