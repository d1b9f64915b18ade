"""Families of statements: a file each, with `statements(question)`, which yields those that a question concerns."""
