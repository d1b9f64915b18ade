"""English stopwords: function words such as articles, pronouns and prepositions."""

__all__ = ["STOPWORDS"]

_ARTICLES = "a an the"
_PERSONS = """
    i me my mine myself you your yours yourself he him his himself she her hers herself it its itself
    we us our ours ourselves they them their theirs themselves
"""
_POINTING = "this that these those here there such"
_ASKING = "who whom whose which what when where why how"
_AMOUNTS = "all any both each every more most some no not only too"
_PREPOSITIONS = """
    about above after against among around at before below between by down during for from in into of off on onto out
    over since through to under until up upon with within without
"""
_JOINING = "and but or nor so if then than because although though while whether as"
_AUXILIARIES = """
    be am is are was were been being have has had having do does did doing can could may might must shall should will
    would
"""
_CONTRACTED = """
    i'm i've i'll i'd you're you've you'll he's she's it's we're we've we'll they're they've they'll that's there's
    what's isn't aren't wasn't weren't hasn't haven't don't doesn't didn't can't cannot couldn't won't wouldn't
    shouldn't
"""

STOPWORDS = frozenset(
    word.encode()
    for group in (
        _ARTICLES, _PERSONS, _POINTING, _ASKING, _AMOUNTS, _PREPOSITIONS, _JOINING, _AUXILIARIES, _CONTRACTED,
    )
    for word in group.split()
)  # fmt: skip
