"""Hides secrets in URLs (passwords, tokens in the query) before they are shown or recorded."""

import re

__all__ = ["shown_url", "without_secrets"]

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*://"
_URL = re.compile(rf"{_SCHEME}[^\s'\"`]+")
_PASSWORD = re.compile(r"(//[^/:@]*):[^/]*@")
# A name with a slash is none: there the question mark is that of a glob.
_PARAMETER = re.compile(r"([?&])([^/=&?]+)=([^&]*)")
# Parameters that say where a store is.
_NOT_SECRET = ("region", "scheme", "endpoint_override")


def shown_url(url: str) -> str:
    """Replaces the password of a URL, and values of parameters that may be tokens, by `***`; a path stays."""
    if not re.match(_SCHEME, url):
        return url
    return _PARAMETER.sub(
        lambda found: found[0] if found[2] in _NOT_SECRET else f"{found[1]}{found[2]}=***",
        _PASSWORD.sub(r"\1:***@", url),
    )


def without_secrets(text: str) -> str:
    """Replaces the secrets of all URLs in a text."""
    return _URL.sub(lambda found: shown_url(found[0]), text)
