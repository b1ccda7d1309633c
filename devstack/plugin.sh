#!/bin/bash
#
# SPDX-License-Identifier: Apache-2.0
#
# plugin.sh - DevStack plugin of nova-preempt
#
# Follows the steps of doc/source/install.rst in their order: installs the
# package, creates a user, a database and a service of the catalog,
# extends placement.conf and nova.conf, and replaces the scheduler.
# devstack/settings has the settings.

# Save trace setting
_XTRACE_NOVA_PREEMPT=$(set +o | grep xtrace)
set +o xtrace

# Functions
# ---------

# add_to_nova_list() - Append an item to a list in nova.conf if it is not there
# add_to_nova_list section option item
function add_to_nova_list {
    local section=$1
    local option=$2
    local item=$3
    local items
    items=$(iniget "$NOVA_CONF" "$section" "$option")
    items=${items// /}
    if [[ ",$items," != *",$item,"* ]]; then
        iniset "$NOVA_CONF" "$section" "$option" "${items:+$items,}$item"
    fi
}

# install_nova_preempt() - Install into the environment that Nova runs in
function install_nova_preempt {
    local driver=mysql
    if [[ "$DATABASE_TYPE" == "postgresql" ]]; then
        driver=postgresql
    fi
    # Where services have environments of their own, pip_install takes this.
    # shellcheck disable=SC2034
    local PIP_VIRTUAL_ENV=${PROJECT_VENV["nova"]:-}
    setup_develop "$NOVA_PREEMPT_DIR" "$driver,client"
}

# configure_nova_preempt_placement() - Report conflicts of concurrent claims
function configure_nova_preempt_placement {
    # If Placement retries a claim itself, several claims may get the same
    # capacity, see doc/source/limits.rst.
    iniset "$PLACEMENT_CONF" placement allocation_conflict_retry_count 1
}

# configure_nova_preempt() - Extend the nova.conf of all services
function configure_nova_preempt {
    local ours=nova_preempt.scheduler.filters.all_filters
    local filters
    filters=$(iniget_multiline "$NOVA_CONF" filter_scheduler available_filters)
        # Only if it is missing: a new value goes to the top of its section.
    if [[ " $filters " != *" $ours "* ]]; then
        filters=${filters:-nova.scheduler.filters.all_filters}
        # shellcheck disable=SC2086  # each word is a value
        iniset_multiline "$NOVA_CONF" filter_scheduler available_filters \
            $filters $ours
    fi
    add_to_nova_list filter_scheduler enabled_filters PreemptibleFilter
    if [[ "$NOVA_PREEMPT_RESERVATIONS" == "True" ]]; then
        add_to_nova_list filter_scheduler enabled_filters ReservationFilter
        iniset "$NOVA_CONF" reservation enabled True
        iniset "$NOVA_CONF" reservation reservable_default True
    fi
    if ! ini_has_option "$NOVA_CONF" filter_scheduler weight_classes; then
        iniset "$NOVA_CONF" filter_scheduler weight_classes \
            nova.scheduler.weights.all_weighers
    fi
    add_to_nova_list filter_scheduler weight_classes \
        nova_preempt.scheduler.weights.all_weighers

    configure_keystoneauth "$NOVA_CONF" "$NOVA_PREEMPT_USER" preemption
    iniset "$NOVA_CONF" preemption region_name "$REGION_NAME"
    iniset "$NOVA_CONF" preemption_database connection \
        "$(database_connection_url "$NOVA_PREEMPT_DB")"
}

# configure_nova_preempt_api() - Put the API behind DevStack's web server
function configure_nova_preempt_api {
    # lib/apache appends to it.
    sudo rm -f "$(apache_site_config_for nova-preempt-api)"
    write_uwsgi_config "$NOVA_PREEMPT_UWSGI_CONF" "$NOVA_PREEMPT_UWSGI" \
        "/preemption" "" "nova-preempt-api"
    iniset "$NOVA_PREEMPT_UWSGI_CONF" uwsgi need-app true
    # A request that waits for the scheduler must not block the others.
    iniset "$NOVA_PREEMPT_UWSGI_CONF" uwsgi threads 8
    iniset "$NOVA_PREEMPT_UWSGI_CONF" uwsgi env \
        "OS_NOVA_CONFIG_DIR=$NOVA_CONF_DIR"
}

# create_nova_preempt_accounts() - Set up user and catalog
#
# Project               User           Roles
# ------------------------------------------------------------------
# SERVICE_PROJECT_NAME  nova-preempt   service, admin
function create_nova_preempt_accounts {
    create_service_user "$NOVA_PREEMPT_USER" admin
    if is_service_enabled np-api; then
        get_or_create_service nova-preempt preemption "Preemptible servers"
        get_or_create_endpoint preemption "$REGION_NAME" \
            "$NOVA_PREEMPT_API_URL" "$NOVA_PREEMPT_API_URL" \
            "$NOVA_PREEMPT_API_URL"
    fi
}

# init_nova_preempt() - Recreate the database, as DevStack does with Nova's
function init_nova_preempt {
    # shellcheck disable=SC2086  # a list of services
    if is_service_enabled $DATABASE_BACKENDS; then
        recreate_database "$NOVA_PREEMPT_DB"
        "$NOVA_BIN_DIR/nova-preempt-manage" --config-file "$NOVA_CONF" db sync
    fi
}

# start_nova_preempt() - Replace the scheduler, start the other services
function start_nova_preempt {
    local service
    # Threads share free memory, see Memory in doc/source/runbook.rst. This
    # replaces the PATH that DevStack would set.
    local environment="\"PATH=$PATH\" MALLOC_ARENA_MAX=2"
    # lib/nova has started Nova's scheduler as n-sch. The new scheduler has the
    # same name in Nova and the same unit, so that other scripts find it.
    for service in n-sch np-eng np-hook np-api; do
        stop_process "$service"
    done
    run_process n-sch \
        "$NOVA_BIN_DIR/nova-preempt-scheduler --config-file $NOVA_CONF" \
        "" "" "$environment"
    run_process np-eng \
        "$NOVA_BIN_DIR/nova-preempt-engine --config-file $NOVA_CONF" \
        "" "" "$environment"
    # It waits for nothing but a signal unless webhook_targets allows a port.
    run_process np-hook \
        "$NOVA_BIN_DIR/nova-preempt-webhook --config-file $NOVA_CONF" \
        "" "" "$environment"
    local uwsgi
    uwsgi="$(which uwsgi) --procname-prefix nova-preempt-api"
    run_process np-api "$uwsgi --ini $NOVA_PREEMPT_UWSGI_CONF" \
        "" "" "$environment"
    if is_service_enabled np-api; then
        echo "Waiting for nova-preempt-api to start..."
        if ! wait_for_service "$SERVICE_TIMEOUT" \
                "$NOVA_PREEMPT_API_URL/healthcheck"; then
            die $LINENO "nova-preempt-api did not start"
        fi
    fi
}

# check_nova_preempt() - Stop on a setup that prevents evictions
function check_nova_preempt {
    local code=0
    "$NOVA_BIN_DIR/nova-preempt-status" --config-file "$NOVA_CONF" \
        upgrade check || code=$?
    # 1 is a warning.
    if [[ $code -gt 1 ]]; then
        die $LINENO "nova-preempt-status found a failure"
    fi
}

# create_nova_preempt_flavor() - Create a preemptible flavor
function create_nova_preempt_flavor {
    local client="openstack --os-region-name=$REGION_NAME"
    if [[ -z "$NOVA_PREEMPT_FLAVOR" ]]; then
        return
    fi
    if $client flavor show "$NOVA_PREEMPT_FLAVOR" > /dev/null 2>&1; then
        return
    fi
    # From 2.86 on Nova refuses misspelt keys.
    $client --os-compute-api-version 2.86 flavor create --ram 512 --disk 1 \
        --vcpus 1 --property preemptible:enabled=true "$NOVA_PREEMPT_FLAVOR"
}

# configure_nova_preempt_tempest() - Install and configure the tempest plugin
function configure_nova_preempt_tempest {
    # The plugin needs only tempest, not the packages of the services.
    (cd "$TEMPEST_DIR" && tox -evenv-tempest -- \
        pip install --no-deps --editable "$NOVA_PREEMPT_DIR")
    iniset "$TEMPEST_CONFIG" service_available nova_preempt True
    iniset "$TEMPEST_CONFIG" preemption region "$REGION_NAME"
    iniset "$TEMPEST_CONFIG" preemption-feature-enabled reservation \
        "$NOVA_PREEMPT_RESERVATIONS"
}

# cleanup_nova_preempt() - Remove the files of configure_nova_preempt_api
function cleanup_nova_preempt {
    remove_uwsgi_config "$NOVA_PREEMPT_UWSGI_CONF" nova-preempt-api
    sudo rm -f "$(apache_site_config_for nova-preempt-api)"
}

# Main dispatcher
# ---------------

if [[ "$1" == "stack" ]]; then
    case "$2" in
        install)
            # nova-api loads validators of extra specs from the package.
            if is_service_enabled n-api n-sch np-eng np-hook np-api; then
                echo_summary "Installing nova-preempt"
                install_nova_preempt
            fi
            ;;
        post-config)
            if is_service_enabled placement-api; then
                configure_nova_preempt_placement
            fi
            if is_service_enabled n-sch np-eng np-hook np-api; then
                echo_summary "Configuring nova-preempt"
                configure_nova_preempt
            fi
            if is_service_enabled np-api; then
                configure_nova_preempt_api
            fi
            if is_service_enabled n-sch; then
                create_nova_preempt_accounts
                init_nova_preempt
            fi
            ;;
        extra)
            if is_service_enabled n-sch np-eng np-hook np-api; then
                echo_summary "Starting nova-preempt"
                start_nova_preempt
            fi
            if is_service_enabled n-sch; then
                check_nova_preempt
                create_nova_preempt_flavor
            fi
            ;;
        test-config)
            if is_service_enabled tempest && is_service_enabled np-api; then
                configure_nova_preempt_tempest
            fi
            ;;
    esac
elif [[ "$1" == "unstack" ]]; then
    # n-sch is stopped with the rest of Nova.
    stop_process np-api
    stop_process np-hook
    stop_process np-eng
elif [[ "$1" == "clean" ]]; then
    cleanup_nova_preempt
fi

# Restore xtrace
$_XTRACE_NOVA_PREEMPT
