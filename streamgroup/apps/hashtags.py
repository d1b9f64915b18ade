"""How often each hashtag comes: counts of the keys that begin with # (002, section 5)."""

from streamgroup.apps.count import Params, finish, merge, start, update

__all__ = ["Params", "finish", "keeps", "merge", "start", "update"]


def keeps(key: str) -> bool:
    """Say whether a key is a hashtag."""
    return key.startswith("#")
