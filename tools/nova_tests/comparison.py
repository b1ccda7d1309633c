# SPDX-License-Identifier: Apache-2.0
"""Compares the outcomes of tests with the two managers."""

import collections

from nova_tests import runs

_ORDER = (runs.OK, runs.FAILED, runs.SKIPPED)
_RANK = {runs.FAILED: 0, runs.SKIPPED: 1, runs.OK: 2}


def module_of(name):
    """Return the module of a test, for the table."""
    return name.partition('(')[0].rsplit('.', 2)[0].removeprefix('nova.tests.')


def worse(stock, ours):
    """Return the tests that are worse with our manager, sorted.

    They passed with Nova's manager but not with ours, or failed or did not run
    with ours only.
    """
    return sorted(
        name for name, status in stock.status.items()
        if _is_worse(status, ours.status.get(name, runs.FAILED)))


def _is_worse(stock, ours):
    return _RANK[ours] < _RANK[stock]


def better(stock, ours):
    """Return the tests that failed with Nova's manager only, sorted."""
    return sorted(
        name for name, status in stock.status.items()
        if status == runs.FAILED and ours.status.get(name) == runs.OK)


def failed(*results):
    """Return the tests that failed with each manager, sorted."""
    return sorted(
        name for name in results[0].status
        if all(result.status.get(name) == runs.FAILED for result in results))


def table(columns):
    """Yield lines of text: the counts of each module.

    :param columns: {title: runs.Results}
    """
    counts = collections.defaultdict(collections.Counter)
    for title, results in columns.items():
        for name, status in results.status.items():
            for module in (module_of(name), 'all'):
                counts[module][title, status] += 1
    width = max([len(module) for module in counts] + [6])
    heads = [f'{title} {status}' for title in columns for status in _ORDER]
    yield '  '.join(['module'.ljust(width), *heads])
    for module in sorted(counts, key=lambda name: (name == 'all', name)):
        numbers = [counts[module][title, status]
                   for title in columns for status in _ORDER]
        cells = [str(number).rjust(len(head))
                 for number, head in zip(numbers, heads, strict=True)]
        yield '  '.join([module.ljust(width), *cells])
