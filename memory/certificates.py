"""Whom connections trust."""

from __future__ import annotations

import os
import ssl

import certifi


def trusted_certificates() -> ssl.SSLContext:
    """Trusts what everybody does. SSL_CERT_FILE and SSL_CERT_DIR name authorities of one's own in
    its place, such as a company's, for everything that the bot connects to."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(
        cafile=file or (None if folder else certifi.where()), capath=folder
    )
