# SPDX-License-Identifier: Apache-2.0

"""Requests for servers as users leave, see, change and cancel them."""

import datetime
import logging
from unittest import mock

from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt import exceptions
from nova_preempt.backlog import orphan_trusts
from nova_preempt.backlog import request_intake
from nova_preempt.backlog import secret_encryption
from nova_preempt.cloud import boot_schema
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.db import backlog_secrets
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_submissions
from tests.unit.api import base
from tests.unit.api.base import make_uuid
from tests.unit.db import test_backlog_store

ADMIN = 'admin:z'
PATH = '/v1/requests'
UNKNOWN = make_uuid('unknown')


def in_hours(hours):
    """Return the time in some hours."""
    now = datetime.datetime.now(datetime.UTC).replace(
        microsecond=0, tzinfo=None)
    return f'{(now + datetime.timedelta(hours=hours)).isoformat()}Z'


SPOT = {'flavorRef': 'f2'}


class Killed(BaseException):
    """Stands for the end of the process by SIGKILL."""


class BacklogTestCase(base.ApiTestCase):

    microversion = '1.3'

    def body(self, **server):
        values = {'name': 'batch', 'imageRef': self.reading.image_id,
                  'flavorRef': 'f1', 'networks': 'none', **server}
        return {'server': {name: value for name, value in values.items()
                           if value is not None}}

    def create(self, token='u:p', code=201, server=None, **values):
        answer = self.post(PATH, {'request': {
            'body': self.body(**(server or {})), **values}}, token, code)
        return answer.get('request') or answer['error']['message']

    def show(self, uuid, token='u:p', code=200):
        return self.get(f'{PATH}/{uuid}', token, code).get('request')

    def change(self, uuid, token='u:p', code=200, **values):
        answer = self.patch(f'{PATH}/{uuid}', {'request': values}, token,
                            code)
        return answer.get('request') or answer['error']['message']

    def ids(self, query='', token='u:p'):
        return [item['id'] for item in self.get(
            f'{PATH}{query}', token)['requests']]

    def sealed(self, uuid):
        return backlog_secrets.get(self.db, uuid)

    def becomes(self, uuid, state, **values):
        """Write a state as the engine does."""
        self.assertTrue(backlog_store.change(
            self.db, uuid, backlog_model.STATES, base.NOW, state=state,
            **values))

    def boots(self, uuid):
        self.assertTrue(backlog_store.begin_boot(
            self.db, uuid, backlog_model.OPEN, backlog_model.SentBoot(
                1, f'backlog:{uuid}:1', 'f1', 1, base.NOW)))

    def clear_up(self, in_s=orphan_trusts.LATE_S + 1):
        """Clear up orphaned trusts as the engine does."""
        orphan_trusts.OrphanTrusts(self.db, self.trusts).clear(
            timeutils.utcnow() + datetime.timedelta(seconds=in_s))
        return [item.uuid for item in backlog_submissions.older(
            self.db, datetime.datetime.max, 99)]

    def assert_nothing_is_kept(self):
        self.assertEqual([], self.ids('?all_projects=true', ADMIN))
        self.assertEqual({}, self.trusts.made)


class TestCreate(BacklogTestCase):

    def test_answer(self):
        made = self.create(
            count=3, least_count=2, flavors=['f2', 'gold'], name='mine',
            priorities={'time': 3}, not_before=in_hours(1),
            not_after=in_hours(2), longest_wait_s=7200, comes_back=True,
            back_until=in_hours(3), most_returns=4, **{'class': 'gold'},
            compute_version='2.90',
            server={'flavorRef': 'f2', 'key_name': 'key', 'min_count': 1,
                    'max_count': 9, 'adminPass': 'secret',
                    'user_data': 'c2VjcmV0'})
        for name in ('id', 'created_at', 'updated_at', 'waits_since',
                     'not_before', 'not_after', 'back_until'):
            self.assertTrue(made.pop(name), name)
        self.assertEqual('waiting', made['history'].pop()['status'])
        self.assertEqual({
            'name': 'mine', 'project_id': 'p', 'user_id': 'u',
            'status': 'waiting', 'reason': '', 'compute_version': '2.90',
            'count': 3, 'least_count': 2, 'flavors': [
                {'id': 'f2', 'name': 'spot', 'resources': {'VCPU': 1},
                 'preemptible': True},
                {'id': 'gold', 'name': 'golden', 'preemptible': True,
                 'resources': {'VCPU': 2}}],
            'ladder': '', 'class': 'gold', 'priorities': {
                'time': 3, 'reputation': 1, 'cores': 1, 'redundancy': 1},
            'longest_wait_s': 7200, 'comes_back': True, 'most_returns': 4,
            'returns': 0, 'waits_for': {}, 'position': None,
            'estimate_s': None, 'servers': [], 'history': [], 'body': {
                'server': {'name': 'batch', 'networks': 'none',
                           'imageRef': self.reading.image_id,
                           'key_name': 'key', 'adminPass': '***',
                           'user_data': '***'}}}, made)

    def test_secrets_are_stored_encrypted_for_the_engine(self):
        uuid = self.create(server={'user_data': 'c2VjcmV0'})['id']
        kept = backlog_store.get(self.db, uuid)
        cipher = secret_encryption.SecretCipher(self.conf.backlog)
        self.assertEqual({'user_data': 'c2VjcmV0'},
                         cipher.open(kept, self.sealed))
        self.assertEqual(('u:p', 'p', 'u', ['reader', 'member']),
                         self.trusts.made[kept.trust_id])
        self.assertEqual({'u:p'}, set(self.reading.tokens))
        self.assertNotIn(kept.trust_id, str(self.show(uuid, ADMIN)))

    def test_defaults(self):
        made = self.create()
        self.assertEqual(
            ('batch', 1, 1, ['f1'], boot_schema.DEFAULT, '', None, False),
            (made['name'], made['count'], made['least_count'],
             [flavor['id'] for flavor in made['flavors']],
             made['compute_version'], made['class'], made['priorities'],
             made['comes_back']))

    def test_counts_of_the_body_are_read_as_by_nova(self):
        for server, values, expected in (
                ({'max_count': 5}, {}, (5, 1)),
                ({'min_count': 2}, {}, (2, 2)),
                ({'min_count': 2.0}, {}, (2, 2)),
                ({'min_count': '2', 'max_count': '4'}, {}, (4, 2)),
                ({'min_count': 2, 'max_count': 4}, {'count': 3}, (3, 2)),
                ({}, {'count': 3}, (3, 3)),
                ({}, {'least_count': 3}, (3, 3))):
            made = self.create(server=server, **values)
            self.assertEqual(expected, (made['count'], made['least_count']))
            self.assertEqual({'name', 'imageRef', 'networks'},
                             set(made['body']['server']))

    def test_version_of_the_header(self):
        self.microversion = '1.3, compute 2.60'
        self.assertEqual('2.60', self.create()['compute_version'])
        self.assertEqual('2.90', self.create(
            compute_version='2.90')['compute_version'])
        # Both of it are newer.
        self.assertIn('Additional properties', self.create(
            code=400, server={'host': 'a'}))

    def test_hints_and_volumes(self):
        body = self.body(imageRef='', block_device_mapping_v2=[{
            'boot_index': 0, 'uuid': UNKNOWN, 'source_type': 'volume',
            'destination_type': 'volume'}])
        body['os:scheduler_hints'] = {'group': UNKNOWN}
        made = self.post(PATH, {'request': {'body': body}}, code=201)
        self.assertEqual({'group': UNKNOWN},
                         made['request']['body']['os:scheduler_hints'])


class TestSecrets(BacklogTestCase):

    SECRETS = {'adminPass': 'hunter2', 'user_data': 'aHVudGVyMg=='}

    def dump(self):
        """Return the contents of the database as text."""
        with self.db.engine.connect() as connection:
            return '\n'.join(
                connection.connection.driver_connection.iterdump())

    def test_no_secret_is_stored_in_clear(self):
        uuid = self.create(server=self.SECRETS)['id']
        self.change(uuid, name='other')
        for secret in self.SECRETS.values():
            self.assertNotIn(secret, self.dump())
        shown = self.show(uuid)['body']['server']
        self.assertEqual(['***', '***'],
                         [shown[name] for name in self.SECRETS])

    def test_secrets_are_deleted_when_the_request_is_closed(self):
        for state in backlog_model.CLOSED:
            uuid = self.create(server=self.SECRETS)['id']
            self.assertTrue(self.sealed(uuid))
            self.becomes(uuid, state)
            self.assertIsNone(self.sealed(uuid), state)
            self.assertEqual('***', self.show(uuid)['body']['server'][
                'adminPass'])
        for state in backlog_model.CLOSED:
            uuid = self.create(server=self.SECRETS)['id']
            self.assertTrue(backlog_store.record(
                self.db, uuid, backlog_model.OPEN, base.NOW,
                boot_outcome.Transition(state, {'reason': 'x'})))
            self.assertIsNone(self.sealed(uuid), state)
        uuid = self.create(server=self.SECRETS)['id']
        self.delete(f'{PATH}/{uuid}')
        self.assertIsNone(self.sealed(uuid))

    def test_secrets_are_refused_without_a_key(self):
        self.conf.set_override('secret_key_file', '', 'backlog')
        for name, secret in self.SECRETS.items():
            message = self.create(code=400, server={name: secret})
            self.assertIn(f"'request.body.server.{name}'", message)
            self.assertIn('[backlog]secret_key_file', message)
            self.assertNotIn(secret, message)
        self.assert_nothing_is_kept()
        self.create()

    def test_keys_that_cannot_be_read(self):
        self.keys.write_text('nonsense')
        self.assertEqual('User data and passwords cannot be encrypted now, '
                         'as the key file of the service is invalid.',
                         self.create(code=503, server=self.SECRETS))
        self.assert_nothing_is_kept()


class TestRefused(BacklogTestCase):

    def setUp(self):
        super().setUp()
        self.conf.set_override('max_count', 10, 'backlog')

    def refused(self, field, text, code=400, **values):
        message = self.create(code=code, **values)
        self.assertIn(f"'request.{field}'", message)
        self.assertIn(text, message)
        self.assert_nothing_is_kept()

    def test_counts(self):
        self.refused('count', 'minimum of 1', count=0)
        self.refused('count', '11 is more than the allowed 10', count=11)
        self.refused('body.server.max_count', '11 is more than the allowed 10',
                     server={'max_count': '11'})
        self.refused('body.server.min_count', "'x' is not an integer",
                     server={'min_count': 'x'})
        self.refused('body.server.min_count', '0 is less than 1',
                     server={'min_count': 0})
        self.refused('least_count', '3 is more than the 2 servers', count=2,
                     least_count=3)
        self.refused('body.server.min_count', '3 is more than the 2 servers',
                     server={'min_count': 3, 'max_count': 2})

    def test_times(self):
        self.refused('not_after', 'is in the past', not_after=in_hours(-1))
        self.refused('back_until', 'is in the past', comes_back=True,
                     back_until=in_hours(-1))
        self.refused('not_after', 'is not after not_before',
                     not_before=in_hours(2), not_after=in_hours(1))
        self.refused('back_until', 'it requires comes_back',
                     back_until=in_hours(1))
        self.refused('most_returns', 'it requires comes_back', most_returns=1)

    def test_names(self):
        for name in ('silver', 'bronze'):
            self.refused('class', f"'{name}' is not allowed; "
                         'allowed are gold', **{'class': name})
        self.refused('flavors', 'There is no f3.', flavors=['f1', 'f3'])
        self.refused('flavors', 'There is no f3.',
                     server={'flavorRef': 'f3'})
        self.refused('flavors', 'it has a duplicate',
                     flavors=['f1', 'f1'])
        self.refused('flavors', 'flavorRef is required',
                     server={'flavorRef': None})
        self.refused('body.server.flavorRef', 'f1 is not in the field flavors',
                     flavors=['f2'])
        self.refused('body.server.imageRef', f'There is no {UNKNOWN}.',
                     server={'imageRef': UNKNOWN})
        self.refused('body.server.key_name', 'There is no other.',
                     server={'key_name': 'other'})

    def test_bodies_that_nova_would_refuse(self):
        for field, text, server in (
                ('', "'networks' is a required property",
                 {'networks': None}),
                ('.name', 'it ', {'name': ''}),
                ('', "'nonsense' was unexpected", {'nonsense': 1}),
                ('.imageRef', "it is not valid under any of the given schemas",
                 {'imageRef': 'x'})):
            self.refused(f'body.server{field}', text, server=server)
        self.refused('compute_version', "'2.51' must be a microversion",
                     compute_version='2.51')
        self.refused('compute_version', "'latest' must be a microversion",
                     compute_version='latest')

    def test_fields_that_a_request_cannot_have(self):
        self.refused('body.server.return_reservation_id', 'is not supported',
                     server={'return_reservation_id': True})
        self.refused('body.server.hostname', 'cannot share a hostname',
                     count=2, server={'hostname': 'one'})
        self.refused('body.server.networks', 'cannot share a port',
                     count=2, server={'networks': [{'port': UNKNOWN}]})
        self.refused('body.server.tags', '50 tags are more than 49',
                     server={'tags': [f't{n}' for n in range(50)]})

    def test_errors_contain_no_whole_secret(self):
        message = self.create(code=400, server={
            'adminPass': 'secret', 'nonsense': 1, 'user_data': 'A' * 4000})
        self.assertNotIn('secret', message)
        self.assertIn("'nonsense' was unexpected", message)
        self.assertLess(len(message), 1000)

    def test_long_ids(self):
        """Otherwise Nova's answer, with the id in its address, is logged."""
        self.refused('body.server.flavorRef', 'it is longer than 255',
                     server={'flavorRef': 'a' * 50_000})
        self.refused('body.server.flavorRef', 'it is longer than 255',
                     server={'flavorRef': 10 ** 255})
        self.reading.fails = nova_api.NovaError('x' * 100_000)
        logging.disable(logging.NOTSET)
        with self.assertLogs(request_intake.__name__, 'WARNING') as logs:
            self.create(code=503)
        self.assertLess(len(logs.records[0].getMessage()), 400)

    def test_surrogates(self):
        """Neither Nova nor its schema can process them."""
        half = 'a\ud800'
        for field, server in (
                *((name, {name: half}) for name in (
                    'user_data', 'adminPass', 'flavorRef', 'name')),
                ('metadata.a', {'metadata': {'a': half}}),
                ('metadata', {'metadata': {half: 'a'}}),
                ('personality.0.contents', {'personality': [
                    {'path': 'a', 'contents': half}]})):
            self.refused(f'body.server.{field}', 'it has an unpaired '
                         'surrogate.', server=server)
        self.refused('body.os:scheduler_hints.a', 'unpaired surrogate', body={
            **self.body(), 'os:scheduler_hints': {'a': half}})
        self.create(server={'metadata': {'a': '\U0001F600'}})

    def test_hints(self):
        """Each pass reads the stored hints."""
        for value in (5, True, None, [5], [None], [{'a': 1}]):
            body = {**self.body(), 'os:scheduler_hints': {
                'reservation': value}}
            message = self.create(code=400, body=body)
            self.assertEqual(
                "Invalid field 'request.body.os:scheduler_hints.reservation'"
                ': it must be an id or a list of ids.', message)
        self.assert_nothing_is_kept()

    def test_size(self):
        with mock.patch('nova_preempt.api.backlog_handlers.MOST_BODY_BYTES',
                        1000):
            self.assertIn('at most 1000', self.create(
                code=413, server={'user_data': 'A' * 1000}))
        self.assert_nothing_is_kept()

    def test_ladder(self):
        found = self.create(server={'flavorRef': None}, ladder='web',
                            priorities={'reputation': 3, 'redundancy': 2})
        self.assertEqual(('web', 2, 2, ['HIGH4', 'HIGH2', 'HIGH1']), (
            found['ladder'], found['count'], found['least_count'],
            [flavor['name'] for flavor in found['flavors']]))
        kept = backlog_store.get(self.db, found['id'])
        self.assertTrue(kept.apart)
        self.assertNotIn('flavorRef', kept.body['server'])

    def test_hint_preemptible(self):
        """It counts only if the operator allows it."""
        def kinds(value, flavor='f1', name='os:scheduler_hints', **values):
            body = {**self.body(flavorRef=flavor),
                    name: {'preemptible': value}}
            found = self.post(PATH, {'request': {'body': body, **values}},
                              'u:p', 201)['request']
            return [each['preemptible'] for each in found['flavors']]

        self.assertEqual([False], kinds('true'))
        self.conf.set_override('marks', ['hint'], 'preemption')
        self.assertEqual([True], kinds('true'))
        self.assertEqual([True], kinds(
            True, name='OS-SCH-HNT:scheduler_hints', **{'class': 'gold'}))
        self.assertEqual([False], kinds('false'))
        self.assertEqual([True], kinds('false', 'f2'))

    def test_counts_of_a_ladder_cannot_be_changed(self):
        uuid = self.create(server={'flavorRef': None}, ladder='web',
                           priorities={'redundancy': 2})['id']
        for values, text in (
                ({'count': 5}, "count': it must not be set"),
                ({'least_count': 1}, "least_count': it must not be set"),
                ({'priorities': None}, "ladder': it requires the field"),
                ({'priorities': {'cores': 3}},
                 "priorities.redundancy': the request has a ladder"),
                ({'priorities': {'redundancy': 2, 'reputation': 3}},
                 "priorities.reputation': the request has")):
            self.assertIn(text, self.change(uuid, code=400, **values))
        self.change(uuid, name='other',
                    priorities={'cores': 3, 'time': 2, 'redundancy': 2})

    def test_invalid_ladders(self):
        server = {'flavorRef': None}
        for values, text in (
                ({'ladder': 'web'}, 'ladder: it requires the field prior'),
                ({'ladder': 'web', 'priorities': {'reputation': 2}},
                 "ladder: 'web' has no flavor for the"),
                ({'ladder': 'x', 'priorities': {}}, "'x' has no flavor"),
                ({'ladder': 'web', 'priorities': {}, 'count': 2},
                 'count: it must not be set'),
                ({'ladder': 'web', 'priorities': {}, 'flavors': ['f1']},
                 'flavors: it must not be set'),
                ({'ladder': 'web', 'priorities': {},
                  'server': {'flavorRef': 'f1'}},
                 'body.server.flavorRef: it must not be set'),
                ({'ladder': 'web', 'priorities': {},
                  'server': {'flavorRef': None, 'min_count': 2}},
                 'body.server.min_count: it must not be set')):
            with self.subTest(text):
                answer = self.create(code=400, **{'server': server, **values})
                self.assertIn(text.partition(': ')[2], answer)
                self.assertIn(f"request.{text.partition(':')[0]}'"
                              if ': ' in text else text, answer)
        hints = {'os:scheduler_hints': {'group': make_uuid('group')}}
        answer = self.post(PATH, {'request': {
            'body': {**self.body(flavorRef=None), **hints}, 'ladder': 'web',
            'priorities': {}}}, code=400)
        self.assertIn('together with a ladder', answer['error']['message'])
        self.assertEqual({}, self.trusts.made)

    def test_without_ladders(self):
        self.conf.set_override('ladders', False, 'backlog')
        self.assertIn('[backlog]ladders is false', self.create(
            code=400, server={'flavorRef': None}, ladder='web',
            priorities={}))

    def test_disabled(self):
        self.conf.set_override('enabled', False, 'backlog')
        self.assertIn('[backlog]enabled is false', self.create(code=403))
        self.assert_nothing_is_kept()

    def test_older_version(self):
        self.microversion = '1.2'
        self.get(PATH, code=404)

    def test_tokens_from_which_no_trust_can_be_made(self):
        self.assertIn('not with an application credential',
                      self.create('robot:p', 403))
        self.assert_nothing_is_kept()

    def test_keystone_or_nova_is_away(self):
        self.trusts.fails['create'] = keystone_trusts.KeystoneUnavailable(
            'secret')
        self.assertEqual('Keystone does not answer.', self.create(code=503))
        self.trusts.fails.clear()
        self.reading.fails = nova_api.NovaError('secret')
        self.assertEqual('Nova does not answer.', self.create(code=503))
        self.reading.fails = None
        self.assert_nothing_is_kept()

    def test_the_database_is_away(self):
        with self.db.engine.begin() as connection:
            connection.exec_driver_sql(
                'ALTER TABLE backlog_changes RENAME TO away')
        self.create(code=503)
        with self.db.engine.begin() as connection:
            connection.exec_driver_sql(
                'ALTER TABLE away RENAME TO backlog_changes')
        # What could not be taken back is, later.
        self.assertEqual(1, len(self.trusts.made))
        self.clear_up()
        self.assert_nothing_is_kept()

    def test_a_process_dies_at_each_step_of_the_submission(self):
        """A complete request stays, others are deleted."""
        kept = self.create()['id']
        for place, name in ((backlog_submissions, 'begin'),
                            (self.trusts, 'create'),
                            (backlog_store, 'create')):
            for after in (False, True):
                self.assert_dies(place, name, after)
        self.assertEqual(2, len(self.ids()))
        # Nobody looks while it may be under way.
        self.assertEqual(4, len(self.clear_up(0)))
        self.assertEqual(4, len(self.trusts.made))
        self.assertEqual([], self.clear_up())
        self.assertEqual({backlog_store.get(self.db, uuid).trust_id
                          for uuid in self.ids()}, set(self.trusts.made))
        self.assertIn(kept, self.ids())

    def test_a_trust_that_cannot_be_deleted_does_not_keep_others(self):
        self.assert_dies(self.trusts, 'create', after=True)
        self.assert_dies(self.trusts, 'create', after=True)
        delete = self.trusts.delete

        def fail(trust_id):
            if trust_id == 'trust0':
                raise keystone_trusts.KeystoneUnavailable('500')
            delete(trust_id)

        with mock.patch.object(self.trusts, 'delete', fail):
            self.assertEqual(1, len(self.clear_up()))
        self.assertEqual(['trust0'], list(self.trusts.made))
        self.assertEqual([], self.clear_up())
        self.assertEqual({}, self.trusts.made)

    def assert_dies(self, place, name, after):
        real = getattr(place, name)

        def die(*args, **kwargs):
            if after:
                real(*args, **kwargs)
            raise Killed

        # Nobody is there to take anything back.
        with mock.patch.object(place, name, die), mock.patch.object(
                self.services.submissions, '_forget'):
            self.assertRaises(Killed, self.create)

    def test_keystone_does_not_answer_whether_it_made_a_trust(self):
        create = self.trusts.create

        def no_answer(*args):
            create(*args)
            raise keystone_trusts.KeystoneUnavailable('timeout')

        with mock.patch.object(self.trusts, 'create', no_answer):
            self.create(code=503)
        self.assertEqual(1, len(self.trusts.made))
        self.trusts.fails['list'] = keystone_trusts.KeystoneUnavailable('away')
        self.assertEqual(1, len(self.clear_up()))
        self.trusts.fails.clear()
        self.assertEqual([], self.clear_up())
        self.assert_nothing_is_kept()

    def test_a_submission_that_took_too_long_is_refused(self):
        """The engine may have deleted its trust."""
        create = self.trusts.create

        def stand_still(*args):
            made = create(*args)
            self.trusts.fails['delete'] = keystone_trusts.KeystoneUnavailable(
                'away')
            self.clear_up()
            self.trusts.fails.clear()
            return made

        with mock.patch.object(self.trusts, 'create', stand_still):
            self.assertEqual('The creation of a trust in Keystone took too '
                             'long.', self.create(code=503))
        self.assert_nothing_is_kept()
        self.assertEqual([], self.clear_up())

    def test_a_request_started_before_its_refusal_keeps_its_trust(self):
        """The engine needs it to clean up."""
        self.conf.set_override('max_requests_per_project', 1, 'backlog')
        check = self.services.submissions._check_limit

        def check_late(project_id, own=0):
            if own:
                (uuid,) = self.ids()
                self.boots(uuid)
                self.create_directly()
            check(project_id, own)

        with mock.patch.object(self.services.submissions, '_check_limit',
                               check_late):
            self.assertIn('max_requests_per_project', self.create(code=403))
        (found,) = backlog_store.find(self.db, backlog_model.CLOSED)
        self.assertEqual((backlog_model.CANCELLED, True, 1), (
            found.state, found.ends_servers, len(found.boots)))
        self.assertIn(found.trust_id, self.trusts.made)
        # The engine has told that it is placing.
        self.assertEqual([(found.uuid, 'placing', 'cancelled')], self.told)

    def create_directly(self):
        backlog_store.create(self.db, test_backlog_store.request(
            'other', project_id='p'))

    def test_the_error_names_the_first_failure(self):
        self.conf.set_override('max_requests_per_project', 1, 'backlog')
        create = self.trusts.create

        def another_is_made_meanwhile(*args):
            self.trusts.create = create
            self.create()
            self.trusts.fails['delete'] = keystone_trusts.KeystoneUnavailable(
                'away')
            return create(*args)

        self.trusts.create = another_is_made_meanwhile
        self.assertIn('max_requests_per_project', self.create(code=403))
        self.assertEqual(1, len(self.ids()))
        self.trusts.fails.clear()
        self.assertEqual(2, len(self.trusts.made))
        self.clear_up()
        self.assertEqual(1, len(self.trusts.made))


class TestLimit(BacklogTestCase):

    def test_requests_of_a_project(self):
        self.conf.set_override('max_requests_per_project', 2, 'backlog')
        first = self.create()['id']
        self.create('v:p')
        asked = len(self.reading.tokens)
        self.assertEqual(
            'The limit max_requests_per_project would be exceeded: 2 '
            'allowed, 2 used, 1 requested.', self.create(code=403))
        # Nobody else is asked before.
        self.assertEqual((asked, 2), (len(self.reading.tokens),
                                      len(self.trusts.made)))
        self.create('u:q')
        self.delete(f'{PATH}/{first}')
        self.create()

    def test_requests_of_a_day(self):
        """Otherwise a user can create rows without limit."""
        self.conf.set_override('max_created_per_day', 2, 'backlog')

        def ages(minutes):
            with self.db.writer() as session:
                session.execute(sa.text(
                    'UPDATE backlog_requests SET created_at = '
                    f"datetime(created_at, '-{minutes} minutes')"))

        for _number in range(2):
            self.delete(f'{PATH}/{self.create()["id"]}')
        ages(23 * 60)
        self.assertEqual(
            'The limit max_created_per_day would be exceeded: 2 allowed, 2 '
            'used, 1 requested.', self.create(code=403))
        self.assertEqual({}, self.trusts.made)
        self.create('u:q')
        ages(60)
        self.create()

    def test_two_simultaneous_requests_respect_the_limit(self):
        self.conf.set_override('max_requests_per_project', 1, 'backlog')
        create = self.trusts.create

        def another_is_made_meanwhile(*args):
            self.trusts.create = create
            self.create()
            return create(*args)

        self.trusts.create = another_is_made_meanwhile
        self.assertIn('max_requests_per_project', self.create(code=403))
        self.assertEqual((1, 1), (len(self.ids()), len(self.trusts.made)))

    def test_minus_one_is_no_limit(self):
        self.conf.set_override('max_requests_per_project', -1, 'backlog')
        for _number in range(3):
            self.create()


class TestSeen(BacklogTestCase):

    def test_other_projects_do_not_see_a_request(self):
        uuid = self.create()['id']
        for method in ('GET', 'DELETE'):
            self.checked(self.request(f'{PATH}/{uuid}', method, 'u:q'), 404)
        self.change(uuid, 'u:q', 404, name='x')
        self.assertEqual([], self.ids(token='u:q'))
        self.get(f'{PATH}?project_id=p', 'u:q', 403)
        self.get(f'{PATH}?all_projects=true', 'u:q', 403)
        self.assertEqual([uuid], self.ids('?project_id=p', ADMIN))
        self.assertEqual('p', self.show(uuid, ADMIN)['project_id'])
        for path in (UNKNOWN, 'nonsense'):
            self.get(f'{PATH}/{path}', code=404)

    def test_other_users_of_the_project_cannot_change_a_request(self):
        """Its servers start in the name of its creator."""
        uuid = self.create()['id']
        self.assertIn('preemption:request:update',
                      self.change(uuid, 'v:p', 403, count=10))
        self.checked(self.request(f'{PATH}/{uuid}', 'DELETE', 'v:p'), 403)
        self.assertEqual([uuid], self.ids(token='v:p'))
        self.assertEqual(('waiting', 1), tuple(
            self.show(uuid, 'v:p')[name] for name in ('status', 'count')))
        self.change(uuid, ADMIN, count=2)
        self.change(uuid, count=3)

    def test_lists_do_not_read_bodies(self):
        """The bodies of 1,000 requests have 98 MB."""
        self.create()
        asked = []
        sa.event.listen(
            self.services.database.engine, 'before_cursor_execute',
            lambda conn, cursor, statement, *args: asked.append(statement))
        self.assertEqual(1, len(self.ids()))
        self.assertTrue(any('FROM backlog_requests' in statement
                            for statement in asked))
        for statement in asked:
            self.assertNotIn('.body', statement)
            self.assertNotIn('.sealed', statement)

    def test_lists(self):
        made = [self.create(f'{user}:p')['id'] for user in 'uuv']
        backlog_store.change(self.db, made[0], backlog_model.OPEN, base.NOW,
                             state=backlog_model.FAILED,
                             reason='No valid host.')
        self.assertEqual(set(made), set(self.ids()))
        self.assertEqual(made[:1], self.ids('?status=failed'))
        self.assertEqual(made[2:], self.ids('?user_id=v'))
        page = self.get(f'{PATH}?limit=2')
        self.assertEqual(2, len(page['requests']))
        self.assertNotIn('body', page['requests'][0])
        marker = page['requests'][-1]['id']
        self.assertIn(f'marker={marker}', page['requests_links'][0]['href'])
        rest = self.ids(f'?limit=2&marker={marker}')
        self.assertEqual(set(made), {*rest, *(
            item['id'] for item in page['requests'])})
        self.get(f'{PATH}?marker={UNKNOWN}', code=400)
        self.get(f'{PATH}?marker={made[0]}', 'u:q', 400)

    def test_waits_for_and_history_are_shown(self):
        uuid = self.create(count=2)['id']
        backlog_store.change(self.db, uuid, backlog_model.OPEN, base.NOW,
                             position=3,
                             estimate_s=60, waits_for={
                                 'code': 'room', 'text': 'No host has room.',
                                 'lacks': {'VCPU': 2}})
        plain = {'code': 'room', 'text': 'No host has room.'}
        shown = self.show(uuid)
        self.assertEqual((3, 60, plain), (
            shown['position'], shown['estimate_s'], shown['waits_for']))
        details = {**plain, 'lacks': {'VCPU': 2}}
        self.assertEqual(details, self.show(uuid, ADMIN)['waits_for'])
        for token, query, expected in (
                ('u:p', '', plain), (ADMIN, '?project_id=p', details)):
            item, = self.get(f'{PATH}{query}', token)['requests']
            self.assertEqual(expected, item['waits_for'])
        self.boots(uuid)
        self.assertTrue(backlog_store.record(
            self.db, uuid, backlog_model.OPEN, base.NOW,
            boot_outcome.Transition(
                backlog_model.PLACING, {}, (backlog_model.OwnServer(
                    UNKNOWN, 1, backlog_model.RUNNING, base.NOW),))))
        shown = self.show(uuid)
        self.assertEqual((None, None, {}), (
            shown['position'], shown['estimate_s'], shown['waits_for']))
        self.assertEqual([{'id': UNKNOWN, 'status': 'running',
                           'since': '2026-11-20T12:00:00Z'}],
                         shown['servers'])
        self.assertEqual(['waiting', 'placing'], [
            change['status'] for change in shown['history']])


class TestChange(BacklogTestCase):

    def test_wishes(self):
        uuid = self.create(longest_wait_s=60, server=SPOT)['id']
        at = in_hours(5)
        changed = self.change(uuid, name='other', not_after=at,
                              longest_wait_s=None, priorities={'cores': 2},
                              comes_back=True, most_returns=2,
                              **{'class': 'gold'})
        self.assertEqual(
            ('other', at, None, 2, True, 2, 'gold', 'batch'),
            (changed['name'], changed['not_after'],
             changed['longest_wait_s'], changed['priorities']['cores'],
             changed['comes_back'], changed['most_returns'],
             changed['class'], changed['body']['server']['name']))
        self.assertEqual(changed, self.show(uuid))
        self.change(uuid, priorities=None, **{'class': ''})

    def trust(self, uuid):
        return backlog_store.get(self.db, uuid).trust_id

    def test_a_trust_expires_soon_after_the_last_start(self):
        uuid = self.create(not_after=in_hours(24))['id']
        kept = backlog_store.get(self.db, uuid)
        expires_at = self.trusts.expiries[kept.trust_id]
        self.assertEqual(expires_at, kept.trust_until)
        self.assertLess(expires_at, timeutils.utcnow()
                        + datetime.timedelta(days=10))
        # Longer, as long as the trust lasts.
        self.change(uuid, ADMIN, not_after=in_hours(5 * 24))
        self.assertEqual(kept.trust_id, self.trust(uuid))

    def test_a_later_start_renews_the_trust(self):
        uuid = self.create(not_after=in_hours(24))['id']
        for values, until in (({'not_after': in_hours(240)}, True),
                              ({'not_after': None}, False)):
            old = self.trust(uuid)
            self.assertIn('only the user of the request', self.change(
                uuid, ADMIN, 403, **values))
            self.assertEqual(old, self.trust(uuid))
            self.change(uuid, **values)
            kept = backlog_store.get(self.db, uuid)
            self.assertNotEqual(old, kept.trust_id)
            self.assertEqual(until, kept.trust_until is not None)
            # An engine may have begun to use the old one.
            self.assertIn(old, self.trusts.made)
            orphan_trusts.OrphanTrusts(self.db, self.trusts).clear(
                timeutils.utcnow() + datetime.timedelta(seconds=601))
            self.assertEqual([kept.trust_id], list(self.trusts.made))
            self.assertEqual([], backlog_submissions.older(
                self.db, datetime.datetime(2100, 1, 1)))

    def test_times_after_all_trusts(self):
        for at in ('9990-01-01T00:00:00Z', '9999-12-31T23:59:59Z'):
            uuid = self.create(not_after=at)['id']
            trust = self.trust(uuid)
            self.change(uuid, name='other')
            self.change(uuid, not_after=in_hours(24))
            self.change(uuid, not_after=at)
            self.assertEqual(trust, self.trust(uuid))

    def test_longer_trusts_of_a_day(self):
        self.conf.set_override('max_created_per_day', 3, 'backlog')
        uuid = self.create(not_after=in_hours(24))['id']
        for days in (100, 1000):
            self.change(uuid, not_after=in_hours(24 * days))
        self.assertIn('max_created_per_day would be exceeded: 3 allowed, 3 '
                      'used', self.change(
                          uuid, code=403, not_after=in_hours(24 * 10000)))
        self.assertEqual(3, len(self.trusts.made))
        self.change(uuid, name='other')
        self.create('u:q')
        self.clear_up()
        self.change(uuid, not_after=in_hours(24 * 10000))

    def test_a_new_trust_is_deleted_if_the_request_has_changed(self):
        uuid = self.create(not_after=in_hours(24))['id']
        old, create = self.trust(uuid), self.trusts.create

        def end_meanwhile(*args):
            self.becomes(uuid, backlog_model.CANCELLED)
            return create(*args)

        with mock.patch.object(self.trusts, 'create', end_meanwhile):
            self.change(uuid, code=409, not_after=None)
        self.assertEqual(old, self.trust(uuid))
        orphan_trusts.OrphanTrusts(self.db, self.trusts).clear(
            timeutils.utcnow() + datetime.timedelta(seconds=601))
        self.assertEqual([old], list(self.trusts.made))

    def test_a_failed_renewal_of_the_trust_changes_nothing(self):
        uuid = self.create(not_after=in_hours(24))['id']
        before = self.show(uuid)
        away = keystone_trusts.KeystoneUnavailable('away')
        for fault, code in ((keystone_trusts.TrustRefused('no'), 403),
                            (away, 503)):
            self.trusts.fails['create'] = fault
            self.change(uuid, code=code, not_after=None)
        self.assertEqual(before, self.show(uuid))

    def test_invalid_values(self):
        uuid = self.create(not_before=in_hours(2))['id']
        for field, values in (
                ('not_after', {'not_after': in_hours(1)}),
                ('class', {'class': 'silver'}),
                ('most_returns', {'most_returns': 1}),
                ('count', {'count': 1000}),
                ('least_count', {'least_count': 2})):
            self.assertIn(f"'request.{field}'",
                          self.change(uuid, code=400, **values))
        self.patch(f'{PATH}/{uuid}', {'request': {}}, code=400)
        self.patch(f'{PATH}/{uuid}', {'request': {'flavors': []}}, code=400)

    def test_count(self):
        uuid = self.create(count=2)['id']
        changed = self.change(uuid, count=3)
        # All or nothing as before.
        self.assertEqual((3, 3), (changed['count'], changed['least_count']))
        changed = self.change(uuid, least_count=1)
        self.assertEqual((3, 1), (changed['count'], changed['least_count']))
        self.boots(uuid)
        self.assertIn('cannot be changed after',
                      self.change(uuid, code=409, count=4))
        self.change(uuid, name='still')

    def test_not_before(self):
        """Its clocks begin with it, and cannot be reset."""
        uuid = self.create()['id']
        at = in_hours(2)
        self.assertEqual(at, self.change(uuid, not_before=at)['not_before'])
        self.boots(uuid)
        for other in (in_hours(3), None):
            self.assertIn('not_before of request',
                          self.change(uuid, code=409, not_before=other))
        self.change(uuid, name='still', not_before=at)

    def test_values_that_have_become_invalid_may_stay(self):
        uuid = self.create()['id']
        backlog_store.change(self.db, uuid, backlog_model.OPEN, base.NOW,
                             class_name='bronze', not_after=base.NOW)
        self.change(uuid, name='other')

    def test_a_closed_request_cannot_be_changed(self):
        uuid = self.create()['id']
        self.becomes(uuid, backlog_model.DONE)
        self.assertIn('is done', self.change(uuid, code=409, name='x'))

    def test_a_request_that_has_started_refuses_a_new_count(self):
        uuid = self.create()['id']
        found = backlog_store.get(self.db, uuid)
        self.boots(uuid)
        with self.assertRaises(exceptions.WrongState):
            self.services.submissions.change(None, 'u:p', found, {'count': 2})


class TestCancel(BacklogTestCase):

    def test_a_waiting_request(self):
        uuid = self.create()['id']
        self.delete(f'{PATH}/{uuid}')
        shown = self.show(uuid)
        self.assertEqual(('cancelled', 'Cancelled by a user.'),
                         (shown['status'], shown['reason']))
        self.assertEqual({}, self.trusts.made)
        self.assertEqual('', backlog_store.get(self.db, uuid).trust_id)
        self.delete(f'{PATH}/{uuid}', code=409)

    def test_state_changes_are_notified(self):
        uuid = self.create()['id']
        self.change(uuid, name='other')
        self.create(code=400, count=0)
        self.delete(f'{PATH}/{uuid}')
        self.assertEqual([(uuid, '', 'waiting'),
                          (uuid, 'waiting', 'cancelled')], self.told)

    def test_by_an_administrator(self):
        self.delete(f'{PATH}/{self.create()["id"]}', ADMIN)

    def test_servers_are_for_the_engine_to_delete(self):
        for query, ends in (('', False), ('?servers=true', True),
                            ('?servers=false', False)):
            uuid = self.create()['id']
            self.boots(uuid)
            self.becomes(uuid, backlog_model.ACTIVE)
            self.delete(f'{PATH}/{uuid}{query}')
            kept = backlog_store.get(self.db, uuid)
            self.assertEqual((backlog_model.CANCELLED, ends),
                             (kept.state, kept.ends_servers))
            # With it the engine clears up, and deletes it then.
            self.assertIn(kept.trust_id, self.trusts.made)

    def test_the_trust_of_a_placing_request_is_kept(self):
        uuid = self.create()['id']
        self.boots(uuid)
        self.delete(f'{PATH}/{uuid}')
        # It finds out what has become of it.
        self.assertEqual(1, len(self.trusts.made))

    def test_keystone_is_away(self):
        uuid = self.create()['id']
        self.trusts.fails['delete'] = keystone_trusts.KeystoneUnavailable(
            'away')
        self.delete(f'{PATH}/{uuid}')
        self.assertIn(backlog_store.get(self.db, uuid).trust_id,
                      self.trusts.made)

    def test_a_request_that_changes_during_the_cancellation(self):
        uuid = self.create()['id']
        found = backlog_store.get(self.db, uuid)
        self.boots(uuid)
        self.services.submissions.cancel(found)
        self.assertEqual(backlog_model.CANCELLED,
                         backlog_store.get(self.db, uuid).state)
        self.becomes(uuid, backlog_model.FAILED)
        with self.assertRaises(exceptions.WrongState):
            self.services.submissions.cancel(found)


class TestNumbers(BacklogTestCase):

    def setUp(self):
        super().setUp()
        self.now = timeutils.utcnow().replace(microsecond=0)

    def add(self, uuid, *changes, **values):
        """A request with a history: (hours ago, state)."""
        times = [self.now - datetime.timedelta(hours=hours)
                 for hours, _state in changes]
        backlog_store.create(self.db, test_backlog_store.request(
            uuid, created_at=times[0], updated_at=times[0],
            **{'project_id': 'p', **values}))
        for at, (_hours, state) in zip(times[1:], changes[1:], strict=True):
            backlog_store.change(self.db, uuid, backlog_model.STATES, at,
                                 state=state)

    def test_statistics(self):
        self.add('r1', (3, 'waiting'), (2, 'active'), class_name='gold')
        self.add('r2', (9, 'waiting'), (2, 'active'), (1, 'done'))
        self.add('r3', (50, 'waiting'), (40, 'active'))
        self.add('r4', (1, 'waiting'), project_id='q')
        found = self.get('/v1/requests-statistics')['requests_statistics']
        self.assertEqual(24, found['hours'])
        self.assertEqual({
            'requests': 3, 'requests_by_status': {'active': 2, 'done': 1},
            'started': 2, 'started_per_hour': 2 / 24,
            'median_wait_s': 3600, 'p95_wait_s': 7 * 3600}, found['total'])
        self.assertEqual(['', 'gold'], [
            item['class'] for item in found['classes']])
        self.assertEqual(
            (1, 3600), (found['classes'][1]['started'],
                        found['classes'][1]['median_wait_s']))
        found = self.get('/v1/requests-statistics?hours=100', ADMIN)
        total = found['requests_statistics']['total']
        self.assertEqual((4, 3, 1), (
            total['requests'], total['started'],
            total['requests_by_status']['waiting']))

    def test_no_requests(self):
        total = self.get('/v1/requests-statistics')[
            'requests_statistics']['total']
        self.assertEqual((0, None), (total['requests'],
                                     total['median_wait_s']))
        self.assertEqual([], self.get('/v1/requests-report')[
            'requests_report']['classes'])

    def test_report(self):
        self.add('r1', (90, 'waiting'), (80, 'active'), (75, 'evicted'),
                 (50, 'done'), class_name='gold')
        self.add('r2', (500, 'waiting'), (400, 'active'), (300, 'done'))
        self.add('r3', (90, 'waiting'), project_id='q')
        since = in_hours(-100)
        found = self.get(f'/v1/requests-report?since={since}')[
            'requests_report']
        self.assertEqual(since, found['since'])
        gold, = found['classes']
        self.assertEqual(
            ('gold', 1, 5 / 40, 5 * 3600, 35 * 3600, 100), (
                gold['class'], gold['requests'], gold['availability'],
                gold['running_s'], gold['waiting_s'], len(gold['series'])))
        self.assertEqual({0.0, 1.0, None}, {
            item['availability'] for item in gold['series']
            if item['availability'] in (0, 1, None)})
        found = self.get(f'/v1/requests-report?since={since}', ADMIN)
        self.assertEqual(2, len(found['requests_report']['classes']))

    def test_invalid_queries(self):
        for query in (f'since={in_hours(1)}', 'since=2000-01-01T00:00:00Z',
                      'until=0001-01-01T00:00:00Z'):
            self.get(f'/v1/requests-report?{query}', code=400)
        self.get('/v1/requests-statistics?hours=0', code=400)
