# SPDX-License-Identifier: Apache-2.0
"""Tests of formats of published traces, with samples of our own."""

import contextlib
import gzip
import io
import os
import pathlib
import random
import sqlite3
import tempfile
import unittest

from nova_preempt.core.model import SECOND
from nova_preempt.simulator.traces import azure
from nova_preempt.simulator.traces import line_reader
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import trace_formats
from nova_preempt.simulator.traces import trace_model

SAMPLES = pathlib.Path(__file__).parent / 'samples'
#: A small machine, so that shares are whole numbers.
SCALE = trace_model.MachineSize(vcpus=8, memory_mb=8192, disk_gb=1000)

FILES = {'swf': 'jobs.swf', 'google2011': 'google2011.csv',
         'google2019': 'google2019.json', 'azure': 'vmtable.csv',
         'json': 'own.jsonl', 'alibaba2018': 'batch_task.csv'}


def read(name, path=None):
    """Return (events, omitted records)."""
    trace = trace_formats.Trace(name, [str(path or SAMPLES / FILES[name])],
                                SCALE)
    return list(trace), dict(trace.skipped)


class TestSamples(unittest.TestCase):

    maxDiff = None

    def test_swf(self):
        events, skipped = read('swf')
        self.assertEqual([
            trace_model.Boot(0, '1', {'VCPU': 4, 'MEMORY_MB': 4}, '',
                             'queue-0', 3600 * SECOND, 'user-7'),
            trace_model.Boot(30_500_000, '2', {'VCPU': 2, 'MEMORY_MB': 4}, '',
                             'queue-1', 60 * SECOND, 'user-8'),
            trace_model.Boot(50 * SECOND, '4.0', {'VCPU': 8}, '', 'queue',
                             600 * SECOND, 'user-0'),
            trace_model.Boot(50 * SECOND, '4.1', {'VCPU': 1}, '', 'queue',
                             600 * SECOND, 'user-0')], events)
        self.assertEqual({'did not run': 1}, skipped)

    def test_google_2011(self):
        events, skipped = read('google2011')
        self.assertEqual([
            trace_model.Boot(600 * SECOND, '42-0', {
                'VCPU': 1, 'MEMORY_MB': 2048, 'DISK_GB': 1}, '', 'gold',
                None, 'alice'),
            trace_model.Boot(602 * SECOND, '44-1', {
                'VCPU': 4, 'MEMORY_MB': 82}, '', 'silver', None, 'carol'),
            trace_model.End(605 * SECOND, '42-0')], events)
        self.assertEqual({'no resources': 1, 'after the trace': 1}, skipped)

    def test_google_2019(self):
        events, skipped = read('google2019')
        self.assertEqual([
            trace_model.Boot(0, '7-0', {'VCPU': 2, 'MEMORY_MB': 4096}, '',
                             'production'),
            trace_model.Boot(5 * SECOND, '8-0', {'VCPU': 4, 'MEMORY_MB': 1024},
                             '',
                             'best-effort'),
            trace_model.End(9 * SECOND, '8-0')], events)
        self.assertEqual({'within an alloc set': 1, 'after the trace': 1},
                         skipped)

    def test_azure_is_put_in_order(self):
        events, _ = read('azure')
        self.assertEqual([
            trace_model.Boot(0, 'vm1', {'VCPU': 30, 'MEMORY_MB': 71680}, '',
                             'interactive', 2592000 * SECOND, 'sub1'),
            trace_model.Boot(300 * SECOND, 'vm2',
                             {'VCPU': 2, 'MEMORY_MB': 3584},
                             '', 'delay-insensitive', 600 * SECOND, 'sub1'),
            trace_model.Boot(300 * SECOND, 'vm3',
                             {'VCPU': 4, 'MEMORY_MB': 8192},
                             '', 'unknown', 0, 'sub2')], events)

    def test_alibaba_tasks(self):
        events, skipped = read('alibaba2018')
        self.assertEqual([
            trace_model.Boot(86300 * SECOND, 'j_1.R2_1.0', {
                'MEMORY_MB': 32, 'VCPU': 1}, '', 'batch', 160 * SECOND),
            *(trace_model.Boot(86400 * SECOND, f'j_1.M1.{nth}', {
                'MEMORY_MB': 41, 'VCPU': 1}, '', 'batch', 60 * SECOND)
              for nth in range(2))], events)
        self.assertEqual({'did not run': 2, 'no resources': 1}, skipped)

    def test_alibaba_containers(self):
        events, _ = read('alibaba2018', SAMPLES / 'container_meta.csv')
        self.assertEqual([
            trace_model.Boot(0, 'c_1', {'MEMORY_MB': 128, 'VCPU': 4}, '',
                             'container', None, 'app_1'),
            trace_model.Boot(10 * SECOND, 'c_2', {'MEMORY_MB': 257, 'VCPU': 8},
                             '',
                             'container', None, 'app_2')], events)

    def test_own(self):
        events, _ = read('json')
        self.assertEqual([
            trace_model.Boot(0, 'one', None, 'm1.small', 'normal',
                             3600 * SECOND),
            trace_model.Boot(500_000, 'two', {'MEMORY_MB': 2048, 'VCPU': 1},
                             '',
                             'preemptible', None, 'p'),
            trace_model.End(90 * SECOND, 'two')], events)

    def test_formats_are_guessed(self):
        self.assertEqual(
            ['swf', 'json', 'azure-packing', '', ''],
            [trace_formats.guess(name) for name in (
                'a.swf.gz', 'b.jsonl', 'c.sqlite', 'd.csv', 'e.csv.gz')])


class TestPacking(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "trace #1's.sqlite")

    def write(self, *servers):
        with contextlib.closing(sqlite3.connect(self.path)) as base:
            base.execute('CREATE TABLE vm (vmId, tenantId, vmTypeId, '
                         'priority, starttime, endtime)')
            base.execute('CREATE TABLE vmType (id, vmTypeId, machineId, core,'
                         ' memory, hdd, ssd, nic)')
            base.executemany('INSERT INTO vmType VALUES (?,?,?,?,?,?,?,?)', (
                (1, 5, 3, 1.0, 1.0, 1.0, 0, 0),
                (2, 5, 2, 0.5, 0.25, None, 0.125, 0)))
            base.executemany('INSERT INTO vm VALUES (?,?,?,?,?,?)', servers)
            base.commit()

    def test_servers(self):
        self.write((3, 9, 5, 1, 0.5, None), (1, 9, 5, 0, -1.5, 0.25),
                   (2, 9, 5, 0, -2.5, -0.25), (4, 9, 6, 0, 1.0, 2.0))
        events, skipped = read('azure-packing', self.path)
        resources = {'VCPU': 4, 'MEMORY_MB': 2048, 'DISK_GB': 125}
        self.assertEqual([
            trace_model.Boot(0, '1', resources, '', 'normal', 21600 * SECOND,
                             '9'),
            trace_model.Boot(43200 * SECOND, '3', resources, '', 'preemptible',
                             None, '9')], events)
        self.assertEqual({'ended before the trace': 1, 'unknown VM type': 1},
                         skipped)

    def test_errors_name_the_mistake(self):
        for server, why in (
                ((1, 9, 5, 2, 0, 1), 'priority is 2'),
                ((1, 9, 5, 0, 2, 1), 'endtime is 1, before starttime, 2'),
                ((1, 9, 5, 0, 'x', 1), "starttime is 'x', not a number"),
                ((1, 9, 5, 0, 1e300, None), 'starttime is 1e+300')):
            with self.subTest(why):
                pathlib.Path(self.path).unlink(missing_ok=True)
                self.write(server)
                with self.assertRaisesRegex(trace_model.TraceError,
                                            'vmId 1: ') \
                        as raised:
                    read('azure-packing', self.path)
                self.assertIn(why, str(raised.exception))

    def test_types_are_not_searched_for_each_server(self):
        self.write()
        with contextlib.closing(sqlite3.connect(self.path)) as base:
            azure._read_types(base)
            plan = [row[-1] for row in base.execute(
                f'EXPLAIN QUERY PLAN {azure._QUERY}')]
        self.assertIn('USING INDEX first_type', '\n'.join(plan))
        self.assertNotIn('CORRELATED', '\n'.join(plan))

    def test_an_id_that_is_taken(self):
        self.write((1, 9, 5, 0, 0, 1), (1, 9, 5, 0, 3, 4))
        with self.assertRaisesRegex(
                trace_model.TraceError,
                f'{self.path}, rowid 2, vmId 1: the id .1. is already used: '
                f'{self.path}, rowid 1, vmId 1$'):
            read('azure-packing', self.path)

    def test_no_server(self):
        self.write((4, 9, 6, 0, 1.0, 2.0))
        with self.assertRaisesRegex(
                trace_model.TraceError,
                r'the trace is empty \(1 records are '
                                  r'omitted: unknown VM type\)$'):
            read('azure-packing', self.path)

    def test_no_database(self):
        with self.assertRaisesRegex(trace_model.TraceError, 'no such file'):
            read('azure-packing', self.path)
        pathlib.Path(self.path).write_bytes(b'x' * 10000)
        with self.assertRaisesRegex(trace_model.TraceError, 'not a database'):
            read('azure-packing', self.path)


class TestErrors(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, 'trace')

    def refused(self, name, content, why):
        data = content if isinstance(content, bytes) else content.encode()
        pathlib.Path(self.path).write_bytes(data)
        with self.assertRaises(trace_model.TraceError) as raised:
            read(name, self.path)
        self.assertIn(why, str(raised.exception))
        self.assertTrue(str(raised.exception).startswith(self.path))

    def test_an_empty_trace(self):
        for name in ('json', 'swf', 'azure'):
            self.refused(name, '', ': the trace is empty')
            self.refused(name, '\n\n', ': the trace is empty')
        self.refused('swf', '; a comment\n', ': the trace is empty')

    def test_an_id_that_is_taken(self):
        """This holds after the first has ended and in other files."""
        boot = '{"t": %d, "kind": "boot", "id": "a", "resources": {}}\n'
        boot = boot.replace('{}', '{"VCPU": 1}')
        reserve = '{"t": 9, "kind": "reserve", "id": "a"}\n'
        end = '{"t": 2, "kind": "end", "id": "a"}\n'
        for again in (boot % 5, reserve):
            self.refused('json', boot % 1 + end + again,
                         f"line 3: the id 'a' is already used: {self.path}, "
                         'line 1')
        self.refused('azure', 2 * (SAMPLES / FILES['azure']).read_text(
            encoding='utf-8'), "is already used: ")
        pathlib.Path(self.path).write_text(boot % 1, encoding='utf-8')
        with self.assertRaisesRegex(trace_model.TraceError, 'line 1: the id'):
            list(trace_formats.Trace('json', [self.path, self.path]))

    def test_ids_for_which_the_disk_has_no_room(self):
        ids = line_reader.UsedIds()
        ids._base.execute('PRAGMA max_page_count = 8')
        with self.assertRaisesRegex(
                trace_model.TraceError,
                'temporary file: database or disk is full'):
            for number in range(10_000):
                ids.add(f'{number}', 'somewhere')

    def test_a_byte_order_mark(self):
        mark = '\ufeff'.encode()
        for name in ('swf', 'json', 'google2011', 'google2019', 'azure'):
            expected = read(name)
            pathlib.Path(self.path).write_bytes(
                mark + (SAMPLES / FILES[name]).read_bytes())
            self.assertEqual(expected, read(name, self.path), name)

    def test_a_comment_in_another_encoding(self):
        expected = read('swf')
        data = (SAMPLES / FILES['swf']).read_bytes()
        pathlib.Path(self.path).write_bytes(
            '; Installation: Universit\u00e9\n'.encode('latin-1') + data)
        self.assertEqual(expected, read('swf', self.path))
        self.refused('json', '{"t": 1, "kind": "end", "id": "\u00e9"}'.encode(
            'latin-1'), 'line 1: invalid UTF-8')

    def test_broken_lines(self):
        good = '{"t": 1, "kind": "end", "id": "a"}\n'
        boot = '{"t": 1, "kind": "boot", "id": "a", "resources": %s}'
        reserve = '{"t": 1, "kind": "reserve", "id": "a", %s}'
        for line, why in (
                ('{', 'line 2: invalid JSON: Expecting'),
                ('[]', 'line 2: the line must be a JSON object'),
                ('[' * 100_000, 'line 2: the JSON is nested too deeply'),
                ('{"t": NaN, "kind": "end", "id": "a"}', 'NaN is not a'),
                ('{"t": -1, "kind": "end", "id": "a"}',
                 't is -1; it must be from 0 to 1e+10'),
                ('{"t": 1e400, "kind": "end", "id": "a"}', 't is inf'),
                ('{"t": true, "kind": "end", "id": "a"}', 't is True, not'),
                ('{"t": 1' + '0' * 5000 + ', "kind": "end", "id": "a"}',
                 'line 2: '),
                ('{"t": 1, "kind": "stop", "id": "a"}', "kind is 'stop'"),
                ('{"t": 1, "kind": {}, "id": "a"}', 'kind is {}'),
                ('{"t": 1, "kind": "end", "id": ""}', "id is ''; it must be"),
                ('{"t": 1, "kind": "end", "id": "a", "x": 1}', "'x' is not"),
                ('{"t": 1, "kind": "boot", "id": "a"}', 'give eith'),
                (boot % '{"VCPU": 1.5}', 'of VCPU is 1.5, not an integer'),
                (boot % '{"VCPU": -1}', 'of VCPU is -1; it must be from 0'),
                (boot % '{}', 'resources must be'),
                (boot % '[1]', 'resources must be'),
                (reserve % '"hosts": 0', 'hosts is 0; it must be from 1'),
                (reserve % '"hosts": 1e99', 'hosts is 1e+99; it must be'),
                (reserve % '"start": 1.5', 'start is 1.5, not an integer'),
                (reserve % '"end": -1', 'end is -1; it must be from 0'),
                (reserve % '"duration": 0', 'duration is 0; it must be'),
                (reserve % '"end_action": "stop"', "end_action is 'stop'"),
                (reserve % '"end_action": {}', 'end_action is {}'),
                (reserve % '"host_properties": ["like", 1]',
                 'unknown operator'),
                (reserve % '"host_properties": 7', 'it must be a list'),
                (reserve % '"resources": {}, "host_properties": []',
                 'give either'),
                (reserve % '"flavor": "x"', "'flavor' is not a key"),
                (boot % '{"VCPU": 1}, "reservation": 5',
                 'reservation is 5; it must be a string')):
            with self.subTest(line[:60]):
                self.refused('json', good + line, why)

    def test_reservations(self):
        """They are read as they are written."""
        lines = [
            '{"t": 0, "kind": "reserve", "id": "a", "hosts": 1}',
            ('{"t": 1.5, "kind": "reserve", "id": "b", "hosts": 2, "start": '
             '60, "end": 120, "duration": 30, "host_properties": [">", '
             '"$vcpus", 3], "project": "p", "end_action": "delete"}'),
            ('{"t": 2, "kind": "boot", "id": "c", "flavor": "x", "class": '
             '"normal", "reservation": "b"}')]
        pathlib.Path(self.path).write_text('\n'.join(lines))
        found = list(trace_formats.Trace('json', [self.path]))
        self.assertEqual(lines, [native_format.dump(event) for event in found])
        self.assertEqual(trace_model.Reserve(
            1_500_000, 'b', 2, 60, 120, 30, ['>', '$vcpus', 3], 'p',
            'delete'), found[1])

    def test_invalid_host_properties(self):
        for text, query in (('{"VCPU": 2, "DISK_GB": 0}', [
                'and', ['>=', '$inventory.VCPU', 2]]), ('{"VCPU": 0}', None)):
            pathlib.Path(self.path).write_text(
                f'{{"t": 0, "kind": "reserve", "id": "a", "duration": 5, '
                f'"resources": {text}}}')
            (found,) = trace_formats.Trace('json', [self.path])
            self.assertEqual(query, found.query)

    def test_broken_tables(self):
        swf = ['1', '0', '0', '60', '1', '-1', '-1', '1', '60', '-1', '1',
               '1', '1', '-1', '0', '-1', '-1', '-1']
        self.refused('swf', ' '.join(swf[:-1]), 'line 1: 17 fields')
        for column, value in ((1, '-5'), (1, 'nan'), (3, '1_0'), (7, '1e99'),
                              (7, '\uff12')):
            fields = list(swf)
            fields[column] = value
            with self.subTest(value):
                self.refused('swf', ' '.join(fields), 'line 1: ')
        self.refused('swf', ' '.join([*swf[:7], '9999999', *swf[8:]]),
                     'the maximum is 100000')
        self.refused('azure', 'a,b,c,10,5,0,0,0,Unknown,1,1',
                     'vmdeleted is 5, before vmcreated, 10')
        self.refused('azure', 'a,b,c', '3 columns instead of 11')
        self.refused('azure', '"a,b', 'line 1: ')
        self.refused('google2011', ','.join(['1'] * 5 + ['9'] + ['1'] * 7),
                     'event type is')
        self.refused('google2019', '{"time": "x"}', "time is 'x', not a")
        self.refused('alibaba2018', 'a,b', '2 columns')

    def test_long_lines(self):
        self.refused('json', b'\n' + b'x' * 10_000_000,
                     'line 2: longer than 1048576 bytes')

    def test_not_text(self):
        self.refused('json', b'\xff\xfe', 'line 1: invalid UTF-8')

    def test_no_file(self):
        with self.assertRaisesRegex(trace_model.TraceError, 'No such file'):
            read('json', self.path)

    def test_out_of_order(self):
        line = '{"t": %d, "kind": "end", "id": "a"}\n'
        pathlib.Path(self.path).write_text(line % 2 + line % 1)
        with self.assertRaisesRegex(trace_model.TraceError,
                                    'line 2: .* sort the trace'):
            read('json', self.path)
        trace = trace_formats.Trace('json', [self.path], sort=True)
        self.assertEqual([SECOND, 2 * SECOND], [e.at_us for e in trace])

    def test_compressed(self):
        packed = gzip.compress((SAMPLES / 'own.jsonl').read_bytes())
        self.path += '.gz'
        pathlib.Path(self.path).write_bytes(packed)
        self.assertEqual(read('json')[0], read('json', self.path)[0])
        for broken in (packed[:-20], b'x' + packed[1:],
                       packed[:30] + b'\0\0' + packed[32:]):
            self.refused('json', broken, 'cannot be decompressed')


class TestOrder(unittest.TestCase):

    def test_more_than_memory_holds(self):
        chance = random.Random(1)
        events = [trace_model.End(chance.randrange(50), str(nth))
                  for nth in range(1000)]
        expected = sorted(events, key=lambda event: event.at_us)
        self.assertEqual(expected, list(trace_formats.in_order(events, 7)))
        self.assertEqual(expected, list(trace_formats.in_order(events)))


class TestFuzz(unittest.TestCase):
    """Any file is read or refused with the place of the fault."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, 'trace')

    def test_changed_samples(self):
        chance = random.Random(20261122)
        read_well = refused = 0
        for name, sample in FILES.items():
            content = (SAMPLES / sample).read_bytes()
            for _ in range(150):
                data = bytearray(content)
                for _ in range(chance.randrange(1, 4)):
                    at = chance.randrange(len(data))
                    data[at:at + chance.randrange(3)] = chance.choice((
                        b'', b'\0', b'-', b',', b'"', b'\n', b'9' * 30,
                        b'e9', b'nan', b' ', b'\xff', b'{', b'null'))
                pathlib.Path(self.path).write_bytes(data)
                try:
                    events, _ = read(name, self.path)
                except trace_model.TraceError as exc:
                    self.assertIn(self.path, str(exc))
                    refused += 1
                    continue
                read_well += 1
                times = [event.at_us for event in events]
                self.assertEqual(sorted(times), times)
                self.assertTrue(all(0 <= at <= trace_model.LATEST_US
                                    for at in times))
        self.assertGreater(read_well, 100)
        self.assertGreater(refused, 100)


class TestWriting(unittest.TestCase):

    def test_written_traces_can_be_read(self):
        for name in FILES:
            events, _ = read(name)
            stream = io.StringIO()
            self.assertEqual(len(events), native_format.write(stream, events))
            reader = native_format.Reader(SCALE)
            again = [event for line in stream.getvalue().splitlines()
                     for event in reader.parse(line)]
            with self.subTest(name):
                self.assertEqual(events, again)
