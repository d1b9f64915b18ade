"""Charts of runs and the page that holds them; altair lives only here."""
