from by_path import bare, kept, quick, replacing, rig, whole

__all__ = ["bare", "kept", "quick", "replacing", "rig", "whole"]
