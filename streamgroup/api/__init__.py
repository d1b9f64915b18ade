"""The functions of `import streamgroup`; the command line calls these. Each imports what it needs when it is called."""
