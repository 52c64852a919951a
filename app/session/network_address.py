"""The network address that a request or a page comes from.

uvicorn reads it from X-Forwarded-For where the request came from a proxy that FORWARDED_ALLOW_IPS
names: by default this machine alone.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

import streamlit as st
from starlette.datastructures import Headers
from starlette.types import Scope


def of_request(scope: Scope) -> str:
    """The IPv4 address, or the /64 network of the IPv6 address, that a request comes from."""
    return _network((scope.get("client") or ("",))[0])


def of_page() -> str:
    """The address that the page whose script runs was opened from; empty for this machine."""
    return _network(st.context.ip_address or "")


def forwarded_scheme(headers: Headers) -> str:
    """How the visitor's browser asked, "http" or "https", as the first proxy says; empty without one."""
    return headers.get("x-forwarded-proto", "").partition(",")[0].strip()


def _network(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))
