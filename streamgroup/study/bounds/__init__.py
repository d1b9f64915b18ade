"""What theory says of a stream from its key counts alone, statement by statement, and whether a run agrees.

A family of statements is a file in `families/`, found by its name. It holds `statements(question)`.
"""
