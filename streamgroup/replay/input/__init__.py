"""The stream as chunks: arrival times, reading ahead, what replays share."""
