-- Purpose: who may call what. Every function of sql/functions/ stands in one of these lists; what
-- stands in none can be called by everybody.
--
-- Functions are named without their arguments, so that a second function of the same name is refused:
-- PostgREST could not choose between two (PGRST203).

do $$
declare
  -- The service, and the token of a turn: row-level security says which rows it reaches. Everybody who
  -- signs in to the project can call these over its API.
  of_a_turn constant text[] := '{
    claim, token_auth_user, membership_lasts, readable_chats, own_tenant,
    open_turn, begin_turn, record_reply, preface_reply, mark_sent, mark_failed,
    note_done, restore_turn, list_items, find_facts,
    said_message, start_afresh, memory_overview,
    get_working_memory, former_facts, merge_working_memory, clear_working_memory,
    create_note, get_note, list_notes, search_notes, update_note, share_note,
    note_registry,
    recall, messages_to_embed, save_embeddings,
    load_conversation, chat_is_quiet, begin_conversation, append_to_conversation,
    continue_conversation, remove_from_conversation, finish_conversation, set_chat_quiet,
    log_decision, hear_message, note_bot_message, last_decision, get_chat_rules, set_chat_rule, manages_chat, has_answered_in,
    p2p_chat, private_sources, compared_terms, offer_private, keep_offer, private_reply, draw_on, note_read_messages, note_document, documents_behind, shared_groups,
    record_reply_with_buttons, press_button, pending_confirmation, running_turns, press_handle,
    keep_card, resume_card, note_card,
    open_fold, save_summary,
    set_timer, list_timers, change_timer, digest_material, get_digest, said_about, said_by_others,
    feishu_person, start_import, get_import, set_import_state, count_imported,
    get_user_tokens, get_user_seal, ask_user, note_user_ask, answer_user_ask, connect_user, close_user_ask,
    use_user_token, keep_refreshed, end_refresh, spend_user_token, disconnect_user, note_ending_told, reseal_user_tokens
  }';
  -- What these and those of the service are made of, in a schema that no API serves.
  of_functions constant text[] := '{
    told_since, look_up_told_since, tenant_outside_groups, chats_of_sender, turns_under_way, import_since, readable_imports, tell_nothing, tell_all, rules_of, facts_since,
    chat_of, root_of, require_identity, refuse_identity, require_place, refuse_place, require_card_count, refuse_card_count, require_size, refuse_size,
    require_turn_stands, card_is_too_late, withdraw_own, is_card_of_others,
    next_sources, note_fields, keep_note_change,
    turn_reply, button_looks,
    commands_among, words_of, line_above, messages_told, thread_number, newest_of_thread, nth_of_thread, longest_line, others_bytes, window_ids, summary_of, summary_from, is_from_before, outside_window, hold_messages,
    facts_told, merged_facts, former_values, merge_patch,
    fact_id, facts_of_chat, replaced_facts, facts_held, group_facts, replaceable_facts,
    note_title, note_body, note_tags, require_tag_count, note_json, touch_notes, keep_shown_notes,
    note_score, notes_alike, notes_elsewhere,
    recall_tokens, recall_terms, recall_number, recall_word, recall_words, places_to_recall,
    recall_few, recall_newest, recall_best, recall_alike, recall_likeness, keep_terms,
    turns_saying, turns_beside, turns_that_help,
    told_document, documents_told, documents_were_told, keep_given_documents,
    refuse_own_place, require_own_place, keep_seal, seal_of, drop_seals, keep_pair, user_tokens_json, end_grant,
    import_place, import_json, imported_told, require_manager, imports_that_help, drop_words_of, own_imported,
    add_to_transcript, keep_topics, conversation_in_short, most_messages, trim_transcript, note_asked,
    tell_conversation,
    card_block, card_row, leave_card, reads_elsewhere, terms_in, everyday_terms, asked_terms, timer_json,
    accepted_press, is_pressed, is_private, led_to, goes_with, last_card, answered_message, asked_in, written_at,
    turn_of_card, keep_feedback, sources_lock, names_lock, besides_taking_back, withdraw_kept, asking_words,
    keep_source_terms, keep_told_terms, keep_talk_terms, reader_number, is_gone,
    thread_source, thread_sources, noted_sources, given_sources, given_parts, kept_foot, told_foot, cited_ids, also_read, with_cited, quoted_messages, everyday_words, everyday_chinese, without_everyday_chinese, grammar_signs, without_ids, whole_numbers, telling_terms, plain_words, telling_phrases, phrases_in, is_distinctive, tells, words_in, words_of_call
  }';
  -- The same, and the console: where turns come from, what they were made of, and how they ended.
  of_origins constant text[] := '{turn_chain, first_asked, is_question, outcomes, lists_ids, told_record, record_fields, whole_record, given_ids}';
  -- The same as of_functions, of taking back and of importing: what looks into the keyed hashes of sources, and what
  -- makes imported messages, is no token's.
  of_taking_back constant text[] := '{
    keyed_hashes, keep_line_terms, keep_question_terms, short_record, first_read, hashes_read, read_terms, read_by, sources_read, forget_source_terms, forget_readers, known_as, made_from, cards_of,
    told_by, kept_by, asked_of_tools, from_elsewhere, common_terms, told_units, phrases_of, units_without_others, source_terms_among, tells_any, said_since,
    sources_of, turns_given, pass_on_sources, bare_words, rows_written, rows_since, draft_receipt, drop_item,
    imported_id, index_imported, import_marks, imports_likely, imports_size, import_dates,
    recall_likely, recall_span
  }';
  -- Nobody: a trigger needs no right to its function.
  of_triggers constant text[] := '{
    keep_words, drop_working_memory_of_chat, record_working_memory_change, index_turn,
    drop_embedding, drop_words_of_messages, drop_turn_words, count_import_messages, keep_p2p_chat, drop_private_answers, end_turn
  }';
  -- The service alone: events that name no sender, everybody's names, operators.
  of_the_service constant text[] := '{
    release_share, recall_message, replace_message, comes_from, withdraw_later, without_turn, texts_in, take_back_facts, rewrite_memory,
    take_back_notes, drop_turn, drop_message, drop_card, drop_answer, note_gone, take_card,
    take_back_kept, undo_kept, take_back_sources, take_back_tellers, take_back_told, take_back_calls,
    withdraw_kept_cards,
    drop_forgetting_turns, take_due_withdrawals, drop_withdrawal,
    said_to_forget, said_elsewhere, forget_chosen, forget_in_chat, forget_item, forget_fact, forget_summary, withdraw_lists, forget_sources, correct_item,
    take_left_cards, pending_replies, conversations_to_embed, count_embeddings, drop_other_embeddings,
    note_reaction, card_to_redraw,
    people_named, remember_people, list_people, count_people, link_person,
    time_of_news, doubtful_time, remember_chats, find_chats, take_chats, describe_chat, postpone_chat,
    is_topic_group, known_chats,
    save_chat_managers, save_chat_adder,
    hold_group, save_chat_members, add_chat_members, remove_chat_members, enter_chat, leave_chat,
    begin_welcome, end_welcome,
    person_columns, person_condition, require_person, forget_in_transcript,
    forget_person, person_mark, messages_gone, count_person, export_person, forget_conversation, forget_thread_transcript,
    apply_retention, receipts_to_sign, keep_receipt, receipt_of, take_receipts, own_receipts, list_receipts,
    cancel_timer, stop_timers_for, stop_timers_of_chat, take_due_timers, due_timer, timer_fired,
    take_back_timers, inspect_timers, set_digest, keep_digest_sources, drop_digests_of,
    wait_for_answer, may_answer_unasked, leave_unanswered, stop_proactive,
    list_conversations, list_messages, list_working_memory, list_working_memory_changes,
    list_decisions, list_orphans, list_unplaced, turns_checked, list_tables, born_within, recent_activity,
    inspect_chat, card_asked,
    import_by_id, list_imports, store_import_page, next_import_thread, finish_import, fail_import,
    remove_import_messages,
    take_told_documents, drop_told_document, documents_behind_sources, note_document_open,
    user_tokens_to_tend, count_user_tokens, drop_tokens_of_leavers
  }';
  -- Nobody but the owner, over a direct connection: what makes tables, and the queue's schema.
  of_the_owner constant text[] := '{
    public.enable_vectors,
    feishu_bot.enqueue, feishu_bot.tell_workers, feishu_bot.prune_inbox,
    feishu_bot.note_arrival, feishu_bot.arrivals,
    feishu_bot.requests_at_once, feishu_bot.filled_level, feishu_bot.share_person_rates, feishu_bot.tell_person_rate,
    feishu_bot.is_over_rate, feishu_bot.sender_of, feishu_bot.fair_priority,
    feishu_bot.hold_lease, feishu_bot.release_lease,
    feishu_bot.stop_turn, feishu_bot.is_stopped, feishu_bot.recent_stops,
    feishu_bot.worker_lock, feishu_bot.begin_work, feishu_bot.close_places,
    feishu_bot.job_told, feishu_bot.with_event, feishu_bot.take_jobs,
    feishu_bot.end_and_take, feishu_bot.end_if_silent, feishu_bot.retry_job, feishu_bot.fail_job, feishu_bot.hand_back, feishu_bot.failed_work, feishu_bot.job_events,
    feishu_bot.health, feishu_bot.retry_failed, feishu_bot.retry_answer, feishu_bot.drop_failed, feishu_bot.forget_failed,
    feishu_bot.gone_workers, feishu_bot.take_over, feishu_bot.maybe_sent,
    feishu_bot.look_round, feishu_bot.queue_tending, feishu_bot.queue_timer, feishu_bot.queue_import, feishu_bot.queue_connect,
    feishu_bot.queue_once,
    feishu_bot.without_jobs, feishu_bot.is_job_of_person,
    feishu_bot.forget_in_queue, feishu_bot.forget_rows_of, feishu_bot.forget_old,
    feishu_bot.export_from_queue, feishu_bot.queue_depth, feishu_bot.unprotected_tables,
    feishu_bot.recall_waits, feishu_bot.messages_of_turn, feishu_bot.sources_of_turn, feishu_bot.turn_jobs,
    feishu_bot.waiting_turn, feishu_bot.without_message, feishu_bot.keep_turn, feishu_bot.keep_writes,
    feishu_bot.queue_store, feishu_bot.change_turn, feishu_bot.changed_card, feishu_bot.take_back_waiting,
    feishu_bot.wake_stores, feishu_bot.waiting_stores,
    feishu_bot.invite_to_console, feishu_bot.enter_console, feishu_bot.console_admin,
    feishu_bot.leave_console, feishu_bot.unfinished_work, feishu_bot.cancel_waiting,
    feishu_bot.forget_in_audit, feishu_bot.people_in_numbers,
    feishu_bot.keep_turn_records, feishu_bot.keep_calls, feishu_bot.forget_turn_records, feishu_bot.usage_exhausted,
    feishu_bot.rewind_working_memory, feishu_bot.let_verifier_read
  }';
  f text;
  called regprocedure;
begin
  foreach f in array of_a_turn || of_the_service || of_triggers loop
    execute format('revoke all on function public.%I from public, anon, authenticated, service_role',
                   f);
  end loop;
  foreach f in array of_functions loop
    execute format('revoke all on function bot_private.%I from public, anon', f);
    execute format('grant execute on function bot_private.%I to authenticated, service_role', f);
  end loop;
  foreach f in array of_origins loop
    execute format('revoke all on function bot_private.%I from public, anon', f);
    execute format(
      'grant execute on function bot_private.%I to authenticated, service_role, bot_console', f);
  end loop;
  foreach f in array of_taking_back loop
    execute format('revoke all on function bot_private.%I from public, anon, authenticated', f);
    execute format('grant execute on function bot_private.%I to service_role', f);
  end loop;
  foreach f in array of_a_turn || of_the_service loop
    execute format('grant execute on function public.%I to service_role', f);
  end loop;
  foreach f in array of_a_turn loop
    execute format('grant execute on function public.%I to authenticated', f);
  end loop;
  foreach f in array of_the_owner loop
    execute format('revoke all on function %s from public, anon, authenticated, service_role', f);
  end loop;
  -- Postgres's just-in-time compiler, on by default where it is installed, goes by what a plan may cost. Ours look
  -- dear and are not: it would compile for a second what runs for a millisecond. What these functions call is not
  -- compiled either, such as what policies call for each row.
  for called in
    select p.oid from pg_proc p
    where case p.pronamespace::regnamespace::text
            when 'feishu_bot' then p.prorettype <> 'trigger'::regtype
            when 'public' then p.proname = any (of_a_turn || of_the_service)
          end
      and p.provolatile <> 'i' and p.prosqlbody is null  -- what has a setting is not written into its caller
  loop
    execute format('alter function %s set jit = off', called);
  end loop;
end
$$;

select feishu_bot.let_verifier_read();
