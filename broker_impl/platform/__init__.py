"""What a broker uses of the operating system: its files, descriptors and memory allocator."""
