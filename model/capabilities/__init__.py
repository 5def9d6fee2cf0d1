"""What a target can do to its cluster; a nemesis needs some of these protocols.

A target implements those that it can offer, and a plan with a fault that its target does not offer
is refused. All capabilities are ``runtime_checkable``, so that ``isinstance`` and ``issubclass``
work; they have methods only, because ``issubclass`` accepts no other members.
"""
