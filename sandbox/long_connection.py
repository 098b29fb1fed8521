"""Where an app asks for the address of its long connection. It sends its secret, and no token."""

from flask import Blueprint, Response

from sandbox.http import current_platform, json_body, json_response


def long_connection() -> Blueprint:
    """The blueprint; the platform is `current_app.extensions["sandbox"]`."""
    blueprint = Blueprint("long_connection", __name__)
    blueprint.add_url_rule("/callback/ws/endpoint", view_func=endpoint, methods=["POST"])
    return blueprint


def endpoint() -> Response:
    """POST /callback/ws/endpoint"""
    body = json_body()
    connections = current_platform().connections
    return json_response(connections.endpoint(body.get("AppID"), body.get("AppSecret")))
