# SPDX-License-Identifier: Apache-2.0
"""Shows on a terminal how far simulations are."""

from collections.abc import Callable, Iterable, Iterator
import sys
import time
from typing import TypeVar

_WIDTH, _INTERVAL_S = 24, 1.0
_Item = TypeVar('_Item')


def followed(items: Iterable[_Item],
             describe: Callable[[int, _Item, float], tuple[float | None, str]],
             is_wanted: bool = True,
             clock: Callable[[], float] = time.monotonic) -> Iterator[_Item]:
    """Yield items, and show a bar on standard error once a second.

    Nothing is shown if that is no terminal.

    :param describe: returns (done share or None, text), given (number of
        items, the last item, seconds since the beginning)
    :param clock: tells seconds
    """
    if not (is_wanted and sys.stderr.isatty()):
        yield from items
        return
    began = last = clock()
    for count, item in enumerate(items, 1):
        yield item
        now = clock()
        if now - last >= _INTERVAL_S:
            last = now
            share, text = describe(count, item, now - began)
            sys.stderr.write('\r' + _bar(now - began, share, text).ljust(78))
            sys.stderr.flush()
    if last != began:
        sys.stderr.write('\n')


def _bar(took_s: float, share: float | None, text: str) -> str:
    if not share:
        return text
    share = min(share, 1.0)
    done = round(_WIDTH * share)
    return (f'[{"#" * done}{"." * (_WIDTH - done)}] {100 * share:.0f} %, '
            f'{took_s * (1 - share) / share:.0f} s left, {text}')
