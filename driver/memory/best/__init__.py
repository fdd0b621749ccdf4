"""Mode `best`: a search over orders of operations and transfers, each decoded into a schedule."""
