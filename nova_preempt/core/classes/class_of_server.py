# SPDX-License-Identifier: Apache-2.0

"""Tells the class of a server."""

from __future__ import annotations

from collections.abc import Collection


def class_of(by_flavor: str, by_request: str, known: Collection[str]) -> str:
    """Return the name of the class of a preemptible server, '' for none.

    That of its flavor; of a flavor that names none that there is, that of the
    request that it was booted for; of a request that does not either, none.

    :param by_flavor: what the flavor names, '' for none
    :param by_request: the same of the request, '' too where there is none
    :param known: the classes that there are
    """
    for name in (by_flavor, by_request):
        if name in known:
            return name
    return ""
