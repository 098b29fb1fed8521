"""The certificate authorities trusted for endpoints that the settings name."""

from __future__ import annotations

import os
import ssl

import certifi


def trusted() -> ssl.SSLContext:
    """SSL_CERT_FILE and SSL_CERT_DIR name authorities of one's own, as everywhere."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(
        cafile=file or (None if folder else certifi.where()), capath=folder
    )
