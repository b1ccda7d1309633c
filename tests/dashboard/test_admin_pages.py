# SPDX-License-Identifier: Apache-2.0
"""Pages under Admin."""

from selenium.webdriver.common.by import By

from nova_preempt import sdk
from tests.dashboard import base
from tests.dashboard import scene

PAGES = ('preemptions', 'preemption_hosts', 'preemption_energy',
         'preemption_pauses', 'preemption_health')


class TestAdmin(base.TestCase):

    user = 'admin'

    def setUp(self):
        super().setUp()
        for conn in (self.member, self.admin):
            found = scene.Scene(conn)
            found.clean()
            self.addCleanup(found.clean)

    def test_preemptions_and_map(self):
        scene.Scene(self.member).boot('spot', 'spot.2', 20)
        normal = scene.Scene(self.admin)
        normal.boot_again('normal', 'normal.5',
                          lambda: normal.is_active('normal'))
        decision = next(self.admin.preemption.preemptions())
        self.open('/admin/preemptions/')
        self.wait_text(decision.host)
        self.picture('preemptions')
        self.browser.find_element(
            By.CSS_SELECTOR, f'a[href$="{decision.id}/"]').click()
        self.wait_text('Alternatives, cheapest first')
        self.wait_text('the least of all sufficient sets')
        rows = [row.text for row in self.browser.find_elements(
            By.CSS_SELECTOR, '#alternatives tbody tr')]
        self.assertEqual(4, len(rows))
        chosen = [row for row in rows if 'Chosen' in row]
        self.assertEqual(1, len(chosen))
        self.assertIn(decision.host, chosen[0])
        # Of the victims, and of the server for which they are evicted.
        self.assertIn(' member ', self.browser.find_element(
            By.CSS_SELECTOR, '#victims tbody tr').text)
        self.wait_text('Project\nadmin')
        self.picture('preemption')
        self.open('/admin/preemption_hosts/')
        self.wait_text('4 hosts:')
        self.wait_text('Normal servers: 1')
        self.wait_text('Preemptible servers: 3')
        self.picture('host-map')
        self.press('Normal servers: 1')
        self.wait(lambda: len(self.browser.find_elements(
            By.CSS_SELECTOR, '.preempt-map li')) == 1)

    def test_host(self):
        reserved = scene.Scene(self.admin).reserve('now')
        scene.until(lambda: self.admin.preemption.get_reservation(
            reserved.id).status == 'active', 'the reservation is active')
        host = reserved.hosts[0]['name']
        self.open('/admin/preemption_hosts/')
        self.wait_text('Reserved: 1')
        self.browser.find_element(
            By.CSS_SELECTOR, '.preempt-map a.preempt-reserved').click()
        self.wait_text(f'Reservation {reserved.id} of project admin ')
        self.wait_text('It can be reserved.')
        self.picture('host')
        self.addCleanup(self.admin.preemption.update_host, host,
                        reservable=None)
        self.press('Do Not Allow Reservations')
        self.wait_text('cannot be reserved any more')
        self.assertFalse(self.admin.preemption.get_host(host).reservable)
        self.press('Allow Reservations')
        self.wait_text('can be reserved now')
        self.assertTrue(self.admin.preemption.get_host(host).reservable)

    def test_host_of_a_project_that_is_gone(self):
        identity = self.admin.identity
        project = identity.create_project(name='gone')
        self.addCleanup(identity.delete_project, project)
        identity.assign_project_role_to_user(
            project, self.admin.current_user_id,
            identity.find_role('admin'))
        reserved = scene.Scene(sdk.add_to(self.admin.connect_as_project(
            project))).reserve('gone')
        self.addCleanup(self.admin.preemption.delete_reservation, reserved)
        identity.delete_project(project)
        self.open('/admin/preemption_hosts/host/?name='
                  f'{reserved.hosts[0]["name"]}')
        self.wait_text(f'Reservation {reserved.id} of project {project.id}')

    def test_unknown_host(self):
        self.open('/admin/preemption_hosts/host/?name=nothing')
        self.wait_text('Unable to read the host')

    def test_pause_and_resume(self):
        self.addCleanup(self.admin.preemption.resume, 'backlog')
        self.open('/admin/preemption_pauses/')
        self.wait_text('Power control')
        row = self.browser.find_element(
            By.XPATH, '//tr[td[contains(., "Backlog")]]')
        row.find_element(By.LINK_TEXT, 'Pause').click()
        # Without a reason nothing is paused.
        form = self.wait(lambda: self.browser.find_element(By.ID, 'pause'))
        self.fill('Reason', 'a test')
        self.picture('pause')
        self.assertEqual([], list(self.admin.preemption.pauses()))
        form.find_element(By.CSS_SELECTOR, 'input[type=submit]').click()
        self.wait_text('Paused: Backlog')
        # The reason and the name of the user.
        self.wait_text('a test admin')
        pause, = self.admin.preemption.pauses()
        self.assertEqual(('backlog', 'a test'), (pause.what, pause.reason))
        self.picture('pauses')
        self.open('/admin/preemption_health/')
        self.wait_text('Paused: Backlog.')
        self.picture('health')
        self.open('/admin/preemption_pauses/')
        self.press('Resume')
        self.wait_text('Resumed')
        self.assertEqual([], list(self.admin.preemption.pauses()))

    def test_pause_without_a_reason(self):
        self.open('/admin/preemption_pauses/power/pause/')
        self.press('Pause')
        self.assertTrue(self.field('Reason').get_attribute(
            'validationMessage'))
        self.assertEqual([], list(self.admin.preemption.pauses()))

    def test_health(self):
        self.open('/admin/preemption_health/')
        self.wait_text('All 4 hosts are up.')
        self.assertEqual([], [
            row.text for row in self.browser.find_elements(
                By.CSS_SELECTOR, '#checks tbody tr') if 'Bad' in row.text])


class TestMember(base.TestCase):

    def test_pages_of_administrators(self):
        for name in PAGES:
            with self.subTest(name=name):
                self.browser.get(self.url(f'/admin/{name}/'))
                self.wait_text('You are not authorized to access this page')
        self.open('/project/reservations/')
        self.assertNotIn('Host Map', self.text())
        self.assertNotIn('Admin', self.text().split('\n'))
