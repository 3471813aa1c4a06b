"""What a config would need and reach on accelerators, found by compiling for them without having one."""
