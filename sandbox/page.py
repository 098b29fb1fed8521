"""The page at `/`: a group chat in the browser. Static files only; the data come from control."""

from pathlib import Path

from flask import Blueprint, Response, send_from_directory

STATIC = Path(__file__).parent / "static"
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'"
    "; frame-ancestors 'none'"
)


def page() -> Blueprint:
    """`/` and `/sandbox/static/…`."""
    blueprint = Blueprint("page", __name__)

    def index() -> Response:
        answer = send_from_directory(STATIC, "index.html")
        answer.headers["Content-Security-Policy"] = POLICY
        answer.headers["Cache-Control"] = "no-cache"
        return answer

    def static_file(name: str) -> Response:
        answer = send_from_directory(STATIC, name)
        answer.headers["Cache-Control"] = "no-cache"
        return answer

    blueprint.add_url_rule("/", "index", index)
    blueprint.add_url_rule("/sandbox/static/<path:name>", "static_file", static_file)
    return blueprint
