# SPDX-License-Identifier: Apache-2.0

"""Determines the class of a server."""

from collections.abc import Collection


def class_of(by_flavor: str, by_request: str, known: Collection[str]) -> str:
    """Return the name of the class of a preemptible server, '' for none.

    The class of its flavor if that exists, else the class of the request that
    it was booted for, else none.

    :param by_flavor: the class that the flavor names, '' for none
    :param by_request: the class of the request, '' for none
    :param known: the existing classes
    """
    for name in (by_flavor, by_request):
        if name in known:
            return name
    return ""
