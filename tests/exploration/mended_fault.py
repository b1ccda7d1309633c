# SPDX-License-Identifier: Apache-2.0
"""A fault that was mended, or that a rule prevents; it can be put back."""

import contextlib
import dataclasses
from unittest import mock

#: Arguments of tools/explore.py with which the seeds find them: a cloud that
#: is soon full, many evictions, and calls that often fail.
EVICTIONS = ('--operations', '40', '--hosts', '2', '--rate', '0.04',
             '--evictions')
#: Features with which they are found: what comes between calls of evictions
#: and after them, see interruption_operations.
OF_EVICTIONS = ('', 'interruptions', 'delays', 'returns')
#: Those of faults of a feature.
FEATURES = ('--operations', '60', '--rate', '0.02')


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault that was mended.

    :ivar patch: returns the mock patch that puts it back
    :ivar seed: a seed that finds it, None where none is known
    :ivar finds: the invariant that does not hold, or the error
    :ivar features: those that the seed explores, with commas
    """

    patch: object
    seed: int | None
    finds: str
    features: str

    @property
    def arguments(self):
        """Return the arguments of tools/explore.py that find the fault."""
        return [*(EVICTIONS if self.features in OF_EVICTIONS
                  else FEATURES), f'--features={self.features}']

    @property
    def sentence(self):
        """The description of the fault."""
        return self.patch.__doc__


#: {name: Fault}
ALL = {}


def fault(seed=None, finds='', features=''):
    """Note a function that returns a patch under its name."""
    def note(function):
        ALL[function.__name__] = Fault(function, seed, finds, features)
        return function
    return note


def returns(owner, name, value):
    """A patch of a function that returns a value, whatever it is given."""
    return mock.patch.object(owner, name, lambda *args, **kwargs: value)


@contextlib.contextmanager
def together(*patches):
    """Several patches as one: of a rule, and of one that stands behind it."""
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield
