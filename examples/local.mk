# Examples: small programs that use the public header only. One more is one line: noinst_PROGRAMS += examples/name
