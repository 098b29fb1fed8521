"""How each sentence of SECURITY.md begins, and the tests behind it or why no test can show it."""

from __future__ import annotations

from collections.abc import Mapping

ADVICE = "asks something of the reader"
OUTSIDE = "tells of a limit or of what lies outside the program"

SENTENCES: Mapping[str, str | tuple[str, ...]] = {
    "Please report it privately": ADVICE,
    "Name the version": ADVICE,
    "Please do not open": ADVICE,
    "Only the latest version": ADVICE,
    "questions to the bot, answers": (
        "tests/integration/memory/test_operations.py::test_retention_deletes_what_is_old_in_small_batches_and_nothing_else",
        "tests/contract/test_taking_back_contract.py::test_a_message_goes_with_its_answer_facts_notes_and_buttons",
        "tests/integration/memory/test_forgetting.py::test_a_forgotten_person_is_in_no_table",
    ),
    "notes and lasting facts": (
        "tests/integration/memory/test_operations.py::test_retention_deletes_what_is_old_in_small_batches_and_nothing_else",
        "tests/integration/memory/test_forgetting.py::test_a_forgotten_person_is_in_no_table",
    ),
    "keyed hashes (HMAC)": (
        "tests/acceptance/test_second_hand.py::test_second_hand_answers_go_with_a_file",
        "tests/integration/sql/test_row_level_security.py::test_anon_holds_nothing",
        "tests/integration/sql/test_row_level_security.py::test_a_signed_in_user_holds_what_tokens_need_and_nothing_else",
        "tests/integration/sql/test_talk_terms.py::test_talk_that_leaves_costs_the_same_however_many_turns_other_chats_have",
    ),
    "the talk of a group while": (
        "tests/contract/test_taking_back_contract.py::test_what_was_heard_and_never_answered_leaves_the_transcript",
        "tests/integration/sql/test_late_joiners.py::test_talk_of_before_is_not_told_and_goes_with_the_conversation",
        "tests/unit/bot/listening/test_conversation.py::test_a_huge_message_is_clipped_and_leaves_room_for_others",
    ),
    "the history of a chat that": (
        "tests/acceptance/test_history_import.py::test_an_owner_imports_the_past_asks_about_it_and_removes_it",
        "tests/contract/test_imports_contract.py::test_a_removed_import_leaves_nothing_and_can_be_made_again",
        "tests/contract/test_imports_contract.py::test_a_message_taken_back_goes_and_stays_away_with_the_answer_that_told_it",
    ),
    "an event that waits": (
        "tests/integration/memory/test_retention.py::test_what_waited_too_long_is_deleted_and_a_job_in_hand_is_not",
    ),
    "what was said while Supabase": (
        "tests/contract/test_late_writes_contract.py::test_late_writes_reach_the_memory_with_the_identity_of_their_sender",
        "tests/integration/memory/fallback/test_store_jobs.py::test_a_pending_reply_is_resumed_from_the_memory_with_the_same_text",
    ),
    "why the bot spoke": (
        "tests/integration/memory/test_operations.py::test_retention_deletes_what_is_old_in_small_batches_and_nothing_else",
    ),
    "reminders, and questions": (
        "tests/acceptance/test_reminders.py::test_a_message_taken_back_takes_its_reminders_and_their_cards_along",
        "tests/integration/memory/test_forgetting.py::test_a_forgotten_person_is_in_no_table",
        "tests/integration/memory/test_operations.py::test_retention_deletes_what_is_old_in_small_batches_and_nothing_else",
    ),
    "names, and who is in": (
        "tests/integration/memory/test_forgetting.py::test_a_forgotten_person_is_in_no_table",
        "tests/acceptance/test_membership.py::test_a_group_without_the_bot_has_no_members",
    ),
    "what an answer was made of": (
        "tests/integration/sql/test_turn_records.py::test_a_record_is_told_as_it_was_but_for_what_is_empty",
        "tests/integration/memory/test_operations.py::test_retention_deletes_what_is_old_in_small_batches_and_nothing_else",
    ),
    "what people let the bot do": (
        "tests/acceptance/test_connect.py::test_a_person_connects_sees_what_they_granted_and_disconnects",
        "tests/acceptance/test_connect.py::test_feishu_s_revocation_and_forgetting_end_it_within_a_second",
        "tests/integration/sql/test_user_tokens_access.py::test_whoever_is_forgotten_or_leaves_the_last_group_has_no_tokens",
    ),
    "their tokens for that": (
        "tests/integration/sql/test_user_tokens_access.py::test_no_role_reads_or_writes_the_seals",
        "tests/contract/test_user_tokens_contract.py::test_the_database_holds_no_token_and_forgetting_leaves_nothing",
        "tests/acceptance/test_connect.py::test_no_token_stands_in_logs_jobs_rows_prompts_or_a_backup",
    ),
    "what a button is to write": (
        "tests/integration/bot/features/test_agenda_sequences.py::test_nothing_is_written_without_the_asker_and_undo_is_exact",
        "tests/unit/bot/agenda/test_offering.py::test_undo_deletes_just_what_was_made_and_says_when_it_is_gone",
    ),
    "which documents answers told of": (
        "tests/integration/sql/test_told_documents_access.py::test_the_service_alone_reaches_the_table",
        "tests/acceptance/test_documents.py::test_answers_go_when_not_everybody_can_open_it_any_more",
    ),
    "what operators did": (
        "tests/integration/bot/operations/console/test_queue_page.py::test_a_forgotten_person_leaves_the_audit",
        "tests/integration/sql/test_row_level_security.py::test_the_console_cannot_change_what_is_kept_of_it",
    ),
    "The **model** of": OUTSIDE,
    "With `EMBEDDING_MODEL`": (
        "tests/integration/bot/operations/test_embedding.py::test_the_background_job_embeds_and_leaves_failures_to_a_later_turn",
    ),
    "**Feishu's speech": (
        "tests/acceptance/test_voice.py::test_a_voice_message_is_answered_as_what_was_said_and_the_card_shows_what_was_heard",
        "tests/acceptance/test_voice.py::test_in_a_group_it_is_a_line_without_a_mention",
    ),
    "An **MCP server** receives": (
        "tests/integration/bot/agents/test_mcp_servers.py::test_a_tool_of_a_stdio_server_is_called_and_recorded",
    ),
    "The bot never sends the key": (
        "tests/unit/memory/test_vectors.py::test_the_key_of_the_chat_model_is_not_given_to_another_endpoint",
        "tests/unit/bot/agents/test_mcp_config.py::test_a_server_is_not_given_the_bots_own_secret_unless_it_is_named",
        "tests/unit/bot/feishu/test_feishu_client.py::test_redirects_are_not_followed",
    ),
    "Logs hold ids": (
        "tests/acceptance/test_discreet_logs.py::test_a_turn_that_fails_leaves_no_words_in_a_log",
        "tests/acceptance/test_discreet_logs.py::test_odd_events_and_strangers_leave_no_words_in_a_log",
        "tests/unit/bot/feishu/test_feishu_client.py::test_neither_logs_nor_errors_hold_secrets_or_text",
    ),
    "A backup holds everything": (
        "tests/integration/scripts/test_backup.py::test_every_row_is_in_the_restored_database_and_it_is_as_it_must_be",
        "tests/acceptance/test_connect.py::test_no_token_stands_in_logs_jobs_rows_prompts_or_a_backup",
    ),
    "a message is recalled in Feishu": (
        "tests/acceptance/test_survivors.py::test_nothing_of_a_retracted_message_survives_and_its_twin_stays",
        "tests/integration/memory/test_forgetting.py::test_a_recalled_message_is_in_no_table",
        "tests/acceptance/test_forgetting_by_words.py::test_what_was_kept_and_said_is_shown_and_deleted_with_one_press",
        "tests/acceptance/test_taking_back.py::test_nothing_stays_of_a_message_and_its_card_is_withdrawn",
    ),
    "a message is edited in Feishu": (
        "tests/integration/scripts/test_memory_receipts.py::test_an_edited_message_leaves_a_receipt_of_what_it_said_before",
        "tests/acceptance/test_edits.py::test_a_colleague_reads_what_holds_after_a_correction_its_edit_and_its_retraction",
    ),
    "a fact or note is deleted": (
        "tests/contract/test_taking_back_contract.py::test_one_fact_is_deleted_for_good_by_its_author_or_subject",
        "tests/contract/test_taking_back_contract.py::test_a_note_is_deleted_with_what_it_was_made_from",
    ),
    "`/forget`, “This thread”": (
        "tests/acceptance/test_commands.py::test_forget_asks_first_and_then_leaves_nothing_of_the_thread",
        "tests/acceptance/test_forgetting_by_words.py::test_this_thread_in_the_main_chat_is_what_was_said_there",
        "tests/acceptance/test_forgetting_by_words.py::test_this_thread_in_the_main_chat_leaves_other_threads",
    ),
    "`/forget all` | ": (
        "tests/acceptance/test_commands.py::test_forget_all_leaves_nothing_of_the_person",
        "tests/integration/memory/test_forgetting.py::test_a_forgotten_person_is_in_no_table",
        "tests/integration/memory/test_forgetting.py::test_no_table_and_no_column_of_a_person_is_left_out",
    ),
    "No deletion reaches": OUTSIDE,
    "In Postgres, deleted rows": OUTSIDE,
    "Every deletion of the table": (
        "tests/contract/test_receipts_contract.py::test_a_retraction_leaves_a_receipt_that_names_its_words_to_their_author_alone",
        "tests/contract/test_receipts_contract.py::test_a_deletion_that_fails_leaves_no_receipt",
        "tests/contract/test_receipts_contract.py::test_an_item_that_is_deleted_leaves_a_receipt",
        "tests/contract/test_receipts_contract.py::test_a_thread_that_is_forgotten_leaves_a_receipt",
    ),
    "A worker signs it": (
        "tests/contract/test_receipts_contract.py::test_processes_that_sign_together_make_one_chain",
    ),
    "A receipt holds the kind": (
        "tests/contract/test_receipts_contract.py::test_a_retraction_leaves_a_receipt_that_names_its_words_to_their_author_alone",
        "tests/unit/memory/test_receipts.py::test_a_commitment_names_its_text_and_no_other",
    ),
    "It holds no words, and": (
        "tests/contract/test_receipts_contract.py::test_a_forgotten_person_gets_a_receipt_and_is_in_none",
        "tests/contract/test_receipts_contract.py::test_a_retraction_leaves_a_receipt_that_names_its_words_to_their_author_alone",
    ),
    "- **The chain.**": (
        "tests/unit/memory/test_receipts.py::test_an_untouched_chain_holds_and_reaches_its_anchor",
        "tests/contract/test_receipts_contract.py::test_processes_that_sign_together_make_one_chain",
    ),
    "Whatever byte is changed": (
        "tests/unit/memory/test_receipts.py::test_any_changed_byte_is_refused",
        "tests/unit/memory/test_receipts.py::test_every_byte_of_a_receipt_counts",
        "tests/unit/memory/test_receipts.py::test_another_order_is_refused",
        "tests/unit/memory/test_receipts.py::test_whatever_is_left_out_is_refused",
    ),
    "The log notes the hash": (
        "tests/unit/memory/test_receipts.py::test_a_cut_tail_is_refused",
        "tests/acceptance/test_commands.py::test_forget_all_in_p2p_gives_the_receipt_with_a_salt_that_is_stored_nowhere",
    ),
    "So do the cards that answer": (
        "tests/acceptance/test_own_memory.py::test_a_person_gets_the_receipt_of_a_deletion_and_its_salt_once",
    ),
    "- **The copy.**": (
        "tests/unit/memory/test_receipts.py::test_a_commitment_names_its_text_and_no_other",
    ),
    "`/forget all` in p2p": (
        "tests/acceptance/test_commands.py::test_forget_all_in_p2p_gives_the_receipt_with_a_salt_that_is_stored_nowhere",
    ),
    "The other salts wait": (
        "tests/contract/test_receipts_contract.py::test_a_retraction_leaves_a_receipt_that_names_its_words_to_their_author_alone",
    ),
    "Until then an operator": (
        "tests/acceptance/test_own_memory.py::test_a_person_gets_the_receipt_of_a_deletion_and_its_salt_once",
    ),
    "The turn that shows the copies": (
        "tests/acceptance/test_own_memory.py::test_a_person_gets_the_receipt_of_a_deletion_and_its_salt_once",
    ),
    "- **The key** is": (
        "tests/unit/memory/test_receipts.py::test_workers_that_start_together_share_one_key_that_only_the_owner_reads",
    ),
    "All workers share it": (
        "tests/unit/memory/test_receipts.py::test_workers_that_start_together_share_one_key_that_only_the_owner_reads",
    ),
    "`scripts/memory receipt-key`": (
        "tests/integration/scripts/test_memory_receipts.py::test_the_chain_and_the_key_that_verifies_it_are_published",
    ),
    "To rotate it": (
        "tests/unit/memory/test_receipts.py::test_receipts_of_an_earlier_key_verify_with_its_public_key",
    ),
    "- **Verify.**": (
        "tests/integration/scripts/test_memory_receipts.py::test_a_deletion_that_holds_is_verified_and_a_survivor_named",
        "tests/integration/scripts/test_memory_receipts.py::test_another_text_a_changed_receipt_and_a_cut_chain_are_refused",
    ),
    "It then reads every text": (
        "tests/integration/memory/test_reading_back.py::test_a_survivor_is_found_in_every_column_that_can_hold_words",
        "tests/integration/memory/test_reading_back.py::test_every_column_that_can_hold_words_says_how_it_is_deleted",
        "tests/integration/memory/test_reading_back.py::test_words_in_files_and_logs_are_found_and_the_servers_own_are_left_out",
    ),
    "It reads the database as": (
        "tests/integration/memory/test_reading_back.py::test_who_verifies_can_write_nothing_and_reads_no_key",
    ),
    "It names what survived": (
        "tests/integration/scripts/test_memory_receipts.py::test_a_deletion_that_holds_is_verified_and_a_survivor_named",
    ),
    "A row survived if": (
        "tests/integration/memory/test_reading_back.py::test_what_stands_under_the_id_of_the_retracted_message_survived_whoever_said_it_too",
        "tests/integration/memory/test_reading_back.py::test_honest_histories_in_which_colleagues_repeat_each_other_have_no_survivor",
    ),
    "The same words from another": (
        "tests/integration/scripts/test_memory_receipts.py::test_a_colleague_who_said_it_too_is_reported_and_is_no_survivor",
    ),
    "`--also` looks for": (
        "tests/integration/scripts/test_memory_receipts.py::test_words_in_a_file_or_a_log_survived",
    ),
    "`scripts/memory receipts` and": (
        "tests/integration/bot/operations/console/test_receipts_page.py::test_receipts_are_shown_newest_first_and_without_words",
        "tests/integration/scripts/test_memory_receipts.py::test_the_chain_and_the_key_that_verifies_it_are_published",
    ),
    "**A receipt proves**": (
        "tests/unit/memory/test_receipts.py::test_any_changed_byte_is_refused",
        "tests/unit/memory/test_receipts.py::test_a_receipt_of_another_key_is_refused",
    ),
    "**It does not prove**": OUTSIDE,
    "Other words for the same thing": OUTSIDE,
    "An operator of the machine": OUTSIDE,
    "the webhook checks the signature": (
        "tests/integration/bot/intake/test_webhook.py::test_whatever_is_not_genuine_gets_one_answer_and_changes_nothing",
        "tests/integration/bot/intake/test_webhook.py::test_a_genuine_message_is_queued_and_acknowledged",
    ),
    "It refuses deliveries older": (
        "tests/integration/bot/intake/test_webhook.py::test_a_replay_within_the_window_is_a_duplicate_and_later_it_is_refused",
        "tests/integration/bot/intake/test_webhook.py::test_deliveries_of_one_message_are_one_job_whatever_their_event_id",
    ),
    "The refusal is the same": (
        "tests/integration/bot/intake/test_webhook.py::test_whatever_is_not_genuine_gets_one_answer_and_changes_nothing",
    ),
    "The webhook does not start": (
        "tests/unit/bot/process/test_settings_rules.py::test_the_webhook_needs_both_keys",
    ),
    "proxies pass on": ("tests/unit/test_deploying.py::test_proxies_pass_on_the_webhook_alone",),
    "The sandbox and the long": (
        "tests/integration/bot/test_listening.py::test_only_the_webhook_listens_to_the_outside_unless_a_host_is_named",
    ),
    "The console answers this machine": (
        "tests/unit/bot/operations/console/test_console_origins.py::test_this_machine_may",
        "tests/unit/bot/operations/console/test_console_origins.py::test_a_network_that_is_named_may_and_its_neighbours_may_not",
        "tests/integration/bot/operations/console/test_signing_in.py::test_a_link_works_once",
    ),
    "The server refuses a malformed": (
        "tests/integration/bot/intake/test_receiving.py::test_a_malformed_head_is_refused_at_once",
        "tests/integration/bot/intake/test_receiving.py::test_a_malformed_body_is_refused_before_the_application_sees_it",
    ),
    "No header of a request": (
        "tests/integration/bot/intake/test_receiving.py::test_no_header_moves_the_path",
    ),
    "No other page can show": (
        "tests/unit/sandbox/test_sandbox_server.py::test_the_page_is_served_with_a_policy_that_forbids_foreign_scripts",
        "tests/acceptance/test_own_origin.py::test_another_page_can_neither_read_nor_follow",
    ),
    "refused requests are counted": (
        "tests/unit/bot/intake/test_refusals.py::test_a_flood_makes_a_line_a_minute_that_says_how_many",
        "tests/unit/bot/intake/test_refusals.py::test_each_reason_has_a_line_of_its_own",
    ),
    "`anon` has no rights": (
        "tests/integration/sql/test_row_level_security.py::test_anon_holds_nothing",
        "tests/integration/sql/test_functions.py::test_everybody_may_call_what_the_list_says_and_nothing_else",
    ),
    "every function first checks": (
        "tests/integration/sql/test_limits.py::test_whoever_names_nobody_costs_little",
        "tests/integration/sql/test_limits.py::test_nothing_is_read_of_an_argument_before_its_function_can_look_at_its_size",
        "tests/integration/sql/test_statements_of_nobody.py::test_a_token_without_claims_reads_no_table",
    ),
    "A test finds all functions": (
        "tests/integration/sql/test_limits.py::test_the_largest_argument_of_anybody_costs_little",
        "tests/integration/sql/test_limits.py::test_a_function_without_a_limit_is_noticed",
        "tests/integration/sql/test_row_level_security.py::test_every_table_and_view_of_the_schema_has_rules",
    ),
    "a turn has a five-minute token": (
        "tests/unit/memory/test_memory_tokens.py::test_a_token_carries_the_identity_of_its_turn_for_five_minutes",
    ),
    "Row-level security gives": (
        "tests/integration/sql/test_row_level_security.py::test_rows_are_reached_by_whom_the_rules_say_and_no_door_is_open",
        "tests/integration/sql/test_calls_by_others.py::test_nobody_is_told_or_changes_what_they_may_not",
        "tests/contract/test_memory_isolation_contract.py::test_a_hundred_interleaved_calls_of_ten_people_never_swap_identities",
    ),
    "a row's actor must be": (
        "tests/integration/sql/test_row_level_security.py::test_rows_are_reached_by_whom_the_rules_say_and_no_door_is_open",
        "tests/contract/test_memory_isolation_contract.py::test_a_call_cannot_name_more_than_its_token_allows",
    ),
    "a turn can only withdraw": (
        "tests/integration/sql/test_withdrawals_of_turns.py::test_a_turn_has_no_stored_card_of_others_withdrawn",
        "tests/integration/sql/test_withdrawals_of_turns.py::test_a_token_adds_no_withdrawal_by_itself",
    ),
    "Before the bot withdraws": (
        "tests/integration/bot/operations/test_withdrawing.py::test_a_card_in_another_chat_stays",
    ),
    "see [below]": (
        "tests/integration/sql/test_late_joiners.py::test_alone_with_the_bot_a_member_is_answered_with_what_was_said_since_they_joined",
    ),
    "only the person who asked can confirm": (
        "tests/integration/bot/test_buttons.py::test_only_who_asked_confirms_and_only_one_of_the_group_counts",
        "tests/acceptance/test_injections.py::test_nobody_confirms_for_somebody_else_and_a_press_counts_once",
    ),
    "A suggested question counts": (
        "tests/acceptance/test_injections.py::test_a_command_on_a_button_works_on_the_memory_of_whoever_presses",
    ),
    "each person has a limit": (
        "tests/acceptance/test_flooding.py::test_a_flood_is_answered_up_to_the_limit_and_told_once",
        "tests/acceptance/test_flooding.py::test_a_press_over_the_limit_is_answered_by_a_toast_and_the_button_stays",
    ),
    "The bot runs a few of them": (
        "tests/integration/bot/queue/test_fair_shares.py::test_others_go_before_a_persons_fourth_message_in_a_conversation",
    ),
    "Of the calls for documents": (
        "tests/unit/bot/feishu/test_fair_pacing.py::test_another_persons_first_calls_leave_at_once",
        "tests/unit/bot/queue/test_own_places.py::test_what_is_done_for_somebody_takes_their_share_of_feishus_limits",
    ),
    "It skips what exceeds": (
        "tests/acceptance/test_flooding.py::test_a_flood_is_answered_up_to_the_limit_and_told_once",
        "tests/integration/bot/queue/test_fair_shares.py::test_one_worker_tells_the_person_once_in_a_flood",
        "tests/unit/bot/process/test_person_rates.py::test_who_has_been_told_that_it_is_too_much_is_known_until_there_is_room",
    ),
    "Requests count by the time": (
        "tests/unit/bot/process/test_person_rates.py::test_a_slow_worker_lets_no_more_through",
        "tests/integration/bot/queue/test_fair_shares.py::test_a_backlog_that_waited_for_long_passes_no_more_than_a_burst",
    ),
    "A message is cut": (
        "tests/unit/test_linear_parsers.py::test_nothing_examines_more_than_feishu_can_send",
    ),
    "Tests find every pattern": (
        "tests/unit/test_linear_patterns.py::test_patterns_are_linear",
        "tests/unit/test_linear_parsers.py::test_a_hostile_text_is_read_in_linear_time",
        "tests/unit/bot/process/test_loop_watch.py::test_a_block_of_over_half_a_second_is_said_with_its_place",
    ),
    "What reads a long text": (
        "tests/unit/bot/process/test_long_texts.py::test_the_loop_goes_on_while_a_long_text_is_read",
    ),
    "a person's tokens come out": (
        "tests/integration/sql/test_user_tokens_access.py::test_a_function_serves_the_token_of_the_own_place_and_refuses_every_other",
        "tests/integration/bot/people/test_personal_access.py::test_a_token_never_comes_out_of_a_call_for_somebody_else",
    ),
    "Who approves a link": (
        "tests/acceptance/test_connect.py::test_what_somebody_else_approves_is_thrown_away",
    ),
    "it is read as who asks": (
        "tests/acceptance/test_documents.py::test_what_somebody_there_cannot_open_is_as_if_it_did_not_exist",
        "tests/unit/bot/documents/test_group_audience.py::test_it_is_asked_as_who_asks_and_holds_for_a_minute",
    ),
    "A document that may show each reader": (
        "tests/acceptance/test_documents_that_differ.py::test_what_may_differ_is_told_to_the_asker_alone",
        "tests/unit/bot/documents/test_group_audience.py::test_a_base_that_shows_each_person_something_else_is_closed_to_a_group",
        "tests/unit/bot/documents/test_group_audience.py::test_a_sheet_with_protected_cells_is_closed_to_a_group",
        "tests/unit/bot/documents/test_group_audience.py::test_parts_of_other_documents_are_open_where_these_are",
    ),
    "The same is asked of every": (
        "tests/acceptance/test_documents.py::test_what_was_told_of_a_closed_document_is_not_told_again",
        "tests/acceptance/test_documents.py::test_what_an_earlier_private_answer_told_is_not_shared_without_its_document",
    ),
    "each thread of comments is": (
        "tests/acceptance/test_comments.py::test_a_comment_is_answered_from_its_document_and_its_thread_and_from_nothing_else",
        "tests/acceptance/test_comments.py::test_what_is_kept_in_a_thread_is_used_there_and_nowhere_else",
    ),
    "The bot reads that one document": (
        "tests/acceptance/test_comments.py::test_another_document_is_not_told_of_in_a_comment",
        "tests/acceptance/test_comments.py::test_a_document_that_shows_each_reader_something_else_is_not_told_of_in_a_comment",
    ),
    "in a group no tool gives": (
        "tests/unit/bot/agenda/test_telling_times.py::test_a_group_learns_no_title_no_place_and_no_guest",
        "tests/acceptance/test_calendar.py::test_in_a_group_people_are_free_or_busy_and_who_asks_books_with_a_press",
    ),
    "A private calendar, and": (
        "tests/unit/bot/agenda/test_telling_times.py::test_a_private_calendar_is_shown_to_the_asker_alone",
        "tests/unit/bot/agenda/test_telling_times.py::test_nothing_of_a_calendar_is_shown_where_an_outsider_reads_along",
    ),
    "only the button of who asked": (
        "tests/integration/bot/features/test_agenda_sequences.py::test_nothing_is_written_without_the_asker_and_undo_is_exact",
        "tests/acceptance/test_calendar.py::test_in_a_group_people_are_free_or_busy_and_who_asks_books_with_a_press",
    ),
    "Titles and names on that card": (
        "tests/unit/bot/feishu/test_markup_verbatim.py::test_words_are_shown_as_they_are_and_mean_nothing",
        "tests/unit/bot/feishu/test_markup_verbatim.py::test_no_invisible_sign_is_left",
    ),
    "they are data: the bot": (
        "tests/unit/bot/test_injections.py::test_an_obeyed_attack_reaches_nobody_elses_memory_and_notifies_nobody_else",
        "tests/unit/bot/feishu/test_feishu_markup.py::test_no_tag_survives",
        "tests/unit/bot/feishu/test_feishu_markup.py::test_no_mention_survives_anywhere_and_no_tag_outside_plain_fences",
    ),
    "only the asker's own exchange": (
        "tests/unit/bot/agents/test_planted_instructions.py::test_nothing_that_was_planted_is_done_without_a_button",
        "tests/unit/bot/agents/test_authority.py::test_changing_and_deleting_need_the_askers_words",
    ),
    "Quotations, files, names": (
        "tests/unit/bot/agents/test_authority.py::test_names_titles_and_quotations_ask_for_nothing",
        "tests/unit/bot/agents/test_authority.py::test_a_yes_gives_no_authority_to_what_the_bot_wrote",
    ),
    "Everything else waits": (
        "tests/acceptance/test_consent.py::test_a_typed_yes_does_what_waits_once",
        "tests/acceptance/test_consent.py::test_nobody_elses_yes_counts_and_none_after_another_question",
        "tests/unit/bot/agents/test_pending_texts.py::test_each_of_our_tools_that_can_wait_has_a_question_of_its_own",
    ),
    "No suggested question addresses": (
        "tests/unit/bot/text/test_follow_ups.py::test_no_question_addresses_everybody_in_any_spelling",
    ),
    "every tool that its server": (
        "tests/unit/bot/agents/test_mcp_config.py::test_what_is_not_declared_read_only_waits_unless_the_operator_says_otherwise",
        "tests/integration/bot/agents/test_mcp_servers.py::test_for_words_of_a_model_only_a_read_only_tool_runs_at_once",
    ),
    "the limits are 4 MB": (
        "tests/integration/bot/agents/test_hostile_mcp_servers.py::test_tools_are_few_small_and_plainly_named",
        "tests/integration/bot/agents/test_hostile_mcp_servers.py::test_a_call_ends_in_time_and_says_what_came_of_it",
        "tests/unit/bot/agents/test_loop.py::test_a_long_result_is_cut_as_it_is_stored",
    ),
    "Names keep letters": (
        "tests/integration/bot/agents/test_hostile_mcp_servers.py::test_tools_are_few_small_and_plainly_named",
    ),
    "The bot does not answer the server": (
        "tests/integration/bot/agents/test_hostile_mcp_servers.py::test_a_call_ends_in_time_and_says_what_came_of_it",
    ),
    "The model does believe": OUTSIDE,
    "its socket is in a closed": (
        "tests/integration/memory/backends/test_embedded_server.py::test_somebody_else_cannot_reach_the_socket",
        "tests/integration/memory/backends/test_embedded_server.py::test_somebody_else_is_refused_even_where_every_folder_stands_open",
    ),
    "the bot logs no secret": (
        "tests/acceptance/test_discreet_logs.py::test_no_process_has_a_secret_among_its_arguments",
        "tests/integration/bot/feishu/test_long_connection.py::test_secrets_are_never_written",
    ),
    "Tests cover these rules": OUTSIDE,
    "Some try each kind": (
        "tests/integration/sql/test_row_level_security.py::test_rows_are_reached_by_whom_the_rules_say_and_no_door_is_open",
    ),
    "Others run a list": (
        "tests/acceptance/test_injections.py::test_an_attack_that_the_model_obeys_has_no_effect",
    ),
    "**In a group an answer uses": (
        "tests/integration/sql/test_late_joiners.py::test_in_the_group_whoever_is_in_it_now_is_answered_with_all_of_it",
    ),
    "The members decide who": OUTSIDE,
    "**In p2p an answer uses": (
        "tests/integration/sql/test_late_joiners.py::test_alone_with_the_bot_a_member_is_answered_with_what_was_said_since_they_joined",
    ),
    "The bot cannot know": OUTSIDE,
    "So the group says": (
        "tests/integration/sql/test_late_joiners.py::test_the_rules_say_since_when_something_is_told",
    ),
    "**Then the bot tells nothing": (
        "tests/acceptance/test_late_joiners.py::test_what_was_said_before_the_newest_member_joined_is_not_told_where_the_group_says_so",
        "tests/integration/sql/test_late_joiners.py::test_where_newcomers_see_nothing_earlier_the_group_is_told_what_all_its_members_heard",
    ),
    "If Feishu has not said": (
        "tests/integration/sql/test_late_joiners.py::test_where_nobody_knows_who_joined_nothing_earlier_is_told",
    ),
    "It still tells what somebody": (
        "tests/integration/sql/test_late_joiners.py::test_a_reminder_of_before_is_still_told",
        "tests/acceptance/test_incoming.py::test_a_quoted_message_stands_before_the_question_and_is_not_kept",
    ),
    "With `MEMORY_SHARING=person`": (
        "tests/integration/sql/test_late_joiners.py::test_where_nobody_reads_what_others_said_a_newcomer_is_answered_with_their_own_words",
        "tests/contract/test_first_exchange_contract.py::test_everybody_of_the_place_sees_it_and_apart_only_whoever_asked_or_was_meant",
    ),
    "**Of [imported history]": (
        "tests/contract/test_imports_contract.py::test_a_group_is_told_only_what_its_newest_member_could_read",
        "tests/contract/test_imports_contract.py::test_where_the_owner_says_that_all_members_see_history_they_do",
    ),
    "In a group an answer uses what every": (
        "tests/contract/test_imports_contract.py::test_a_group_is_told_only_what_its_newest_member_could_read",
        "tests/contract/test_imports_contract.py::test_who_is_not_known_to_have_been_there_keeps_the_group_from_it",
    ),
    "Where the bot does not know": (
        "tests/contract/test_imports_contract.py::test_nothing_is_read_before_it_is_known_who_was_there",
        "tests/contract/test_imports_contract.py::test_who_is_not_known_to_have_been_there_keeps_the_group_from_it",
    ),
    "- **Planted words can": OUTSIDE,
    "While a person asks the bot": OUTSIDE,
    "They cannot reach": (
        "tests/unit/bot/test_injections.py::test_an_obeyed_attack_reaches_nobody_elses_memory_and_notifies_nobody_else",
        "tests/integration/sql/test_calls_by_others.py::test_nobody_is_told_or_changes_what_they_may_not",
    ),
    "- **An answer that knew": OUTSIDE,
    "Answers made directly": (
        "tests/contract/test_taking_back_contract.py::test_a_message_goes_with_its_answer_facts_notes_and_buttons",
    ),
    "- **A document that is closed": (
        "tests/acceptance/test_documents.py::test_answers_go_when_not_everybody_can_open_it_any_more",
        "tests/acceptance/test_documents.py::test_what_was_told_of_a_closed_document_is_not_told_again",
    ),
    "Where who had it read": OUTSIDE,
    "Other words for what a document": OUTSIDE,
    "- **The bot knows the members": (
        "tests/integration/sql/test_late_joiners.py::test_where_nobody_knows_who_joined_nothing_earlier_is_told",
        "tests/contract/test_chats_contract.py::test_news_of_members_counts_by_its_own_time",
    ),
    "If somebody left": OUTSIDE,
    "- **Operators see": OUTSIDE,
    "People's tokens they can": (
        "tests/integration/sql/test_user_tokens_access.py::test_the_console_and_operators_see_since_when_and_no_seal",
    ),
    "- **The model's provider": OUTSIDE,
    "- **A stolen token": (
        "tests/unit/memory/test_memory_tokens.py::test_a_token_carries_the_identity_of_its_turn_for_five_minutes",
    ),
    "It reads and writes what": (
        "tests/integration/sql/test_row_level_security.py::test_rows_are_reached_by_whom_the_rules_say_and_no_door_is_open",
    ),
    "It can send up to": (
        "tests/integration/sql/test_limits.py::test_the_largest_argument_of_a_turn_costs_little_more_than_to_be_read",
    ),
    "- **Every machine in": (
        "tests/unit/bot/operations/console/test_console_origins.py::test_a_network_that_is_named_may_and_its_neighbours_may_not",
    ),
    "- **Many people can": (
        "tests/acceptance/test_flooding.py::test_a_flood_is_answered_up_to_the_limit_and_told_once",
        "tests/unit/bot/files/test_file_places.py::test_a_persons_second_file_waits_behind_the_first_of_others",
    ),
    "Talk that is not": OUTSIDE,
    "Let only the service": ADVICE,
    "Put HTTPS": ADVICE,
    "Change the keys": ADVICE,
    "Tell people that": ADVICE,
    "Use only MCP": ADVICE,
    "Never give one the bot's": ADVICE,
    "The bot refuses to start with": (
        "tests/unit/bot/agents/test_mcp_config.py::test_a_server_is_not_given_the_bots_own_secret_unless_it_is_named",
    ),
    "Run `scripts/check_memory`": (
        "tests/integration/memory/test_operations.py::test_the_probe_finds_a_memory_whose_policies_are_off",
        "tests/integration/memory/test_operations.py::test_the_probe_finds_nothing_where_policies_hold_and_leaves_nothing",
    ),
    "Packages are installed with": (
        "tests/unit/test_pinned.py::test_every_requirement_has_one_version_and_hashes",
    ),
}
