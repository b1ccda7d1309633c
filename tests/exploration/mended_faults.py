# SPDX-License-Identifier: Apache-2.0
"""Faults that were mended or are prevented by a rule.

The test of the test: exploration has to find each of them. One that it does
not find means that an operation, a fault or an invariant is missing.
"""

import contextlib

from tests.exploration import mended_eviction_faults
from tests.exploration import mended_fault
from tests.exploration import mended_service_faults

#: Where they are.
MODULES = mended_eviction_faults, mended_service_faults
#: {name: Fault}
ALL = mended_fault.ALL


@contextlib.contextmanager
def put_back(name):
    """Within, the fault of this name is there; '' for none."""
    if not name:
        yield
        return
    with ALL[name].patch():
        yield


def table():
    """The table of all faults for CONTRIBUTING.rst."""
    rows = [('Fault', 'Seed', 'Invariant'), *(
        (each.sentence, f'{each.seed or "none yet"} {each.features}'.strip(),
         each.finds)
        for each in sorted(ALL.values(), key=lambda each: (
            each.seed is None, each.sentence)))]
    lines = ['.. list-table::', '   :header-rows: 1', '   :widths: 6 1 3', '']
    for row in rows:
        for mark, cell in zip('*  ', row, strict=True):
            lines.append(f'   {mark} - {cell}'.rstrip())
    return '\n'.join(lines) + '\n'
