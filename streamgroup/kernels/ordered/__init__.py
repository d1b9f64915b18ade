"""Structures that know the largest or the least of the values they hold."""
