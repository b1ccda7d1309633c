# SPDX-License-Identifier: Apache-2.0
"""Quotes ids and names as segments of URLs; no other module does.

Quoting alone is not enough: libraries resolve "." and "..", also as "%2E", and
some collections have resources beside their members, such as /flavors/detail.
"""

from __future__ import annotations

from collections.abc import Collection
import urllib.parse

#: Resources beside members in Nova's collections of flavors, images and
#: servers, and in Ironic's of nodes.
DETAIL = ("detail",)

# No resource can have these ids.
_NONE = ("", ".", "..")


class NotASegment(ValueError):
    """The id or name would lead to another resource, or to none."""


def segment(name: str, others: Collection[str] = ()) -> str:
    """Return the id or name quoted as one segment of a URL.

    :param others: resources of the collection beside its members
    :raises NotASegment:
    """
    if name in _NONE or name in others:
        raise NotASegment(f"{name!r} is not a valid name or id.")
    try:
        return urllib.parse.quote(name, safe="")
    except UnicodeEncodeError as exc:
        raise NotASegment(f"{name[:64]!r} is not valid Unicode.") from exc
