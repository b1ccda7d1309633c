# SPDX-License-Identifier: Apache-2.0
"""Masks credentials in texts.

Errors of libraries quote URLs, which may hold a password: in the user part, as
operators write them, or as a parameter.
"""

from collections.abc import Iterator
import re
import urllib.parse

MASK = "***"

# Up to the last @ before a space or a quote: a password may hold an @ or a
# slash, which is not valid in a URL, and the error about that quotes it.
_USER = re.compile(r"""([A-Za-z][\w+.-]*://)[^\s"'<>]*@""")
_PARAMETER = re.compile(
    r"""([?&;][\w.-]*
        (?:passw|pwd|secret|token|api_?key|credential)[\w.-]*=)
        [^\s&;#"'<>]+""",
    re.IGNORECASE | re.VERBOSE, )


def masked(text: object, *addresses: str) -> str:
    """Return a text with credentials masked.

    :param text: a text or an exception
    :param addresses: URLs that the text may be about: their passwords are
        masked wherever they occur, also alone
    """
    found = str(text)
    for secret in sorted(
        {part for address in addresses for part in _secrets(address)}, key=len,
        reverse=True, ):
        found = found.replace(secret, MASK)
    found = _USER.sub(rf"\1{MASK}@", found)
    return _PARAMETER.sub(rf"\1{MASK}", found)


def _secrets(address: str) -> Iterator[str]:
    """Yield the secrets of a URL, both quoted and unquoted."""
    user = _USER.search(address)
    if user:
        _scheme, _, password = user[0].partition("://")[2].partition(":")
        yield from _spellings(password[:-1])
    for parameter in _PARAMETER.finditer(address):
        yield from _spellings(parameter[0].removeprefix(parameter[1]))


def _spellings(secret: str) -> Iterator[str]:
    for spelling in (
        secret, urllib.parse.unquote(secret),
        urllib.parse.unquote_plus(secret)):
        if spelling:
            yield spelling
