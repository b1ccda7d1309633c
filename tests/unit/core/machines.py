# SPDX-License-Identifier: Apache-2.0
"""State machines of the controllers: settings, clock and outcomes of calls.

Set NOVA_PREEMPT_MACHINE_EXAMPLES to a number to run that many examples of each
machine, other ones each time, instead of the same few.
"""

import enum
import os

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from nova_preempt.core.model import SECOND

_EXAMPLES = 'NOVA_PREEMPT_MACHINE_EXAMPLES'


class Outcome(enum.Enum):
    """Result of a call in a cloud whose calls fail."""

    DONE = 'it is carried out at once'
    SLOW = 'it is accepted, and carried out later'
    REFUSED = 'it fails'
    LOST = 'it is carried out, but its answer is lost'


def settings(examples: int, steps: int) -> hypothesis.settings:
    """Return the settings of a machine.

    :param examples: the number of examples in the test suite
    :param steps: the number of rules of an example
    """
    more = int(os.environ.get(_EXAMPLES, 0))
    return hypothesis.settings(
        max_examples=more or examples, stateful_step_count=steps,
        derandomize=not more, print_blob=bool(more))


class Machine(stateful.RuleBasedStateMachine):
    """A state machine with a monotonic clock and faults.

    :ivar now_us: the time
    :ivar faulty: whether calls may fail
    """

    def __init__(self) -> None:
        super().__init__()
        self.now_us = 1_000 * SECOND
        self.faulty = True
        self._data = None

    @stateful.initialize(data=st.data())
    def keep_data(self, data):
        self._data = data

    @stateful.rule(seconds=st.sampled_from((0, 1, 2, 5, 11, 31, 90)))
    def pass_time(self, seconds):
        self.now_us += seconds * SECOND

    def draw(self, *choices):
        """Return a drawn choice; the first once the faults have ended."""
        if not self.faulty:
            return choices[0]
        return self._data.draw(st.sampled_from(choices))

    def call(self, act, *arguments):
        """Make a call with a drawn outcome; return whether it is answered.

        :param act: called with the arguments and whether it is done at once,
            unless the call fails
        """
        outcome = self.draw(*Outcome)
        if outcome is not Outcome.REFUSED:
            act(*arguments, outcome is not Outcome.SLOW)
        return outcome not in (Outcome.REFUSED, Outcome.LOST)
