# Sources of this folder.
