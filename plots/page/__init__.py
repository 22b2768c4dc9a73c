"""report.html of a run: one file with everything in it, which asks for nothing outside.

One module per section; page.html in templates/ puts them together.
"""
