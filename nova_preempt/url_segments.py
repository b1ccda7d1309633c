# SPDX-License-Identifier: Apache-2.0
"""Ids and names as segments of URLs: the only place that quotes them.

Quoting alone is not enough: libraries resolve "." and "..", also as "%2E", and
some collections have resources beside their members, such as /flavors/detail.
"""

from __future__ import annotations

from collections.abc import Collection
import urllib.parse

#: What flavors, images and servers of Nova and nodes of Ironic have beside
#: their members.
DETAIL = ("detail",)

# No id of these can be asked for.
_NONE = ("", ".", "..")


class NotASegment(ValueError):
    """The id or name would lead to another resource, or to none."""


def segment(name: str, others: Collection[str] = ()) -> str:
    """Return the id or name as it goes between two slashes of a URL.

    :param others: what the collection has beside its members
    :raises NotASegment:
    """
    if name in _NONE or name in others:
        raise NotASegment(f"{name!r} cannot be the name of anything.")
    try:
        return urllib.parse.quote(name, safe="")
    except UnicodeEncodeError as exc:
        raise NotASegment(f"{name[:64]!r} is no text.") from exc
