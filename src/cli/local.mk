# The program, at the top of the build folder.
