"""Rows that count the events of a key in an hour, a day or a month."""
