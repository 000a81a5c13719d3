"""Parts of ``bench/turns.py``: two servers that differ in their chat alone, and clients that count and time turns."""
