"""`tilefarm bench farm`: what a farm costs, and what gives way first as it grows."""
