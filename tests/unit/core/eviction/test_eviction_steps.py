# SPDX-License-Identifier: Apache-2.0

"""The next step with a victim, in every state of a server."""

import dataclasses
import itertools
import unittest

from nova_preempt.core import eligibility
from nova_preempt.core import observed_server
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction.eviction_steps import StepKind
from nova_preempt.core.eviction.eviction_steps import VictimStep
from nova_preempt.core.eviction.eviction_steps import VictimTerms
from nova_preempt.core.model import SECOND

STATES = ('active', 'paused', 'stopped', 'suspended', 'rescued', 'resized',
          'error', 'shelved', 'soft-delete', 'shelved_offloaded', 'building')
TASKS = (None, 'deleting', 'shelving', 'shelving_offloading', 'migrating',
         'resize_prep', 'resize_finish', 'rebuilding', 'powering-off',
         'image_snapshot', 'unshelving')
HOSTS = ('here', 'there', None)

TERMS = VictimTerms('here', 'delete', ('delete', 'shelve', 'stop'),
                                   timeout_s=60, migrate_timeout_s=30)
NOTICED = eviction_steps.Progress(notice_until_us=100 * SECOND)
ACTING = dataclasses.replace(NOTICED, acting_since_us=100 * SECOND)


def step(vm_state='active', task_state=None, host='here', terms=TERMS,
         progress=ACTING, now=100.0, locked_by='', host_up=True, **kwargs):
    return eviction_steps.next_step(
        observed_server.ObservedServer(
            'a', vm_state, task_state, host, locked_by=locked_by,
            read_us=round(now * SECOND)),
        terms, progress, round(now * SECOND), host_up=host_up, **kwargs)


def every_state():
    return itertools.product(STATES, TASKS, HOSTS)


class TestNextStep(unittest.TestCase):

    def test_no_call_is_made_during_the_notice(self):
        for state in every_state():
            found = step(*state, progress=NOTICED, now=90.0)
            self.assertIn(found.what, (StepKind.WAIT, StepKind.LOOK,
                                       StepKind.ASK))
            if found.what is StepKind.ASK:
                # It is elsewhere already.
                self.assertEqual('confirm_resize', found.detail)
                self.assertNotEqual('here', state[2])

    def test_a_victim_on_another_host_is_never_evicted(self):
        for action, migrate in itertools.product(
                ('delete', 'shelve', 'stop'), (True, False)):
            terms = dataclasses.replace(TERMS, action=action,
                                        migrate=migrate)
            for vm_state, task_state in itertools.product(STATES, TASKS):
                if task_state in (None, *eviction_steps.MOVING):
                    found = step(vm_state, task_state, 'there', terms)
                    self.assertNotIn(found.detail, (
                        'force_delete', 'shelve', 'stop', 'shelve_offload'))

    def test_a_victim_without_allocation_on_the_host_is_done(self):
        for vm_state, host, status in (
                ('active', 'there', 'migrated'),
                ('stopped', 'there', 'migrated'),
                ('shelved_offloaded', None, 'shelved')):
            self.assertEqual(StepKind.LOOK, step(vm_state, None, host).what)
            for progress in (NOTICED, ACTING):
                self.assertEqual(
                    VictimStep(StepKind.DONE, status),
                    step(vm_state, None, host, progress=progress,
                         holds=False))
            self.assertEqual(StepKind.WAIT,
                             step(vm_state, None, host, holds=True).what)
            self.assertEqual(StepKind.GIVE_UP, step(
                vm_state, None, host, now=160.0, holds=True).what)

    def test_an_offloaded_victim_still_on_its_host(self):
        """Unless its compute has died just then."""
        def offloaded(offloaded_s, now, **kwargs):
            return step('shelved_offloaded', None, 'here', now=now,
                        progress=dataclasses.replace(
                            ACTING, offloaded_us=offloaded_s and round(
                                offloaded_s * SECOND)), **kwargs)

        self.assertEqual(StepKind.WAIT, offloaded(None, 100.0).what)
        self.assertEqual(StepKind.WAIT, offloaded(100.0, 109.9,
                                                  holds=False).what)
        self.assertEqual(StepKind.LOOK, offloaded(100.0, 110.0).what)
        self.assertEqual(VictimStep(StepKind.DONE, 'shelved'),
                         offloaded(100.0, 110.0, holds=False))
        self.assertEqual(StepKind.GIVE_UP, offloaded(155.0, 160.0).what)

    def test_a_resize_away_is_confirmed(self):
        self.assertEqual(VictimStep(StepKind.ASK, 'confirm_resize'),
                         step('resized', None, 'there'))

    def test_a_deleted_victim_is_gone(self):
        def gone(progress=ACTING, now=100.0, **kwargs):
            return eviction_steps.next_step(None, TERMS, progress,
                                            round(now * SECOND), **kwargs)

        self.assertEqual(StepKind.LOOK, gone().what)
        self.assertEqual(VictimStep(StepKind.DONE, 'gone'),
                         gone(holds=False))
        since = dataclasses.replace(ACTING, gone_us=100 * SECOND)
        self.assertEqual(StepKind.WAIT, gone(since, 109.9, holds=True).what)
        self.assertEqual(VictimStep(StepKind.FREE, 'gone'),
                         gone(since, 110.0, holds=True))

    def test_a_victim_gone_from_its_host_but_not_from_the_records(self):
        plain = dataclasses.replace(TERMS, pinned=False)
        self.assertEqual(StepKind.LOOK, step('deleted', terms=plain).what)
        self.assertEqual(VictimStep(StepKind.DONE, 'gone'),
                         step('deleted', terms=plain, holds=False))
        # Its host still counts its devices and NUMA cells.
        asked = dataclasses.replace(ACTING, asked='force_delete',
                                    asked_us=100 * SECOND)
        self.assertEqual(StepKind.WAIT, step('deleted', progress=asked).what)
        self.assertEqual(StepKind.WAIT, step('deleted', 'deleting',
                                             terms=plain, progress=asked).what)

    def test_a_victim_that_leaves_is_waited_for(self):
        for task_state in ('deleting', 'shelving', 'migrating',
                           'resize_prep', 'rebuilding'):
            for now, what in ((159.0,
                               StepKind.WAIT), (160.0, StepKind.GIVE_UP)):
                self.assertEqual(what, step(task_state=task_state,
                                            now=now).what)

    def test_a_victim_that_comes_back_elsewhere_has_left(self):
        for action in ('delete', 'shelve', 'stop'):
            terms = dataclasses.replace(TERMS, action=action)
            for for_good in (False, True):
                self.assertEqual(StepKind.WAIT, step(
                    'shelved_offloaded', 'spawning', 'there',
                    dataclasses.replace(terms, for_good=for_good)).what)
            self.assertEqual(StepKind.GIVE_UP, step(
                'shelved_offloaded', 'spawning', 'there', terms,
                now=160.0).what)

    def test_no_call_is_made_after_the_timeout(self):
        for state in every_state():
            for action in ('delete', 'shelve', 'stop'):
                found = step(*state, now=160.0, terms=dataclasses.replace(
                    TERMS, action=action))
                if state[2] == 'here':
                    self.assertIn(found.what, (StepKind.GIVE_UP,
                                               StepKind.LOOK))

    def test_an_unknown_state_is_waited_for(self):
        for progress, now, what in (
                (NOTICED, 90.0, StepKind.WAIT), (ACTING, 159.0, StepKind.WAIT),
                (ACTING, 160.0, StepKind.GIVE_UP)):
            self.assertEqual(what, eviction_steps.next_step(
                None, TERMS, progress, round(now * SECOND), known=False).what)

    def test_a_stopped_victim_is_locked_and_read_again(self):
        """Its owner may have started it before the lock."""
        terms = dataclasses.replace(TERMS, action='stop')
        locked = dataclasses.replace(
            ACTING, asked='stop', asked_us=100 * SECOND,
            locked_us=103 * SECOND)
        for vm_state, task_state, progress, now, what in (
                ('stopped', None, ACTING, 103.0, StepKind.LOCK),
                ('stopped', None, locked, 103.9, StepKind.WAIT),
                ('stopped', None, locked, 104.0, StepKind.LEAVE_STOPPED),
                ('stopped', 'powering-on', locked, 104.0, StepKind.WAIT),
                ('active', None, locked, 109.0, StepKind.WAIT),
                ('active', None, locked, 110.0, StepKind.ASK)):
            self.assertEqual(what, step(
                vm_state, task_state, terms=terms, progress=progress,
                now=now).what)

    def test_calls_are_repeated_after_a_pause(self):
        asked = dataclasses.replace(ACTING, asked='force_delete',
                                    asked_us=100 * SECOND)
        for now, what in ((109.0, StepKind.WAIT), (110.0, StepKind.ASK)):
            self.assertEqual(what, step(progress=asked, now=now).what)

    def test_a_server_that_ends_for_good(self):
        """A victim that moved must still end."""
        terms = dataclasses.replace(TERMS, for_good=True)
        for host in ('here', 'there'):
            self.assertEqual(VictimStep(StepKind.ASK, 'force_delete'),
                             step(host=host, terms=terms))
        self.assertEqual(VictimStep(StepKind.DONE, 'shelved'), step(
            'shelved_offloaded', None, None, terms, holds=False))

    def test_a_lock_that_was_set_in_the_notice(self):
        kept = VictimStep(StepKind.KEEP, 'it is locked')
        for progress in (NOTICED, ACTING, dataclasses.replace(
                ACTING, asked='confirm_resize', asked_us=100 * SECOND)):
            self.assertEqual(kept, step(progress=progress, locked_by='admin'))
            self.assertNotEqual(kept, step(progress=progress,
                                           locked_by='owner'))
        both = dataclasses.replace(
            TERMS, rules=eligibility.Rules(eligibility.ALL))
        self.assertEqual(kept, step(terms=both, locked_by='owner'))

    def test_a_lock_is_too_late(self):
        for asked in ('force_delete', 'shelve', 'stop', 'live_migrate'):
            self.assertNotEqual(StepKind.KEEP, step(
                locked_by='admin', progress=dataclasses.replace(
                    ACTING, asked=asked, asked_us=100 * SECOND)).what)
        for state in (('stopped', None, 'there'), ('active', 'shelving'),
                      ('shelved_offloaded', None, None)):
            self.assertNotEqual(StepKind.KEEP,
                                step(*state, locked_by='admin').what)
        # Our own: it is stopped, and locked for that.
        self.assertEqual(StepKind.LEAVE_STOPPED, step(
            'stopped', terms=dataclasses.replace(TERMS, action='stop'),
            progress=dataclasses.replace(ACTING, locked_us=90 * SECOND),
            locked_by='admin').what)

    def test_no_victim_is_evicted_on_a_host_that_is_down(self):
        kept = VictimStep(StepKind.KEEP, 'host here is down')
        for action in ('delete', 'shelve', 'stop'):
            terms = dataclasses.replace(TERMS, action=action)
            self.assertEqual(StepKind.LOOK_AT_HOST,
                             step(terms=terms, host_up=None).what)
            for progress in (NOTICED, ACTING, dataclasses.replace(
                    ACTING, asked='force_delete', asked_us=100 * SECOND)):
                self.assertEqual(kept, step(terms=terms, progress=progress,
                                            host_up=False))
            self.assertEqual(StepKind.ASK, step(host_up=None, terms=(
                dataclasses.replace(terms, for_good=True))).what)
        self.assertEqual(StepKind.WAIT, step(progress=NOTICED, now=90.0,
                                             host_up=None).what)

    def test_a_shelved_victim_is_offloaded(self):
        """It frees as much as a deletion."""
        for action in ('delete', 'shelve', 'stop'):
            terms = dataclasses.replace(TERMS, action=action)
            self.assertEqual(VictimStep(StepKind.ASK, 'shelve_offload'),
                             step('shelved', terms=terms))
            self.assertEqual(StepKind.WAIT,
                             step('shelved', 'shelving', terms=terms).what)

    def test_all_victims_wait_for_the_longest_notice(self):
        seen = observed_server.ObservedServer('a', 'active', None, 'here')
        soon = dataclasses.replace(NOTICED, notice_until_us=10 * SECOND)
        for now, known, expected in ((10.0, True, False), (100.0, True, True),
                                     (100.0, False, True)):
            self.assertEqual(expected, eviction_controller.may_begin(
                [(soon, seen, known), (NOTICED, seen, known)],
                round(now * SECOND)))
        # Nobody needs the rest of its notice.
        self.assertTrue(eviction_controller.may_begin(
            [(soon, seen, True), (NOTICED, None, True)], 10 * SECOND))

    def test_old_readings_are_not_used(self):
        self.assertTrue(eviction_controller.is_fresh(100 * SECOND,
                                                     102 * SECOND))
        self.assertFalse(eviction_controller.is_fresh(100 * SECOND,
                                                      118 * SECOND))

    def test_notice(self):
        def over(vm_state, now=90.0, known=True, task_state=None):
            seen = vm_state and observed_server.ObservedServer(
                'a', vm_state, task_state, 'here')
            return eviction_controller.notice_is_over(NOTICED, seen, known,
                                                      round(now * SECOND))

        for vm_state in ('active', 'paused', 'rescued'):
            self.assertFalse(over(vm_state))
            self.assertTrue(over(vm_state, now=100.0))
        for vm_state in ('stopped', 'error', None):
            self.assertTrue(over(vm_state))
        self.assertFalse(over(None, known=False))
        # Who is on its way back may run a moment later.
        for vm_state, task_state in (('stopped', 'powering-on'),
                                     ('shelved_offloaded', 'spawning')):
            self.assertFalse(over(vm_state, task_state=task_state))
            self.assertTrue(over(vm_state, 100.0, task_state=task_state))

    def test_every_state_has_an_answer(self):
        for action, migrate, asked, holds in itertools.product(
                ('delete', 'shelve', 'stop'), (True, False),
                ('', 'live_migrate'), (None, True)):
            terms = dataclasses.replace(TERMS, action=action,
                                        migrate=migrate)
            progress = dataclasses.replace(ACTING, asked=asked,
                                           asked_us=100 * SECOND)
            for state in every_state():
                self.assertIsInstance(
                    step(*state, terms, progress, 135.0, holds=holds),
                    VictimStep)


class TestPause(unittest.TestCase):

    def test_short_at_first(self):
        now, looks = 0.0, 0
        while now < 2.0:
            pause_s = eviction_controller.pause_s(now, 0.5)
            self.assertLessEqual(pause_s, max(0.05, now * 0.1))
            now += pause_s
            looks += 1
        self.assertLess(looks, 26)
        self.assertEqual(0.5, eviction_controller.pause_s(100.0, 0.5))
        self.assertEqual(0.01, eviction_controller.pause_s(0.0, 0.01))
