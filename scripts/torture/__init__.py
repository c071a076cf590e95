"""Kills a real server at random moments, again and again, and checks that nothing acknowledged is lost."""
