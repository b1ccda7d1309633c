# SPDX-License-Identifier: Apache-2.0
"""Values in addresses and forms that no page offers: each gets an answer."""

from selenium.common import exceptions
from selenium.webdriver.common.by import By

from tests.dashboard import base
from tests.dashboard import scene

WRONG = 'Something went wrong'
HUGE = '9' * 400
TEXTS = ('%00', '..', '%2E%2E%2F%3Fa%23', HUGE, '-1')
FORM = '/project/reservations/create/'


class TestAddresses(base.TestCase):

    user = 'admin'

    def check_all(self, paths):
        for path in paths:
            with self.subTest(path=path):
                self.open(path, timed=False)
                text = self.text()
                self.assertNotIn(WRONG, text)
                # The page of our panel, or of the list to which it sends.
                self.assertIn('Sign Out', self.browser.page_source)

    def test_pages_of_lists(self):
        self.check_all(
            f'{page}?trail={text}' for text in (*TEXTS, ',,,', ',%00')
            for page in ('/project/reservations/', '/project/backlog/',
                         '/admin/preemptions/'))

    def test_calendar(self):
        self.check_all(
            f'/project/reservations/?{name}={text}'
            for name in ('days', 'hosts') for text in (
                'nan', HUGE, '9' * 5000))

    def test_times_of_the_form(self):
        for value in ('0001-01-01T00:00:00%2B14:00', '%00',
                      '9999-12-31T23:59:59-12:00', '9999-12-31T23:59:59Z',
                      '1969-12-31', '2026-02-30T00:00:00Z'):
            self.check_all([
                f'{FORM}?start={value}&end={value}&quantity={value}',
                f'{FORM}?start=2026-01-01T00:00:00Z&end={value}'])

    def test_hosts(self):
        self.check_all(
            f'/admin/preemption_hosts/{path}{text}' for text in ('', *TEXTS)
            for path in ('?kind=', 'host/?name='))

    def test_sizes_of_pages(self):
        self.addCleanup(self.browser.delete_cookie, 'API_RESULT_PAGE_SIZE')
        for value in ('0', '-1', 'nan', HUGE, '10000'):
            self.browser.add_cookie({'name': 'API_RESULT_PAGE_SIZE',
                                     'value': value})
            self.check_all(('/project/reservations/', '/project/backlog/',
                            '/admin/preemptions/'))

    def test_pause_of_nothing(self):
        self.open('/admin/preemption_pauses/nothing/pause/')
        self.fill('Reason', 'none')
        self.press('Pause')
        self.wait(lambda: 'nothing' in self.text() or WRONG in self.text())
        self.assertNotIn(WRONG, self.text())
        self.assertEqual([], list(self.admin.preemption.pauses()))


class TestForms(base.TestCase):
    """A member whose browser does not check what it sends."""

    def setUp(self):
        super().setUp()
        self.scene = scene.Scene(self.member)
        self.scene.clean()
        self.addCleanup(self.scene.clean)

    def force(self, label, value):
        """Fill in any text, whatever the type of the field."""
        self.browser.execute_script(
            'const field = arguments[0];'
            'field.form.noValidate = true;'
            'if (field.tagName === "INPUT") { field.type = "text"; }'
            'if (field.tagName === "SELECT") {'
            '  field.add(new Option(arguments[1], arguments[1])); }'
            'field.removeAttribute("maxlength");'
            'field.value = arguments[1];', self.field(label), value)

    def refused(self, path, button, values, more=()):
        """Send each value; the form has to say what is wrong with it."""
        for label, value in values:
            with self.subTest(label=label, value=value[:50]):
                self.open(path, timed=False)
                for each in more:
                    self.force(*each)
                self.force(label, value)
                page = self.browser.find_element(By.TAG_NAME, 'html')
                self.press(button)
                self.wait(lambda old=page: self.is_gone(old))
                self.assertNotIn(WRONG, self.text())
                self.assertEqual([], [
                    item for item in self.member.preemption.reservations()
                    if item.status == 'pending'])
                self.assertTrue(self.browser.find_elements(
                    By.CSS_SELECTOR, '.alert-danger, .has-error, .error'))

    def is_gone(self, element):
        try:
            return not element.is_enabled()
        except exceptions.StaleElementReferenceException:
            return True

    def test_reserve(self):
        self.refused(FORM, 'Reserve', (
            ('Length in hours', 'nan'), ('Length in hours', 'inf'),
            ('Length in hours', '1e308'), ('Length in hours', '1e300'),
            ('Length in hours', '1e12'), ('Length in hours', '-1'),
            ('Number of hosts', HUGE), ('Number of hosts', '0'),
            ('Start', '0001-01-01T00:00'), ('Start', '9999-12-31T23:59'),
            ('Start', 'soon'), ('Latest end', '9999-12-31T23:59'),
            ('Latest end', '0001-01-01T00:00'),
            ('vCPUs of each host', HUGE),
            ('Name', 'a' * 300), ('Name', 'a\0b'),
            ('Filter of hosts', '[' * 100_000),
            ('Filter of hosts', '[NaN]'), ('Filter of hosts', '[1e999]'),
            ('Filter of hosts', '["=", "$vcpus", "\\ud800"]'),
            ('Filter of hosts', '["=", "$vcpus", "\\u0000"]'),
            ('Filter of hosts', '[' + '9' * 5000 + ']'),
            ('At the end', 'explode'),
        ), (('Start', scene.hours(24)[:16]),))

    def test_change(self):
        reserved = self.scene.reserve('kept', 24, 1)
        path = f'/project/reservations/{reserved.id}/update/'
        for label, value in (
                ('End', '9999-12-31T23:59'), ('End', '0001-01-01T00:00'),
                ('End', ''), ('At the end', 'explode'), ('Name', 'a' * 300)):
            with self.subTest(label=label, value=value[:50]):
                self.open(path, timed=False)
                self.force(label, value)
                page = self.browser.find_element(By.TAG_NAME, 'html')
                self.press('Save Changes')
                self.wait(lambda old=page: self.is_gone(old))
                self.assertNotIn(WRONG, self.text())
                found = self.member.preemption.get_reservation(reserved.id)
                self.assertEqual(
                    ('kept', reserved.end_at, reserved.end_action),
                    (found.name, found.end_at, found.end_action))

    def test_submit(self):
        self.refused('/project/backlog/create/', 'Submit', (
            ('Number of servers', HUGE), ('Number of servers', 'nan'),
            ('Number of servers', '-1'), ('Start with at least', HUGE),
            ('Longest wait in hours', '1e308'),
            ('Longest wait in hours', 'inf'),
            ('Longest wait in hours', '-1'), ('Flavor', 'nothing'),
            ('Image', '../../x'), ('Network', 'nothing'),
            ('On the hosts of a reservation', 'nothing'),
            ('Key pair', '"><script>'), ('Name of the servers', 'a\0b'),
        ), (('Name of the servers', 'absurd'),))
        self.assertIsNone(
            self.member.preemption.find_backlog_request('absurd'))

    def test_names_of_any_language(self):
        name = '日本 Ü'
        self.open(FORM)
        self.force('Name', name)
        self.force('Start', scene.hours(24)[:16])
        self.press('Reserve')
        self.wait_text('Reserved hosts: 1')
        self.assertIn(name, [
            item.name for item in self.member.preemption.reservations()
            if item.status == 'pending'])
