//! The list of all rules.

/// Expands to one `#[tokio::test]` per rule, in modules by family inside a module of the given name.
///
/// The factory is an absolute path, such as `crate::MyFactory`, to a type that implements
/// [`StoreFactory`](crate::suite::StoreFactory). The calling crate needs `tokio` with its macros.
///
/// ```
/// # mod doc { // a real caller writes this at the top of a test file
/// surefoot_testkit::store_suite!(memory, surefoot_testkit::MemoryFactory);
/// # }
/// ```
#[macro_export]
macro_rules! store_suite {
    ($name:ident, $factory:path) => {
        mod $name {
            // What takes long: `cargo xtask soak`.
            $crate::store_suite! { @soak $factory;
                crowds the_most_children_end_in_random_order
            }
            $crate::store_suite! { @families $factory;
                runs {
                    a_claim_is_what_the_core_says
                    a_second_claim_keeps_the_first_start
                    each_of_many_claimers_gets_a_run_of_its_own
                    claims_go_by_the_time_from_which_a_run_is_ready
                    runs_of_one_moment_are_claimed_by_id
                    a_worker_claims_only_runs_of_its_app
                    an_execute_worker_leaves_dry_runs_alone
                    a_dry_run_is_created_once_and_claimed_in_its_mode_only
                    only_named_footprints_are_claimed
                    a_claim_for_one_tree_leaves_every_other_run_alone
                    empty_requests_are_answered_with_nothing
                    a_claim_keeps_its_limit
                    a_repeated_nonce_finds_the_same_claim
                    a_released_run_is_not_claimed_before_its_backoff_is_over
                    a_run_that_fails_every_time_is_exhausted_at_the_ninth_claim
                    an_outcome_lets_the_count_of_failures_start_again
                    a_run_whose_worker_died_goes_on_behind_its_last_outcome
                    a_marked_call_is_reconciled_and_never_called_again
                    a_restarted_worker_gets_its_orphans_when_their_leases_end
                    many_live_leases_hide_no_lapsed_one
                    only_queued_and_lapsed_runs_are_claimed
                    an_unknown_run_is_no_run
                }
                begin {
                    a_claim_brings_runs_as_reading_does
                    a_new_run_has_its_inputs_with_its_claim
                    a_run_whose_worker_died_at_once_gets_no_second_inputs
                    a_run_with_wrong_inputs_is_claimed_without_them
                    a_claim_brings_no_large_payload
                    an_eager_start_has_its_inputs
                    inputs_never_have_a_time_that_is_not_the_events
                }
                leases {
                    a_stale_generation_writes_nothing
                    a_stolen_lease_is_noticed_before_the_effect
                    a_stale_revision_is_a_conflict_and_changes_nothing
                    after_a_conflict_the_outcome_is_kept_and_the_cancel_honoured
                    of_two_commits_on_the_same_state_one_wins
                    a_renewed_lease_is_taken_by_nobody
                    a_renewal_changes_only_the_end_of_the_lease
                    a_commit_keeps_the_lease_that_was_renewed_meanwhile
                    a_renewal_brings_back_no_lease_that_was_given_up
                    a_renewal_answers_for_each_lease
                    one_question_finds_the_canceled
                    one_question_finds_the_runs_that_go_on
                    a_renewal_tells_of_a_cancel_request
                    a_lapsed_lease_still_writes_while_nobody_claimed
                    a_takeover_finds_what_the_lost_commit_did
                    a_takeover_fences_out_a_commit_that_comes_late
                    a_takeover_works_in_every_state
                    a_takeover_takes_nothing_from_a_later_claim
                    an_ended_run_absorbs_every_write
                    a_clock_that_goes_back_delays_and_never_repeats
                }
                journal {
                    each_commit_is_one_row_that_follows_the_one_before
                    a_commit_answers_with_the_row_as_stored
                    only_later_rows_are_read_on_request
                    a_journal_is_read_page_by_page
                    claims_parks_and_releases_leave_the_journal_alone
                    a_refused_commit_leaves_neither_row_nor_journal
                    a_commit_may_hold_many_facts
                    commits_of_many_runs_at_once_do_not_mix
                    a_journal_that_cannot_be_read_concerns_its_run_only
                    a_missing_row_is_noticed_and_not_skipped
                    a_bad_end_takes_no_outcome_back
                }
                events {
                    an_event_starts_one_run_per_enabled_activation
                    an_event_that_nobody_listens_to_is_recorded_and_listed
                    a_repeated_key_records_nothing_and_returns_the_first_runs
                    keys_are_unique_per_app_scope_and_type_only
                    two_processes_that_emit_one_key_at_once_record_one_event
                    an_event_is_found_again_by_its_id
                    an_emitters_authorization_wins_over_the_activations
                    an_event_keeps_when_it_happened
                    a_target_restricts_an_event_to_one_workflow
                    a_start_reaches_its_workflow_only
                    events_stay_in_their_app_and_scope
                    runs_are_found_by_the_tags_of_their_event
                    a_repeated_key_says_whether_its_tags_are_the_recorded_ones
                    a_repeat_dispatches_what_is_still_pending
                    an_eager_start_is_what_a_claim_would_be
                    an_eager_start_keeps_to_its_slots_and_footprints
                    duplicates_and_deferred_events_start_nothing_eagerly
                    each_event_matches_exactly_one_version_while_one_is_published
                    of_events_emitted_at_once_each_gets_its_own_answer
                    an_event_of_full_size_is_kept_whole
                }
                dispatch {
                    a_deferred_event_gets_its_runs_when_it_is_dispatched
                    dispatchers_at_once_create_each_run_once
                    a_run_is_pinned_to_what_matched_when_the_event_was_recorded
                    the_fallback_authorization_is_frozen_with_the_event
                    a_worker_dispatches_only_events_of_its_app
                    a_pass_keeps_its_limit_and_says_that_there_is_more
                    an_event_whose_dispatch_fails_holds_up_no_other
                    the_eighth_failure_dead_letters_an_event
                }
                plans {
                    concurrent_publishes_get_numbers_without_gap
                    a_stored_version_refuses_an_update
                    a_draft_changes_nothing_that_is_live
                    a_stored_version_is_made_live_on_request
                    an_unknown_revision_is_not_found
                    an_equal_schedule_stands_over_new_versions
                    a_schedule_that_is_enabled_again_begins_anew
                    what_an_operator_disabled_stays_disabled
                    a_dropped_trigger_starts_nothing_more_and_ends_nothing
                    a_version_reads_back_as_it_was_published
                    versions_are_listed_newest_first_without_their_plans
                    a_workflow_is_its_app_scope_and_key
                    a_key_of_the_wrong_length_is_refused
                    an_activation_is_switched_off_and_on
                    a_disabled_workflow_matches_nothing
                }
                retention {
                    a_payload_expires_only_when_no_run_needs_a_person
                    a_payload_is_kept_for_thirty_days
                    keys_and_run_ids_outlive_payloads_and_runs
                    lists_of_events_are_the_same_page_by_page_whole_or_emptied
                    old_events_that_are_held_hide_no_free_one
                    a_dead_lettered_event_is_redriven
                    an_expired_event_is_not_redriven
                    a_redrive_and_an_expiry_never_both_win
                    a_policy_prunes_what_it_names_and_no_more
                    a_tree_is_pruned_as_a_whole_or_not_at_all
                    an_abandoned_effect_outlives_every_policy
                    pruning_goes_on_where_it_stopped
                    a_retry_and_a_prune_never_both_win
                    only_spent_signals_are_pruned
                    audit_rows_go_by_a_switch_of_their_own
                    unmatched_payloads_are_emptied_on_request
                }
                deletion {
                    a_scope_goes_with_all_it_has_and_nothing_else
                    a_workflow_that_has_run_is_deleted
                    a_delivery_to_a_deleted_workflow_fails_in_sight
                    nothing_new_comes_into_what_is_being_deleted
                    no_dry_run_comes_into_what_is_being_deleted
                    an_unexplained_effect_holds_a_deletion_up
                    a_late_effect_is_named_and_may_be_forced
                    nothing_is_switched_there_and_the_audit_outlives_the_app
                    a_deletion_waits_for_the_worker
                    shared_runs_hold_a_workflow_but_no_scope
                    what_is_not_there_is_not_deleted
                    audit_rows_stay_with_ids_only
                    audit_rows_of_pruned_runs_stay_with_ids_only
                }
                signals {
                    a_signal_wakes_exactly_the_runs_that_wait_for_it
                    signals_that_nobody_waits_for_never_keep_a_run_from_its_end
                    an_app_wide_signal_wakes_only_app_wide_waits
                    a_wait_for_what_has_occurred_wakes_at_once
                    a_signal_counts_whenever_it_comes
                    park_and_signal_at_once_never_lose_the_wake
                    concurrent_signals_of_one_key_wake_once
                    the_first_signal_of_a_key_stays
                    one_signal_wakes_a_thousand_and_the_scan_the_rest
                    a_signal_for_a_canceled_run_changes_nothing
                    signals_that_no_run_has_used_are_listed_with_their_age
                    a_signal_is_spent_by_the_outcome_that_rests_on_it
                    a_signal_is_not_spent_by_a_run_that_ends_without_an_outcome
                    no_two_signals_collide_whatever_their_keys
                }
                children {
                    the_same_children_are_created_once
                    a_child_shares_what_its_root_was_started_with
                    a_child_stays_in_the_place_of_its_parent
                    children_are_created_all_or_none
                    only_the_holder_of_a_parent_creates_children
                    the_most_children_of_one_call
                    counts_by_state_sum_to_the_total
                    a_child_that_ends_while_its_parent_parks_wakes_it_once
                    children_that_end_in_any_order_wake_their_parent_once
                    a_park_on_children_that_have_ended_wakes_at_once
                    attention_is_not_the_end_of_a_child
                    held_children_are_let_go_as_others_end
                    a_retried_child_is_held_back_where_its_group_is_full
                    retries_at_once_keep_to_what_may_be_unfinished
                    the_scan_wakes_a_parent_whose_children_have_ended
                    a_failed_parent_leaves_its_children_alone
                    a_child_is_retried_until_its_result_is_taken
                    children_of_a_transaction_are_there_if_it_is
                    a_page_of_results_is_bounded
                    no_signal_ends_a_wait_for_children
                }
                crowds {
                    many_children_end_in_random_order_and_wake_their_parent_once
                    a_cancel_in_the_middle_of_a_creation_leaves_no_orphan
                }
                grandchildren {
                    a_tree_has_a_bottom
                    a_tree_is_listed_whole_where_children_are_asked_for
                    children_are_listed_by_state
                    a_cancel_is_carried_down_the_tree
                    a_cancel_goes_past_a_child_that_has_ended
                    a_child_is_not_retried_where_one_above_has_moved_on
                }
                waits {
                    a_deadline_runs_the_step_again_under_the_same_effect_key
                    the_first_park_fixes_the_deadline
                    a_late_deadline_does_not_hide_the_signal
                    of_signal_deadline_and_cancel_one_wins
                    deadlines_outlive_the_process
                    a_wake_before_the_worker_reports_is_normal
                    parks_are_no_failures
                    waiting_on_what_has_occurred_slows_down
                    deadlines_may_lie_anywhere
                    a_deadline_is_kept_to_the_microsecond
                }
                recovery {
                    a_canceled_run_whose_worker_is_gone_is_finalised
                    an_open_effect_is_explained_before_a_cancel_is_final
                    recovery_leaves_lapsed_runs_to_the_claim
                    a_pass_keeps_its_limit_and_says_that_there_is_more
                    two_passes_at_once_do_everything_once
                    recovery_touches_only_runs_of_its_app
                    only_living_runs_need_a_footprint
                    what_is_due_is_said_in_one_answer
                    health_names_the_oldest_work_that_is_due
                }
                operator {
                    a_cancel_works_from_every_state
                    an_operator_says_that_an_effect_happened
                    an_operator_says_that_an_effect_failed
                    of_two_verdicts_one_wins
                    each_verb_is_audited_with_its_write
                    a_retry_starts_the_counts_again_and_keeps_outcomes
                    an_abandoned_effect_stays_listed
                    health_counts_the_effects_that_are_listed
                    lists_are_narrowed_to_a_scope_by_the_store
                    unexplained_effects_are_listed_oldest_first
                    runs_are_listed_newest_first_and_filtered_by_the_store
                    pages_are_stable_while_runs_come_and_change
                    children_are_hidden_unless_their_parent_is_named
                    the_detail_of_a_run_tells_its_cause_and_its_course
                    events_are_listed_newest_first
                    sessions_are_listed_until_they_end
                    health_counts_runs_by_state
                }
                timeline {
                    a_timeline_counts_every_run_of_its_span_once
                }
                transactions {
                    an_event_exists_exactly_if_its_transaction_committed
                    an_open_transaction_is_seen_by_nobody_else
                    a_version_exists_exactly_if_its_transaction_committed
                    a_signal_wakes_exactly_if_its_transaction_committed
                    work_and_outcome_are_one_commit
                    a_rollback_leaves_nothing
                    the_work_is_given_the_locked_run
                    a_panic_in_the_work_leaves_nothing
                    a_dropped_transaction_leaves_nothing_and_no_lock
                    of_two_transactions_of_one_step_one_counts
                    pending_facts_are_written_in_the_same_transaction
                    an_emit_of_a_transactional_step_is_part_of_it
                    an_application_error_is_no_conflict_of_transactions
                }
                fence {
                    a_fence_lets_the_holder_of_the_run_write
                    a_fence_looks_at_the_generation_not_at_the_time
                    a_fence_refuses_whoever_does_not_hold_the_run
                    a_fence_refuses_once_cancel_was_requested
                    a_renewal_does_not_wait_for_a_fence
                    a_takeover_waits_for_the_fence
                }
                effects {
                    the_mark_is_durable_before_the_call_opens
                    an_outcome_takes_the_next_mark_along
                    what_nobody_can_tell_is_asked_and_never_done_again
                    an_actions_word_that_nothing_happened_settles_the_mark
                    a_providers_word_decides_about_a_lost_call
                    not_found_proves_nothing_until_it_has_settled
                    a_question_that_fails_is_asked_again
                    a_name_is_bound_again_by_a_persons_word
                }
                budgets {
                    the_caps_of_a_version_are_the_limits_of_its_runs
                    charges_go_up_to_the_cap_and_a_refused_one_writes_nothing
                    a_cap_of_nothing_lets_no_call_be_marked
                    a_step_pays_once_whoever_goes_on_with_it
                    a_stale_writer_charges_nothing
                    a_rolled_back_transaction_pays_nothing_and_its_retry_once
                    a_transaction_over_its_cap_leaves_nothing
                    a_tree_of_runs_charges_the_counters_of_its_root
                }
                resume {
                    a_loop_goes_on_at_the_item_that_has_no_outcome
                    a_failed_attempt_deep_inside_records_no_outcome_around_it
                    a_succeed_deep_inside_ends_the_run
                    now_is_the_events_time_however_late_a_step_runs
                    a_caught_failure_goes_on_in_another_process
                    an_orderly_hand_over_is_no_failure
                    what_one_process_wrote_another_reads
                    many_writers_at_once_surface_no_error
                }
                fidelity {
                    a_text_that_no_store_can_keep_fits_nothing
                    trace_context_comes_back_as_it_was
                    an_events_payload_comes_back_as_it_was
                    an_output_and_a_result_come_back_as_they_were
                    a_signals_data_come_back_as_they_were
                    an_error_of_any_text_and_size_is_kept
                    what_people_write_is_kept
                    an_output_of_full_size_is_kept
                    a_row_reads_back_as_the_core_has_it
                }
            }
        }
    };
    (@soak $factory:path; $($family:ident $rule:ident)*) => {
        mod soak {$(
            $crate::store_suite! { @test [ignore = "soak"] $factory; $family $rule }
        )*}
    };
    (@families $factory:path; $($family:ident { $($rule:ident)* })*) => {$(
        mod $family {$(
            $crate::store_suite! { @rule $factory; $family $rule }
        )*}
    )*};
    (@rule $factory:path; $family:ident $rule:ident) => {
        $crate::store_suite! { @test [] $factory; $family $rule }
    };
    (@test [$($attribute:meta)*] $factory:path; $family:ident $rule:ident) => {
        #[tokio::test]
        $(#[$attribute])*
        async fn $rule() {
            let world = $crate::suite::World::<$factory>::fresh().await;
            $crate::suite::$family::$rule(&world).await;
            world.finish().await;
        }
    };
}
