//! The lists of all rules.

/// Expands to one `#[test]` per rule of a coordinator, in modules by family inside a module of the given name.
///
/// The factory is an absolute path to a type that implements
/// [`CoordinationFactory`](crate::coordination::CoordinationFactory).
#[macro_export]
macro_rules! coordination_suite {
    ($name:ident, $factory:path) => {
        mod $name {
            $crate::coordination_suite! { @families $factory;
                declarations {
                    a_declaration_is_repeatable
                    other_settings_are_refused_and_change_nothing
                    settings_that_make_no_sense_create_nothing
                    resources_with_one_id_do_not_clash
                }
                locks {
                    a_lock_has_one_holder
                    an_extension_keeps_the_fence
                    a_lock_that_was_not_extended_is_free_again
                    fences_only_grow
                    keys_with_odd_characters_are_different_locks
                    work_under_a_lock_passes_its_error_on_and_gives_the_lock_up
                    work_that_outlives_its_lock_time_keeps_the_lock
                }
                jobs {
                    a_job_is_delivered_with_what_was_submitted
                    a_key_inside_the_window_is_one_job
                    a_coalesced_key_is_one_job_until_it_is_done
                    a_coalesced_key_is_free_after_a_dead_letter
                    of_many_coalesced_submits_one_is_stored
                    a_delayed_job_comes_when_its_time_has_come
                    a_start_beyond_the_retention_is_refused
                    what_is_too_large_is_refused_before_it_is_stored
                    a_holder_that_dies_costs_an_attempt
                    a_heartbeat_keeps_a_delivery
                    a_retry_comes_again_after_its_wait
                    the_last_attempt_becomes_a_dead_letter
                    a_dead_letter_is_requeued_once_and_deleted
                    of_many_who_settle_a_dead_letter_one_does
                    a_late_success_is_no_error
                    a_late_retry_is_stale
                    a_resubmit_keeps_the_job_and_starts_its_attempts_anew
                    no_more_are_held_than_may_be
                    a_place_that_becomes_free_is_used_at_once
                    depth_counts_what_waits_is_held_and_is_dead
                    keys_with_odd_characters_are_different_jobs
                    a_full_store_says_so_and_still_knows_what_it_has
                    handlers_do_all_jobs_and_drain
                    a_handler_that_fails_or_panics_is_tried_again_and_then_dead
                    a_handler_that_takes_long_keeps_its_job
                }
                queues {
                    a_message_is_delivered_until_it_is_acknowledged
                    an_idempotency_key_stores_one_message
                    messages_of_one_key_stay_in_order_over_a_retry
                    a_message_that_is_given_up_lets_the_next_ones_pass
                    a_message_without_ordering_key_is_refused_where_one_is_needed
                    one_message_that_is_too_large_stops_all
                    a_delayed_message_takes_its_place_later
                    a_crowded_lane_hides_no_other
                }
                schedules {
                    a_record_is_written_only_over_the_state_that_was_read
                    all_schedules_are_listed_in_order
                    hundreds_of_schedules_are_listed_as_they_are
                    a_slot_that_nobody_saw_is_run_once_by_one_of_many
                    a_schedule_that_is_always_due_keeps_no_other_waiting
                    a_request_is_one_run_and_its_end_is_told
                    a_run_that_fails_is_tried_again_and_then_has_failed
                    a_schedule_that_is_created_again_has_no_past
                }
                topics {
                    what_is_published_is_read_in_order_from_any_place
                    an_idempotency_key_publishes_once
                    whoever_listens_hears_what_is_stored
                    a_cursor_of_another_topic_is_refused
                    a_reader_that_is_too_slow_is_told_of_the_gap
                    an_event_that_is_too_large_is_refused
                    a_follower_waits_for_what_comes_and_can_be_dropped
                    many_listen_by_one_reader_and_a_slow_one_is_told
                }
                groups {
                    each_message_is_handled_by_one_of_a_group_and_every_group_has_all
                    a_group_begins_where_it_says_and_goes_on_where_it_was
                    a_message_that_is_given_up_is_a_dead_letter_of_its_group_alone
                    a_reader_that_dies_costs_an_attempt
                    a_retry_holds_up_no_other_message
                    a_group_is_declared_once
                }
                care {
                    what_is_there_is_listed_with_how_much_there_is
                    a_paused_resource_hands_out_nothing_and_then_goes_on
                    a_dead_letter_is_shown_sent_again_and_removed
                    a_schedule_is_paused_run_and_backfilled
                    what_is_not_there_is_refused_and_nothing_is_written_down
                }
                presence {
                    a_snapshot_has_what_is_there
                    a_snapshot_and_a_watch_of_hundreds_miss_nothing
                    an_entry_stays_as_long_as_it_is_kept_up
                    a_touch_beside_an_upsert_keeps_the_new_value
                    a_watcher_sees_what_changes_behind_its_snapshot
                    a_watcher_sees_what_expires
                    what_is_too_much_is_refused
                    pairs_of_tenant_and_key_do_not_collide
                }
            }
        }
    };
    (@families $factory:path; $($family:ident { $($rule:ident)* })*) => {$(
        mod $family {$(
            #[test]
            fn $rule() {
                <$factory as $crate::coordination::CoordinationFactory>::run(async {
                    let place =
                        <$factory as $crate::coordination::CoordinationFactory>::fresh().await;
                    $crate::coordination::$family::$rule(&place).await;
                });
            }
        )*}
    )*};
}

/// Expands to one `#[test]` per rule of a rate limit, inside a module of the given name.
///
/// The factory is an absolute path to a type that implements
/// [`RateLimitFactory`](crate::coordination::RateLimitFactory).
#[macro_export]
macro_rules! rate_limit_suite {
    ($name:ident, $factory:path) => {
        mod $name {
            $crate::rate_limit_suite! { @rules $factory;
                the_request_that_is_asked_about_is_counted
                a_limited_request_says_when_to_come_again_and_may_then
                many_at_once_get_exactly_the_limit
                keys_do_not_count_for_each_other
            }
        }
    };
    (@rules $factory:path; $($rule:ident)*) => {$(
        #[test]
        fn $rule() {
            <$factory as $crate::coordination::RateLimitFactory>::run(
                $crate::coordination::limits::$rule::<$factory>(),
            );
        }
    )*};
}
