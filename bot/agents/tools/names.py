"""The tools a specialist may list, by name, for checks that must not load the agents.

A test compares them with the tools there are.
"""

TOOL_NAMES = frozenset(
    {
        "create_note",
        "get_note",
        "list_notes",
        "search_notes",
        "update_note",
        "delete_note",
        "share_note",
        "read_working_memory",
        "update_working_memory",
        "forget_fact",
        "recall",
        "set_reminder",
        "list_reminders",
        "change_reminder",
        "cancel_reminder",
        "suggest_follow_ups",
        "current_time",
        "send_file",
        "read_document",
        "search_documents",
        "look_at_calendar",
        "list_due_tasks",
        "book_meeting",
        "make_task",
    }
)
