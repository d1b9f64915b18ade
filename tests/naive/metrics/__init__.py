"""The metrics and tables a second time, from what is known of each tuple."""
