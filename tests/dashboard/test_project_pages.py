# SPDX-License-Identifier: Apache-2.0
"""Pages under Project, their forms, and wrong input."""

import json

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.dashboard import base
from tests.dashboard import scene

INDEX = '/project/reservations/'


class TestReservations(base.TestCase):

    def setUp(self):
        super().setUp()
        self.scene = scene.Scene(self.member)
        self.scene.clean()
        self.addCleanup(self.scene.clean)

    def made(self, name):
        """Return the reservations of a name that are pending."""
        return list(self.member.preemption.reservations(
            name=name, status='pending'))

    def find(self, name):
        return self.made(name)[0]

    def row(self, name):
        return self.wait(lambda: self.browser.find_element(
            By.XPATH, f'//tr[td[contains(., "{name}")]]'))

    def test_calendar(self):
        self.scene.reserve('mine', 24, 24)
        self.open(INDEX)
        self.wait_text('Free: 1 or more hosts')
        links = {link.get_attribute('aria-label') for link in
                 self.browser.find_elements(By.CSS_SELECTOR, 'svg a')}
        self.assertTrue(any(label.startswith('Free from ')
                            for label in links), links)
        self.assertTrue(any(label.startswith('Reservation mine, ')
                            for label in links), links)
        self.picture('reservations')

    def test_click_on_a_free_stretch(self):
        # All hosts that the project may have are taken tomorrow.
        self.scene.reserve('all', 24, 24, quantity=4)
        self.open(INDEX)
        free = self.browser.find_elements(By.CSS_SELECTOR, 'svg a')[0]
        self.assertTrue(free.get_attribute('aria-label').startswith('Free'))
        free.find_element(By.TAG_NAME, 'rect').click()
        hours = float(self.field('Length in hours').get_attribute('value'))
        self.assertLess(hours, 24)
        self.fill('Name', 'clicked')
        self.fill('Length in hours', '2')
        self.press('Reserve')
        self.wait_text('Reserved hosts: 1')
        found = self.find('clicked')
        self.assertEqual(7200, found.duration)
        self.assertEqual(found.start_time, found.start_at)

    def test_without_a_mouse(self):
        self.open(INDEX)
        for _number in range(100):
            active = self.browser.switch_to.active_element
            active.send_keys(Keys.TAB)
            active = self.browser.switch_to.active_element
            if (active.get_attribute('aria-label') or '').startswith('Free '):
                break
        else:
            self.fail('the free stretch is never in focus')
        active.send_keys(Keys.ENTER)
        name = self.field('Name')
        name.send_keys('keys', Keys.ENTER)
        self.wait_text('Reserved hosts: 1')
        self.assertEqual('pending', self.find('keys').status)

    def test_form(self):
        self.open(INDEX)
        self.press('Reserve Hosts')
        self.fill('Name', 'form')
        self.fill('Number of hosts', '2')
        self.fill('Start', scene.hours(48)[:16])
        self.fill('Length in hours', '1.5')
        self.fill('vCPUs of each host', '10')
        self.fill('At the end', 'Delete')
        self.picture('reserve')
        self.check('Only check')
        self.press('Reserve')
        self.wait_text('It is possible from')
        self.assertFalse(self.made('form'))
        self.check('Only check')
        self.press('Reserve')
        self.wait_text('Reserved hosts: 2')
        found, = self.made('form')
        self.assertEqual(
            (2, 5400, 'delete', ['>=', '$vcpus', 10]),
            (found.quantity, found.duration, found.end_action,
             found.host_properties))

    def test_wrong_input(self):
        for label, value, text in (
                ('Number of hosts', '5', 'max_hosts would be exceeded'),
                ('Length in hours', '10000', 'max_duration_s'),
                ('Filter of hosts', '[', 'This is no JSON'),
                ('Filter of hosts', '{}', 'A filter is a list'),
                ('Filter of hosts', '["gt", 1, 2]', 'unknown operator'),
                ('Filter of hosts', '["=", "$nothing", 2]',
                 'no host has the property'),
                ('vCPUs of each host', '11', '0 matching hosts'),
                ('Latest end', '2001-01-01T00:00', 'end_time')):
            with self.subTest(label=label, value=value):
                self.open(f'{INDEX}create/')
                self.fill('Name', 'wrong')
                self.fill(label, value)
                self.press('Reserve')
                self.wait_text(text, 15)
                self.assertEqual('wrong',
                                 self.field('Name').get_attribute('value'))
        self.assertFalse(self.made('wrong'))

    def test_change_and_cancel(self):
        self.scene.reserve('old', 24, 1)
        self.open(INDEX)
        self.row('old')
        self.press('Change')
        self.fill('Name', 'new')
        self.fill('End', scene.hours(27)[:16])
        self.picture('change')
        self.press('Save Changes')
        self.wait_text('The reservation is changed')
        found = self.find('new')
        self.assertGreater(found.duration, 3600)
        self.fill_row_action('new', 'Cancel Reservation')
        self.wait_text('Cancelled Reservation')
        self.assertEqual('cancelled', self.member.preemption.get_reservation(
            found.id).status)

    def fill_row_action(self, name, words):
        """Choose an action of a row from its menu, and confirm it."""
        row = self.row(name)
        row.find_element(By.CSS_SELECTOR, 'a.dropdown-toggle').click()
        self.press(words)
        self.wait_text('You have selected')
        self.press(words)

    def test_pages(self):
        for number in range(5):
            self.scene.reserve(f'page-{number}', 24 + number, 1)
        self.browser.add_cookie({'name': 'API_RESULT_PAGE_SIZE',
                                 'value': '2'})
        self.addCleanup(self.browser.delete_cookie, 'API_RESULT_PAGE_SIZE')
        self.open(INDEX)
        # Those of the same second are in any order.
        pages = [self.names()]
        for _number in range(2):
            self.press('Next »')
            self.wait(lambda: self.names() != pages[-1])
            pages.append(self.names())
        self.assertEqual(
            {f'page-{number}' for number in range(5)},
            {name for names in pages for name in names})
        self.press('« Prev')
        self.wait(lambda: self.names() == pages[1])
        self.press('« Prev')
        self.wait(lambda: self.names() == pages[0])

    def names(self):
        return [cell.text for cell in self.browser.find_elements(
            By.CSS_SELECTOR, '#reservations tbody td a')
            if cell.text.startswith('page-')]

    def test_detail(self):
        self.scene.reserve('detail', 24)
        found = self.find('detail')
        self.open(f'{INDEX}{found.id}/')
        self.wait_text('Pending')
        self.wait_text(found.id)
        self.picture('reservation')
        self.open(f'{INDEX}00000000-0000-0000-0000-000000000000/')
        self.wait_text('Unable to read the reservation')


class TestBacklog(base.TestCase):

    def setUp(self):
        super().setUp()
        self.scene = scene.Scene(self.member)
        self.scene.clean()
        self.addCleanup(self.scene.clean)

    def test_submit_and_cancel(self):
        self.scene.reserve('all', None, 1, quantity=4)
        self.open('/project/backlog/')
        self.press('Submit Request')
        self.fill('Name of the servers', 'waits')
        self.fill('Flavor', 'normal.5')
        self.fill('Second flavor', 'normal.2')
        self.fill('Image', 'tiny')
        self.fill('Number of servers', '3')
        self.fill('Start with at least', '2')
        self.fill('Network', 'None')
        self.fill('Longest wait in hours', '4')
        self.picture('submit')
        self.press('Submit')
        self.wait_text('The request is in the backlog')
        found = next(self.member.preemption.backlog_requests(
            status='waiting'))
        self.assertEqual(
            (3, 2, 14400, ['normal.5', 'normal.2']),
            (found.count, found.least_count, found.longest_wait_s,
             [flavor['name'] for flavor in found.flavors]))
        scene.until(lambda: self.member.preemption.get_backlog_request(
            found.id).waits_for, 'its wait has a reason')
        self.open('/project/backlog/')
        self.wait_text('Waiting')
        self.picture('backlog')
        self.press('waits')
        self.wait_text('History')
        # There may be others of that name.
        self.open(f'/project/backlog/{found.id}/')
        self.wait_text('History')
        self.picture('request')
        self.open('/project/backlog/')
        self.press('Cancel Request')
        self.wait_text('You have selected')
        self.press('Cancel Request')
        self.wait_text('Cancelled Request')
        self.assertEqual(
            'cancelled',
            self.member.preemption.get_backlog_request(found.id).status)

    def test_wrong_input(self):
        self.open('/project/backlog/create/')
        self.fill('Name of the servers', 'wrong')
        self.fill('Start with at least', '2')
        self.press('Submit')
        self.wait_text('least_count')
        self.assertIsNone(
            self.member.preemption.find_backlog_request('wrong'))


class TestSpot(base.TestCase):

    def setUp(self):
        super().setUp()
        for conn in (self.member, self.admin):
            found = scene.Scene(conn)
            found.clean()
            self.addCleanup(found.clean)

    def test_notice_and_what_became_of_it(self):
        scene.Scene(self.member).boot('spot', 'spot.2', 20)
        scene.Scene(self.admin).boot_again('normal', 'normal.5', lambda: [
            server for server in self.member.compute.servers()
            if 'preemption' in server.metadata])
        self.open('/project/spot/')
        self.wait_text('with notice: 3')
        self.wait_text('It will be deleted (create) at')
        first, *_others = self.browser.find_elements(
            By.CSS_SELECTOR, 'time.preempt-countdown')
        before = self.wait(lambda: first.text.endswith(' s') and first.text)
        self.picture('spot')
        self.wait(lambda: first.text != before)
        scene.until(lambda: len(list(self.member.compute.servers())) == 17,
                    'the victims are deleted')
        self.open('/project/spot/')
        self.wait_text('with notice: 0')
        self.wait_text('(spot.2): Deleted')

    def test_recommendation_to_leave(self):
        scene.Scene(self.member).boot('spot', 'spot.2')
        compute = self.member.compute
        compute.set_server_metadata(
            next(compute.servers()), preemption_recommendation=json.dumps({
                'reason': 'reservation', 'until': scene.hours(1)}))
        self.open('/project/spot/')
        self.wait_text('Its host is reserved from')

    def test_chances(self):
        self.open('/project/spot/')
        self.press('Chances before You Boot')
        self.wait_text('Fit now, preemptible')
        rows = [row.text.split() for row in self.browser.find_elements(
            By.CSS_SELECTOR, '#chances tbody tr')]
        self.assertIn(['spot.2', 'nova', '20'], [row[:3] for row in rows])
        self.assertNotIn('normal.1', [row[0] for row in rows])
        self.picture('chances')
