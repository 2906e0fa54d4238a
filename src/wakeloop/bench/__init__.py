"""The bench: agents by tasks by models by seeds.

Whether a list, wakes and a guard finish more work, for what, measured on a world that code checks.
"""
