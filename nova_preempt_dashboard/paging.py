# SPDX-License-Identifier: Apache-2.0
"""Pages of lists of which the service knows only the way forward.

The URL of a page has a trail: the markers of all pages up to this one, so that
there is a way back, too.
"""

import dataclasses

_SEPARATOR = ','


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of a list.

    :ivar next_trail: '' on the last page
    :ivar previous_trail: None on the first page
    """

    items: list
    next_trail: str = ''
    previous_trail: str | None = None

    @classmethod
    def of(cls, found, size, trail):
        """Return the page of a trail.

        :param found: at most size items, and one more if there are more
        """
        items = found[:size]
        more = len(found) > size
        return cls(
            items, _SEPARATOR.join(
                [*_markers(trail), items[-1].id]) if more else '',
            _SEPARATOR.join(_markers(trail)[:-1]) if trail else None)


def marker(trail):
    """Return the marker of the page, '' for the first page."""
    return (_markers(trail) or [''])[-1]


def _markers(trail):
    return trail.split(_SEPARATOR) if trail else []
