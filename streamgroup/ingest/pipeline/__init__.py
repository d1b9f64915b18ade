"""The steps from raw input to the parts of a trace, each a function from DataFrame to DataFrame of Arrow blocks."""
