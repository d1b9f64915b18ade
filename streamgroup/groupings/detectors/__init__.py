"""Detectors of hot keys: what a source takes for hot. Any of them can be named by a grouping that treats hot keys apart."""
