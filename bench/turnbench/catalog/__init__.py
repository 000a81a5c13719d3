"""301 parts of three materials: the Django app that both servers expose to their chat."""
