"""Raw data to traces, on Spark: the pipeline (read, contract, order, encode, write), its readers and
generators.
"""
