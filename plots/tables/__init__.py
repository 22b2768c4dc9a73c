"""Tables in Markdown: those of tables.md, and the blocks of the READMEs."""
