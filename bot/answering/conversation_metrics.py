"""What an answer in a group says of its conversation, counted for Prometheus: no ids, no text."""

from bot.answering.question import Turn
from bot.process import metrics


def measure(turn: Turn) -> None:
    """Counts the conversation of a turn that was answered in a group."""
    if not turn.in_group:
        return
    about = "sender" if turn.context.user_id == turn.context.actor_id else "another"
    metrics.SUBJECTS.labels(about=about).inc()
    if conversation := turn.heard.conversation:
        people = {one.author_id for one in conversation.messages if not one.is_bot}
        metrics.CONVERSATION_MESSAGES.observe(len(conversation.messages))
        metrics.CONVERSATION_PEOPLE.observe(len(people))
    if discussion := turn.heard.discussion:
        topic = "unsure" if discussion.topic is None else "sure"
        metrics.TOPICS.labels(topic=topic).inc()
