"""Bytes to columns: lines, fields, numbers, times, JSON, words."""
