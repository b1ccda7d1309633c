# SPDX-License-Identifier: Apache-2.0
"""Selects which of Nova's tests are run: modules, classes or tests.

They call the scheduler and check the chosen host: booting servers, server
groups, aggregates and availability zones, evacuation, shelving, resizing,
migration of all kinds, rescheduling.
"""

_FUNCTIONAL = 'nova.tests.functional.'
_REGRESSIONS = _FUNCTIONAL + 'regressions.test_bug_'


def _names(prefix, text):
    return tuple(prefix + name for name in text.split())


UNIT = ('nova.tests.unit.scheduler.test_manager',)

FULL = UNIT + _names(_FUNCTIONAL, """
    test_aggregates
    test_availability_zones
    test_boot_from_volume
    test_cold_migrate
    test_cross_az_attach
    test_cross_cell_migrate
    test_graceful_shutdown
    test_json_filter
    test_multiattach
    test_routed_networks
    test_scheduler
    test_server_group
    test_servers
    test_servers_provider_tree
    test_servers_resource_request.CrossCellResizeWithQoSPort
    test_servers_resource_request.PortResourceRequestBasedSchedulingTest
    test_servers_resource_request.PortResourceRequestReSchedulingTest
    test_servers_resource_request.ServerMoveWithPortResourceRequestTest
    test_unified_limits
    compute.test_live_migration
    libvirt.test_evacuate
    libvirt.test_numa_live_migration
    libvirt.test_numa_servers
    libvirt.test_pci_in_placement
    libvirt.test_reshape
    libvirt.test_vgpu
""") + _names(_REGRESSIONS, """
    1595962 1628606 1669054 1671648 1679750 1689692 1702454 1713783 1718455
    1718512 1719730 1735407 1741125 1746483 1764556 1764883 1780373 1781286
    1781710 1790204 1794996 1797580 1806064 1815153 1823370 1825020 1825537
    1830747 1835822 1843090 1845291 1848343 1852458 1862633 1879878 1890244
    1896463 1899649 1902925 1938326 1944619 1978983 1983753 1995153 2025480
    2044235 2125052 2125935 2153425
""")

QUICK = UNIT + _names(_FUNCTIONAL, """
    test_aggregates.AggregateMultiTenancyIsolationColdMigrateTest
    test_aggregates.TestAggregateMultiTenancyIsolationFilter
    libvirt.test_numa_servers.ReshapeForPCPUsTest
    test_cold_migrate
    test_json_filter
    test_scheduler.MultiCellSchedulerTestCase
    test_server_group.ServerGroupAffinityConfTest
    test_server_group.ServerGroupAntiAffinityConfTest
    test_server_group.ServerGroupTestMultiCell
    test_server_group.TestAntiAffinityLiveMigration
    test_servers.PollUnconfirmedResizesTest
    test_servers.ServerBuildAbortTests
    test_servers.ServerDeleteBuildTests
    test_servers.ServerRescheduleTests
    test_servers.ServerTestV256MultiCellTestCase
    test_servers.ServerUnshelveSpawnFailTests
""") + _names(_FUNCTIONAL + 'test_server_group.ServerGroupTestV264.', """
    test_boot_server_with_anti_affinity_no_valid_host
    test_boot_servers_with_affinity_no_valid_host
    test_boot_servers_with_soft_affinity_no_resource_on_first_host
    test_evacuate_with_affinity_no_valid_host
    test_migrate_with_anti_affinity
""") + _names(_FUNCTIONAL + 'test_cross_cell_migrate.', """
    TestMultiCellMigrate.test_resize_confirm_from_stopped
""") + _names(_FUNCTIONAL + 'test_servers.ServersTest.', """
    test_create_multiple_servers
""") + _names(_FUNCTIONAL + 'test_servers.ServerMovingTests.', """
    test_evacuate_forced_host_v268
    test_evacuate_host_specified_but_not_forced
    test_evacuate_instance_kept_on_the_hypervisor
    test_live_migrate
    test_migrate_confirm
    test_migrate_no_valid_host
    test_resize_confirm_same_host
    test_resize_not_enough_resource
    test_resize_reschedule_uses_host_lists_1_fail
    test_resize_revert
    test_shelve_offload_unshelve_diff_host
    test_shelve_unshelve_to_host
""") + _names(_REGRESSIONS, """
    1671648 1702454 1713783 1718455 1718512 1719730 1741125 1746483 1781710
    1790204 1797580 1845291
""")
