"""The last screens of the make targets."""
