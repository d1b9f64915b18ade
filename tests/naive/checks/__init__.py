"""Tests of the twins: worked examples, cases by hand, rules that hold for every replay."""
