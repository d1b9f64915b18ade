"""Detectors of hot keys: what a source takes for hot, named by a grouping that treats hot keys apart."""
