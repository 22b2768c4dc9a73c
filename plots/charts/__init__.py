"""The charts of a run: draw.py writes them, and one module draws each kind."""
