"""`python -m streamgroup` is the command line."""

from streamgroup.cli.start import main

main()
