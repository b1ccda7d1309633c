# SPDX-License-Identifier: Apache-2.0
"""The figures that bench/duel.py counts in a run."""

import collections


class Score:
    """Results of one run.

    :param notice_s: the notice that every victim gets
    :param vcpus: {id of a server: its vCPUs}
    :ivar delays_us: of each normal request that got a host, the time from the
        request until its build began
    :ivar lost_vcpu_s: vCPU-seconds that victims had run
    :ivar choice_s: processor time of all choices
    """

    def __init__(self, notice_s, vcpus):
        self.counts = collections.Counter()
        self.delays_us = []
        self.lost_vcpu_s = 0.0
        self.choice_s = 0.0
        self._notice_s = notice_s
        self._vcpus = vcpus
        self._active_s = {}
        self._told_s = {}

    def record(self, record):
        """Take a record of the simulation, see simulation_report.Report."""
        event, uuid = record['event'], record.get('id')
        self.counts[event, record.get('class')] += 1
        if event == 'active':
            self._active_s[uuid] = record['t']
        elif event == 'notice':
            self._told_s[uuid] = record['t']
        elif event == 'deleted':
            self.counts['victims'] += 1
            if uuid in self._active_s:
                ended_s = self._told_s[uuid] + self._notice_s
                self.lost_vcpu_s += self._vcpus[uuid] * (
                    ended_s - self._active_s[uuid])

    @property
    def delayed_us(self):
        """The delays of the normal requests that did not start at once."""
        return sorted(delay for delay in self.delays_us if delay)
