"""The pictures of the documentation: `draw(directory)` of each module runs the program there and gives a chart."""
