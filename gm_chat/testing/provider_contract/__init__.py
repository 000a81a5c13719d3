"""The parts of :class:`gm_chat.testing.contract.ProviderContract`, one module per promise of an adapter."""
