/* tree.h: cleans up after tests. */
#ifndef TESTS_TREE_H
#define TESTS_TREE_H

/* Removes @path with all that is in it; what a link leads to stays. */
void remove_tree (const char *path);

#endif
