"""What all pages of a visit share: the back end, who visits, what they have open, the address."""
