"""`python -m streamgroup` is the command line."""

from streamgroup.cli.app import main

main()
