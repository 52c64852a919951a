"""ASGI routes and middleware beside the pages: the charts' WebSocket, pictures, health, uploads."""
