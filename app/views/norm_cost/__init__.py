"""What a norm costs on this machine."""
